// Agents from their blueprint to their report, against a real daemon and a scripted model.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { AgentRun, AgentboxError, ConflictError, NotFoundError, TimeoutError, ValidationError, type AgentFrame, type Agentbox } from '../src/index.js'
import { Daemon } from '../src/testing.js'
import { ADDING, vendor, type Said } from './vendor.js'

let daemon: Daemon
let client: Agentbox
before(async () => {
  daemon = await Daemon.start()
  client = daemon.client
})
after(() => daemon?.stop())

const blueprint = (name: string, model: string): string => `api_version: 1\nname: ${name}\nadapter: {kind: internal}\nmodels: {default: ${model}}\n`

/** define makes an agent that asks a scripted model, under one name. */
async function define(name: string, url: string): Promise<void> {
  await client.models.put(name, { dialect: 'generic', base_url: url, model: `${name}-1`, allow_private: true })
  await client.blueprints.register(name, await client.blueprints.lock(blueprint(name, name)))
}

/** refusal returns the code of a call's refusal. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (err) {
    if (err instanceof AgentboxError) return err.code
    throw err
  }
  throw new Error('it was not refused')
}

/** asks waits until the run waits for a person, and returns the question's id. */
async function asks(run: AgentRun): Promise<string> {
  const calls = await run.calls()
  for await (const frame of run.stream()) {
    if (frame.event === 'event' && 'type' in frame.data && frame.data.type === 'approvalRequired' && frame.data.approvalId) return frame.data.approvalId
  }
  throw new Error(`the run asked nobody: ${run.status}, ${JSON.stringify(calls)}`)
}

test('blueprints: check, lock, register, list, show, remove', async () => {
  await client.models.put('shown', { provider: 'scripted', base_url: 'none', model: 'm' })
  const wrong = await client.blueprints.check('api_version: 1\nname: kept\nadapter: {kind: internal}\nlimit: 1\n')
  assert.equal(wrong.valid, false)
  assert.match(JSON.stringify(wrong.problems), /limit/)
  const text = await client.blueprints.lock(blueprint('kept', 'shown'))
  assert.match(text, /pins:/)
  assert.deepEqual((await client.blueprints.check(text)).drift ?? [], [])
  assert.equal((await client.blueprints.register('kept', text)).version, 1)
  const second = await client.blueprints.register('kept', text.replace('name: kept', 'name: kept\ndescription: the second'))
  assert.deepEqual([second.version, second.unpinned, second.summary.model], [2, 0, 'shown'])
  const names: string[] = []
  for await (const found of client.blueprints.list()) names.push(found.name)
  assert.ok(names.includes('kept'), names.join())
  assert.equal((await client.blueprints.get('kept', { version: 1 })).source.text, text)
  assert.match((await client.blueprints.get('kept')).source.text, /the second/)
  await client.blueprints.remove('kept', { reason: 'not used' })
  assert.equal((await client.blueprints.get('kept')).status, 'removed')
  for await (const found of client.blueprints.list()) assert.notEqual(found.name, 'kept')
})

test('models: the catalogue, keys, routes and budgets, and what was used', async () => {
  await using served = await vendor([], 'yes')
  const model = await client.models.put('asked', { dialect: 'generic', base_url: served.url, model: 'asked-1', allow_private: true, classes: ['small'] })
  assert.deepEqual([model.name, model.model], ['asked', 'asked-1'])
  assert.deepEqual((await client.models.get('asked')).classes, ['small'])
  const tested = await client.models.test('asked')
  assert.ok(tested.reachable, JSON.stringify(tested))
  assert.ok(served.asked.length > 0)
  await client.models.setKey('vendor', 'a-secret-of-the-vendor')
  const settings = { routes: [{ class: 'small', models: ['asked'] }], budgets: [{ scope: 'agent', tokens_per_day: 1_000_000 }] }
  await client.models.configure(settings)
  const all = await client.models.list()
  assert.deepEqual([all.routes[0].models, all.budgets[0].tokens_per_day], [['asked'], 1_000_000])
  assert.ok(all.keys.some((k) => k.name === 'vendor'))
  assert.ok(!JSON.stringify(all).includes('a-secret-of-the-vendor'))
  await client.models.removeKey('vendor')
  await client.models.configure({ routes: [], budgets: [] })
  const used = (await client.models.usage({ scope: 'model' })).usage.find((u) => u.id === 'asked')
  assert.ok(used && used.requests > 0 && used.usage.input_tokens >= 10, JSON.stringify(used))
  await client.models.remove('asked', { reason: 'not used' })
  await assert.rejects(client.models.get('asked'), NotFoundError)
})

test('an agent works: its frames, its tools, its artifacts, what it cost, and the next task', async () => {
  await using served = await vendor(ADDING, 'the sum is 5050')
  await define('adder', served.url)
  await using space = await client.spaces.create()
  const said: string[] = []
  const tools: string[] = []
  const run = await client.agents.run('adder', 'Add the numbers from 1 to 100.', {
    space,
    title: 'sums',
    onText: (text) => said.push(text),
    onTool: (call) => tools.push(call.tool),
  })
  assert.deepEqual([run.status, run.report, run.ended], ['succeeded', 'the sum is 5050', true], run.error)
  assert.equal(said.join(''), 'I add them. the sum is 5050')
  assert.equal(tools.length, 2, tools.join())
  assert.equal(run.info.title, 'sums')
  assert.equal(await space.files.readText('sum.txt'), '5050\n')

  const frames: AgentFrame[] = []
  for await (const frame of run.stream()) frames.push(frame)
  assert.equal(frames.at(-1)?.event, 'complete')
  assert.deepEqual(frames.map((f) => f.id).toSorted((a, b) => a - b), frames.map((f) => f.id))
  const results = frames.filter((f) => f.event === 'event').map((f) => ('type' in f.data ? f.data.type : 'redacted'))
  assert.equal(results.length, 2, results.join())

  assert.deepEqual((await run.calls()).map((c) => [c.tool_name, c.status]), [['code', 'succeeded'], ['space.createFile', 'succeeded']])
  const [sum] = await run.artifacts()
  assert.match(await sum.text(), /5050/)
  const cost = await run.usage()
  assert.deepEqual([cost?.requests, cost?.usage.input_tokens], [3, 30])

  // The conversation goes on, in the same space, and another model answers.
  await client.models.put('other', { dialect: 'generic', base_url: served.url, model: 'other-1', allow_private: true })
  const next = await client.agents.run('adder', 'And once more?', { after: run, model: 'other' })
  assert.equal(next.report, 'the sum is 5050', next.error)
  const asked = served.asked.at(-1)
  assert.equal(asked?.model, 'other-1')
  assert.match(JSON.stringify(asked?.messages), /Add the numbers from 1 to 100\..*And once more\?/)
  const given = (await client.agents.get(next.id)).info as { given?: { after_run_id?: string; model?: string; space_id?: string } }
  assert.deepEqual([given.given?.after_run_id, given.given?.space_id], [run.id, space.id])
  const listed: string[] = []
  for await (const found of client.agents.list({ blueprint: 'adder', status: 'succeeded' })) listed.push(found.id)
  assert.deepEqual(listed, [next.id, run.id])
  await assert.rejects(client.agents.start('nobody', 'x'), NotFoundError)
  await assert.rejects(client.agents.start('adder', 'x', { after: 'run_01ARZ3NDEKTSV4RRFFQ69G5FAV' }), NotFoundError)
  await assert.rejects(client.agents.start('adder', 'x', { model: 'unknown' }), (err) => err instanceof NotFoundError || err instanceof ValidationError)
  const work = await space.exec('true')
  await assert.rejects(client.agents.get(work.run.id), (err) => err instanceof ValidationError && err.code === 'not_an_agent')
})

const REMOVING: Said[][] = [[{ tool: 'shell', arguments: { command: 'rm -r build' } }], [{ say: 'I heard: $LAST' }]]

test('an agent asks a person, is told something, and is stopped', async () => {
  await using served = await vendor(REMOVING, 'it is done')
  await define('remover', served.url)
  await using space = await client.spaces.create()
  const questions: string[] = []
  await space.files.write('build/x', 'x')
  const denied = await client.agents.run('remover', 'Remove it.', {
    space,
    onApproval: (question) => {
      questions.push(question.question?.what ?? '')
      return 'deny'
    },
  })
  assert.equal(questions.length, 1)
  assert.match(questions[0], /rm -r build/)
  assert.ok(await space.files.exists('build/x'))
  assert.match(denied.report ?? '', /^I heard: /, denied.error)

  const run = await client.agents.start('remover', 'Remove it now.', { space })
  const approval = await asks(run)
  await assert.rejects(run.wait({ timeoutMs: 50 }), (err) => err instanceof TimeoutError && err.runId === run.id)
  await run.steer('leave the rest alone')
  await assert.rejects(run.steer(' '), ValidationError)
  await assert.rejects(run.steer('x'.repeat((64 << 10) + 1)), ValidationError)
  await client.approvals.approve(approval)
  assert.equal((await run.wait()).report, 'I heard: leave the rest alone', run.error)
  await assert.rejects(run.steer('too late'), (err) => err instanceof ConflictError && err.code === 'run_ended')

  await space.files.write('build/x', 'x')
  const stopped = await client.agents.start('remover', 'Remove it again.', { space })
  await asks(stopped)
  await stopped.steer('x'.repeat(64 << 10))
  await stopped.stop({ reason: 'no longer wanted' })
  assert.deepEqual([stopped.status, stopped.report], ['cancelled', undefined])
  assert.match(stopped.error ?? '', /no longer wanted/)
  assert.equal((await stopped.wait()).status, 'cancelled')
  await assert.rejects(stopped.stop(), ConflictError)
})

/** picture is a PNG of a length, of which only the beginning is one. */
const picture = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(120).map((b, at) => [137, 80, 78, 71, 13, 10, 26, 10][at] ?? b)

test('a task has pictures, where the model takes them', async () => {
  await using served = await vendor([], 'a chart')
  await define('blind', served.url)
  await assert.rejects(client.agents.start('blind', 'look', { pictures: [picture(20)] }), (err) => err instanceof ValidationError && err.code === 'model_without_images')
  assert.equal(served.asked.length, 0)

  await client.models.put('sees', { dialect: 'generic', base_url: served.url, model: 'sees-1', allow_private: true, images: true })
  await client.blueprints.register('sees', await client.blueprints.lock(blueprint('sees', 'sees')))
  const run = await client.agents.run('sees', 'look', { pictures: [picture(20), { data: picture(0x8001), name: 'chart.png' }] })
  assert.equal(run.report, 'a chart', run.error)
  const sent = JSON.stringify(served.asked[0].messages)
  for (const p of [picture(20), picture(0x8001)]) assert.ok(sent.includes(`data:image/png;base64,${Buffer.from(p).toString('base64')}`))
  const kept = await run.artifacts()
  assert.deepEqual((await Promise.all(kept.map((a) => a.bytes()))).map((b) => b.length).toSorted((a, b) => a - b), [20, 0x8001])
  assert.ok(kept.some((a) => a.raw.title === 'chart.png' && a.mediaType === 'image/png'))
  assert.equal(await refusal(client.agents.start('sees', 'look', { pictures: [new TextEncoder().encode('hello')] })), 'invalid_picture')
  assert.equal(await refusal(client.agents.start('sees', 'look', { pictures: Array.from({ length: 9 }, () => picture(20)) })), 'invalid_field')
})
