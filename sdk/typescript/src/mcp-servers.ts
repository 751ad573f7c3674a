import { ValidationError } from './errors.js'
import { part, type CallOptions, type Transport } from './http.js'
import type { McpReturned, ServedTool, ServerList, ServerSpec, ToolServer, Visit } from './schema.js'
import type { Space } from './space.js'

/** How long a call waits, unless told otherwise, while the daemon asks a server or its issuer; milliseconds. */
const REACH = 120_000

/** The MCP servers whose tools agents use. A blueprint names them, and agents are offered only tools that a person has trusted. */
export class McpServers {
  constructor(private readonly http: Transport) {}

  /** Lists the servers with their tools. */
  async list(options: CallOptions = {}): Promise<ToolServer[]> {
    return (await this.http.json<ServerList>({ ...options, path: '/v1/mcp-servers' })).mcp_servers
  }

  /** Shows a server, its tools, and how they differ from what people trusted. */
  get(name: string, options: CallOptions = {}): Promise<ToolServer> {
    return this.http.json({ ...options, path: server(name) })
  }

  /** Adds a server, or changes it: it has either a command or a url. Nothing is asked of it yet. After a change no tool of it is trusted. */
  put(name: string, spec: ServerSpec, options: CallOptions = {}): Promise<ToolServer> {
    return this.http.json({ ...options, method: 'PUT', path: server(name), json: spec })
  }

  remove(name: string, options: CallOptions & { reason?: string | undefined } = {}): Promise<void> {
    const { reason, ...call } = options
    return this.http.json({ ...call, method: 'DELETE', path: server(name), query: { reason } })
  }

  /** Asks a server for its tools. The policy of the space has to permit its host; a server with a command runs in the space. */
  look(name: string, space: Space | string, options: CallOptions = {}): Promise<ToolServer> {
    return this.http.json({ timeoutMs: REACH, ...options, method: 'POST', path: `${server(name)}/look`, json: { space_id: idOf(space) }, once: true })
  }

  /** Releases tools for agents, each with the hash that was shown: those of `look`, once somebody has read them. */
  async trust(name: string, tools: readonly Pick<ServedTool, 'tool' | 'tool_sha256'>[], options: CallOptions = {}): Promise<ToolServer> {
    const named = tools.map(({ tool, tool_sha256 }) => {
      if (tool_sha256) return { tool, tool_sha256 }
      throw new ValidationError(`${tool} has no hash; the server no longer offers it`, {
        code: 'usage',
        suggestion: 'look at the server, and leave out tools that are gone',
      })
    })
    return this.http.json({ ...options, method: 'POST', path: `${server(name)}/trust`, json: { tools: named } })
  }

  /**
   * Begins the login of a person at a server that was added with `login`. The person opens `authorization_url` in a browser, which the issuer
   * sends back to `redirectUri`, http://127.0.0.1:PORT/PATH. The policy of the space has to permit the hosts of the server and of the issuer.
   */
  beginLogin(name: string, space: Space | string, redirectUri: string, options: CallOptions = {}): Promise<Visit> {
    const json = { space_id: idOf(space), redirect_uri: redirectUri }
    return this.http.json({ timeoutMs: REACH, ...options, method: 'POST', path: `${server(name)}/login`, json, once: true })
  }

  /** Finishes the login with the code, the state and the iss of the address to which the browser was sent. The daemon keeps the tokens. */
  finishLogin(name: string, returned: McpReturned, options: CallOptions = {}): Promise<ToolServer> {
    return this.http.json({ timeoutMs: REACH, ...options, method: 'POST', path: `${server(name)}/login/finish`, json: returned, once: true })
  }

  /** Destroys the tokens of a login. The issuer is not told. */
  logOut(name: string, options: CallOptions = {}): Promise<void> {
    return this.http.json({ ...options, method: 'DELETE', path: `${server(name)}/login` })
  }
}

function server(name: string): string {
  return `/v1/mcp-servers/${part(name)}`
}

function idOf(space: Space | string): string {
  return typeof space === 'object' ? space.id : space
}
