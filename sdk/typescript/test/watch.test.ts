// Changes of files, and the ports of a space, against a real daemon.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { NotFoundError, type Space } from '../src/index.js'
import { Daemon } from '../src/testing.js'

let daemon: Daemon
let space: Space
before(async () => {
  daemon = await Daemon.start()
  space = await daemon.client.spaces.create({ runtime: 'heavy' })
})
after(() => daemon?.stop())

const server = `
from http.server import *
class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page " + self.path.encode())
HTTPServer(("127.0.0.1", 8080), Pages).serve_forever()
`

test('the changes of a folder are told, and go on after a cursor', async () => {
  await space.exec('mkdir -p seen/below beside')
  const told = new Set<string>()
  let cursor = 0
  let changing: Promise<unknown> | undefined
  const onStart = () => {
    changing = space.exec('echo 1 > seen/one; echo 1 > beside/other; echo 1 > seen/below/deep')
  }
  for await (const change of space.files.watch('seen', { recursive: true, onStart })) {
    told.add(change.path)
    cursor = change.cursor
    if (told.has('seen/one') && told.has('seen/below/deep')) break
  }
  await changing
  assert.ok(!told.has('beside/other'), [...told].join(', '))
  await space.exec('echo 2 > seen/later')
  for await (const change of space.files.watch('seen', { recursive: true, after: cursor })) {
    if (told.has(change.path)) continue // a file that is made may also be told as changed
    assert.equal(change.path, 'seen/later')
    break
  }
  for await (const change of space.files.watch('seen', { after: 1 })) {
    assert.equal(change.kind, 'overflow')
    break
  }
  await assert.rejects(space.files.watch('missing').next(), NotFoundError)
})

/** get asks the daemon for a page of a host, which need not have an address. */
function get(url: URL, cookie = ''): Promise<{ status: number; text: string; cookie: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host: url.host, ...(cookie ? { cookie } : {}) }
    request({ host: '127.0.0.1', port: url.port, path: url.pathname + url.search, headers }, (answer) => {
      let text = ''
      answer.on('data', (piece) => (text += piece))
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, text, cookie: (answer.headers['set-cookie']?.[0] ?? '').split(';')[0] ?? '' }),
      )
    })
      .on('error', reject)
      .end()
  })
}

test('a port has an address until it is closed', async () => {
  await space.files.write('server.py', server)
  const serving = await space.start('python3 server.py')
  for (const end = Date.now() + 60_000; ; ) {
    if ((await space.ports.list()).some((listed) => listed.port === 8080)) break
    assert.ok(Date.now() < end, 'nothing listens')
  }
  const preview = await space.ports.preview(8080, { ttlSeconds: 600 })
  const first = await get(new URL(preview.url))
  assert.equal(first.status, 303)
  const page = await get(new URL('/a%20page', preview.url), first.cookie)
  assert.deepEqual([page.status, page.text], [200, 'page /a%20page'])
  assert.equal(await space.ports.close(8080), 1)
  const closed = await get(new URL('/', preview.url), first.cookie)
  assert.ok([401, 403, 404, 410].includes(closed.status), String(closed.status))
  await serving.kill()
})
