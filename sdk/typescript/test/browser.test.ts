// The SDK in a browser: a headless Chromium loads its modules in a page. The daemon refuses requests of pages from other origins, so the server of
// the page passes /v1 on to the daemon, as docs/SDK.md tells. In CI a missing browser is a failure; elsewhere the test is left out.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { accessSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { Daemon } from '../src/testing.js'
import type { Told } from './page.js'

const NAMES = ['chromium-headless-shell', 'chromium', 'google-chrome']
const FLAGS = ['--no-sandbox', '--headless', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--remote-debugging-port=0']
/** The folder of the compiled tests, with the modules of the SDK beside them. */
const BUILD = new URL('../', import.meta.url)

function browser(): string | undefined {
  const places = NAMES.flatMap((name) => (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name)))
  return places.find((place) => {
    try {
      accessSync(place)
      return true
    } catch {
      return false
    }
  })
}

/** Serves the page, its modules, and the API of a daemon, all from one origin. `told` has what the page sends at its end. */
function serve(daemon: Daemon, key: string): { server: Server; told: Promise<Told>; asked: string[] } {
  const asked: string[] = []
  let end: (told: Told) => void
  const told = new Promise<Told>((resolve) => (end = resolve))
  const page = `<!doctype html><meta charset="utf-8"><script type="application/json" id="given">${JSON.stringify({ key })}</script>
<script type="module" src="/test/page.js"></script>`
  const answer = async (q: IncomingMessage, a: ServerResponse): Promise<void> => {
    const path = q.url ?? '/'
    if (path.startsWith('/v1/')) return pass(q, a, daemon.url, asked)
    if (path === '/told') {
      let body = ''
      for await (const chunk of q) body += String(chunk)
      a.end()
      return end(JSON.parse(body) as Told)
    }
    if (path === '/') {
      a.setHeader('content-type', 'text/html').end(page)
      return
    }
    if (!/^\/(src|test)\/[\w-]+\.js$/.test(path)) {
      a.writeHead(404).end()
      return
    }
    a.setHeader('content-type', 'text/javascript').end(await readFile(new URL(`.${path}`, BUILD)))
  }
  return { server: createServer((q, a) => void answer(q, a)), told, asked }
}

/** pass hands a request to the daemon as it is: its Host is that of the page, so the daemon sees that both are of one origin. */
function pass(q: IncomingMessage, a: ServerResponse, daemon: string, asked: string[]): void {
  asked.push(`${q.method} ${q.headers.origin ?? ''}`)
  const on = request(daemon + q.url, { method: q.method, headers: q.headers }, (from) => {
    a.writeHead(from.statusCode ?? 502, from.headers)
    from.pipe(a)
  })
  on.on('error', () => a.destroy())
  a.on('close', () => on.destroy())
  q.pipe(on)
}

const program = browser()
const left = program === undefined && process.env['CI'] === undefined ? `none of ${NAMES.join(', ')} is on the PATH` : false

test('a page makes a space, runs code and follows its events', { skip: left, timeout: 90_000 }, async () => {
  assert.ok(program, `none of ${NAMES.join(', ')} is on the PATH; Debian has the package chromium-headless-shell`)
  await using daemon = await Daemon.start()
  const { principal_id } = await daemon.client.request<{ principal_id: string }>({ path: '/v1/auth/session' })
  const { bearer } = await daemon.client.request<{ bearer: string }>({
    method: 'POST',
    path: '/v1/capabilities/grant',
    json: {
      issued_to_principal_id: principal_id,
      scopes: { rooms: ['*'], tools: ['*'], action_types: ['*'], data_access: { read: ['*'], write: ['*'] } },
      valid_until: new Date(Date.now() + 600_000).toISOString(),
    },
  })
  const { server, told, asked } = serve(daemon, bearer)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const profile = await mkdtemp(join(tmpdir(), 'sdk-browser-'))
  const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`, `${origin}/`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true, // a group of its own, so that its processes end with it
    env: { ...process.env, HOME: profile },
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)))
  const ended = new Promise<Told>((resolve) => child.once('close', (code) => resolve({ failure: `the browser ended with ${code}: ${said}` })))
  try {
    const got = await Promise.race([told, ended])
    assert.equal(got.failure, undefined)
    assert.match(got.agent ?? '', /Chrom/)
    assert.deepEqual([got.stdout, got.text, got.streamed], ['hello from a page\n', '42', '1\n2\n3\n'])
    assert.deepEqual([got.frames?.[0], got.frames?.at(-1)], ['operation', 'complete'])
    assert.deepEqual([got.files, got.bytes], [['in/a.txt', 'in/b.bin'], [0, 255, 128]])
    assert.equal(got.refused, 'true true')
    assert.deepEqual(got.changes, ['created in/c.txt'])
    assert.equal(got.events?.[0], 'space.created')
    assert.ok(got.events?.includes('space.ready') && got.events.at(-1) === 'space.destroyed', got.events?.join())
    assert.equal(got.follows, true)
    assert.ok(asked.includes(`POST ${origin}`), 'the browser names the origin of the page with each change')
    const elsewhere = await fetch(`${daemon.url}/v1/spaces`, { headers: { authorization: `Bearer ${bearer}`, origin } })
    assert.deepEqual([elsewhere.status, ((await elsewhere.json()) as { error: string }).error], [403, 'origin_not_allowed'])
  } finally {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
    await ended
    server.closeAllConnections()
    server.close()
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
})
