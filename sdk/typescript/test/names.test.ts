// Names that a path would read as a way, and keys that nothing shows.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { inspect } from 'node:util'
import { Agentbox, NetworkError, ValidationError } from '../src/index.js'
import { Daemon } from '../src/testing.js'

let daemon: Daemon
let client: Agentbox
before(async () => {
  daemon = await Daemon.start()
  client = daemon.client
})
after(() => daemon?.stop())

test('a name leads to nothing else', async () => {
  await using space = await client.spaces.create()
  await space.files.write('kept.txt', 'kept')
  for (const name of ['', '.', '..']) {
    const calls: (() => Promise<unknown>)[] = [
      () => space.contexts.delete(name),
      () => client.spaces.get(name),
      () => client.blueprints.remove(name),
      () => client.models.removeKey(name),
      () => client.mcpServers.logOut(name),
      () => client.approvals.approve(name),
    ]
    for (const call of calls) {
      await assert.rejects(async () => call(), (err) => err instanceof ValidationError && err.code === 'name_invalid')
    }
  }
  assert.equal(await space.files.readText('kept.txt'), 'kept')
})

test('a redirect gets neither the key nor the request', async () => {
  const seen: string[] = []
  const thief = createServer((request, answer) => {
    seen.push(JSON.stringify(request.headers))
    answer.end('{}')
  })
  await new Promise<void>((resolve) => thief.listen(0, '127.0.0.1', resolve))
  const honest = createServer((_, answer) => {
    answer.writeHead(307, { Location: `http://127.0.0.1:${(thief.address() as AddressInfo).port}/` })
    answer.end()
  })
  await new Promise<void>((resolve) => honest.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(honest.address() as AddressInfo).port}`
    const lost = new Agentbox({ url, key: 'the-key', capabilityToken: 'the-token', retries: 0 })
    await assert.rejects(lost.models.setKey('k', 'the-value'), NetworkError)
    assert.deepEqual(seen, [])
  } finally {
    thief.close()
    honest.close()
  }
})

test('no representation has the key', async () => {
  const home = await mkdtemp(join(tmpdir(), 'sdk-names-'))
  const own = await Agentbox.connect({ home, start: true })
  try {
    const { readFile } = await import('node:fs/promises')
    const key = (await readFile(join(home, 'owner.key'), 'utf8')).trim()
    assert.notEqual(key, '')
    assert.ok(!inspect(own, { depth: 9, showHidden: true }).includes(key))
  } finally {
    await own.close()
    await rm(home, { recursive: true, force: true })
  }
})
