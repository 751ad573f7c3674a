// An MCP server over HTTP that takes the tokens of a login only. It is the issuer of its tokens, too.
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Guarded extends AsyncDisposable {
  /** The address of the MCP server. */
  readonly url: string
  /** Every code and token that it gave. */
  readonly secrets: string[]
}

/** guarded serves one tool, `echo`. */
export async function guarded(): Promise<Guarded> {
  const secrets: string[] = []
  const asked = new Map<string, URLSearchParams>() // the request of each code that was not exchanged
  const tokens = new Set<string>()
  let base = ''
  const secret = (kind: string): string => {
    const made = `${kind}-${randomUUID()}`
    secrets.push(made)
    return made
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const send = (status: number, json: object, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json))
    }
    const at = new URL(request.url ?? '/', base)
    switch (`${request.method} ${at.pathname}`) {
      case 'GET /.well-known/oauth-protected-resource/mcp':
        return send(200, { resource: `${base}/mcp`, authorization_servers: [base], scopes_supported: ['tools'] })
      case 'GET /.well-known/oauth-authorization-server':
        return send(200, {
          issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, registration_endpoint: `${base}/register`,
          response_types_supported: ['code'], grant_types_supported: ['authorization_code', 'refresh_token'], code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'], authorization_response_iss_parameter_supported: true,
        })
      case 'POST /register':
        return send(201, { ...(JSON.parse(body) as object), client_id: 'client-1' })
      case 'GET /authorize': {
        const code = secret('code')
        asked.set(code, at.searchParams)
        const back = new URLSearchParams({ code, state: at.searchParams.get('state') ?? '', iss: base })
        return send(302, {}, { location: `${at.searchParams.get('redirect_uri')}?${back}` })
      }
      case 'POST /token': {
        const given = new URLSearchParams(body)
        const wanted = asked.get(given.get('code') ?? '')?.get('code_challenge')
        asked.delete(given.get('code') ?? '')
        const challenge = createHash('sha256').update(given.get('code_verifier') ?? '').digest('base64url')
        if (wanted !== challenge) return send(400, { error: 'invalid_grant' })
        const token = secret('access')
        tokens.add(token)
        return send(200, { access_token: token, token_type: 'Bearer', expires_in: 3600, refresh_token: secret('refresh'), scope: 'tools' })
      }
      case 'POST /mcp': {
        if (!tokens.has((request.headers.authorization ?? '').replace(/^Bearer /, ''))) {
          return send(401, {}, { 'www-authenticate': `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"` })
        }
        const m = JSON.parse(body) as { id?: number; method: string }
        if (m.id === undefined) return void response.writeHead(202).end()
        const result = m.method === 'initialize'
          ? { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'guarded', version: '1' } }
          : { tools: [{ name: 'echo', description: 'Echoes.', inputSchema: { type: 'object' } }] }
        return send(200, { jsonrpc: '2.0', id: m.id, result })
      }
    }
    return send(request.url === '/mcp' ? 405 : 404, {})
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${base}/mcp`,
    secrets,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise((closed) => server.close(() => closed()))
    },
  }
}
