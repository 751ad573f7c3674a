// Every example of the pages, run against a real daemon. scripts/examples.mjs makes them from the pages.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Daemon } from '../src/testing.js'
import { examples } from './examples/index.js'
import type { Given } from './given.js'
import { ADDING, vendor, type Vendor } from './vendor.js'

let daemon: Daemon
let folder: string
let model: Vendor
before(async () => {
  daemon = await Daemon.start()
  process.env['AGENTBOX_HOME'] = daemon.home
  model = await vendor(ADDING, 'the sum is 5050')
  process.env['MODEL_URL'] = model.url
  folder = await mkdtemp(join(tmpdir(), 'sdk-examples-'))
  await mkdir(join(folder, 'project'))
  await writeFile(join(folder, 'project/a.txt'), 'a')
  process.chdir(folder)
})
after(async () => {
  await daemon?.stop()
  await model?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

test('the pages have examples', () => assert.ok(examples.length >= 10, examples.join()))

for (const name of examples) {
  test(name, { timeout: 60_000 }, async () => {
    const { client } = daemon
    const space = await client.spaces.create()
    await space.files.writeMany({ 'build/x': 'x', 'dist/x': 'x', 'data/x': 'x', 'out/x': 'x' })
    const run = await space.run([{ type: 'shell', command: 'true' }])
    const { default: example } = (await import(`./examples/${name}.js`)) as { default: (given: Given) => Promise<void> }
    await example({ client, space, run, bytes: new Uint8Array([1, 2]), confirm: () => Promise.resolve(true) })
  })
}

test('the example of agents has asked its model', () => assert.ok(model.asked.some((a) => a.model === 'qwen3')))
