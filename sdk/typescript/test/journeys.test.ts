// The journeys of a developer, each against a real daemon.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile, mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { after, before, test } from 'node:test'
import {
  Agentbox, AgentboxError, ApprovalRequiredError, AuthenticationError, ConflictError, NetworkError, NotFoundError, PolicyDeniedError, TimeoutError, ValidationError, discover, tools, type schema,
} from '../src/index.js'
import { Daemon } from '../src/testing.js'

let daemon: Daemon
let client: Agentbox
before(async () => {
  daemon = await Daemon.start()
  client = daemon.client
})
after(() => daemon?.stop())

test('hello: write a script, run it, read what it made', async () => {
  await using space = await client.spaces.create({ name: 'hello', env: { WHO: 'world' } })
  await space.files.write('greet.sh', 'echo "hello $WHO" | tee out/greeting.txt\n')
  await space.files.write('out/.keep', '')
  const done = await space.exec('bash greet.sh')
  assert.equal(done.stdout, 'hello world\n')
  assert.equal(done.exitCode, 0)
  assert.ok(done.ok)
  assert.equal(await space.files.readText('out/greeting.txt'), 'hello world\n')
  assert.deepEqual((await space.files.list('', { recursive: true })).map((e) => e.path).sort(), ['greet.sh', 'out', 'out/.keep', 'out/greeting.txt'])
})

test('a command that fails is a result, and orThrow makes it an error', async () => {
  await using space = await client.spaces.create()
  const done = await space.exec('echo oops >&2; exit 3')
  assert.deepEqual([done.exitCode, done.stderr, done.ok], [3, 'oops\n', false])
  await assert.rejects(space.exec('ls', { cwd: 'nodir' }), { name: 'OperationError', message: /nodir|folder/ })
  assert.ok(!inspect(space).includes('abk_') && !inspect(client).includes('abk_') && !JSON.stringify(done).includes('abk_'))
  assert.throws(() => done.orThrow(), { name: 'OperationError', code: 'command_failed', message: /ended with 3: oops/ })
})

test('iterate: live output, frames in order, rewind and fork', async () => {
  await using space = await client.spaces.create()
  const seen: string[] = []
  const run = await space.run(
    [
      { type: 'createFile', id: 'one', path: 'a.txt', content: 'first' },
      { type: 'shell', id: 'two', command: 'echo live; cat a.txt' },
      { type: 'readFile', id: 'four', path: 'a.txt' },
    ],
    { title: 'iterate', onStdout: (t) => seen.push(t) },
  )
  assert.equal(run.status, 'completed')
  assert.equal(seen.join(''), 'live\nfirst')
  assert.equal((run.result('four') as schema.RunResultReadFile).content, 'first')
  const streamed = await space.runStream([{ type: 'shell', command: 'echo second > a.txt' }])
  const names: string[] = []
  for await (const frame of streamed) names.push(frame.event)
  assert.equal(names[0], 'operation')
  assert.equal(names.at(-1), 'complete')
  assert.equal(await space.files.readText('a.txt'), 'second\n')
  const undone = await space.rewind(streamed.run.id)
  assert.equal(await space.files.readText('a.txt'), 'first')
  await using fork = await space.fork({ at: undone.from_snapshot_sha256, name: 'branch' })
  assert.equal(await fork.files.readText('a.txt'), 'second\n')
  const found: string[] = []
  for await (const s of space.snapshots.list()) found.push(s.cause)
  assert.ok(found.length >= 3, `there are ${found.length} snapshots`)
})

test('approvals: throw, answer by callback, deny, watch', async () => {
  await using space = await client.spaces.create()
  await space.files.write('old/a.txt', 'x')
  await assert.rejects(space.exec('rm -r old'), (err) => {
    assert.ok(err instanceof ApprovalRequiredError)
    assert.match(err.approvalId, /^appr_/)
    assert.match(err.runId ?? '', /^run_/)
    assert.match(err.suggestion ?? '', /approvals\.approve/)
    return true
  })
  await assert.rejects(space.exec('echo next'), /an earlier run of the space waits/)
  const open: schema.PolicyApproval[] = []
  for await (const a of client.approvals.list({ spaceId: space.id })) open.push(a)
  assert.equal(open.length, 1)
  await client.approvals.deny(open[0].approval_id, { reason: 'keep it' })
  await assert.rejects(space.exec('rm -r old', { onApproval: () => 'deny' }), PolicyDeniedError)
  assert.ok(await space.files.exists('old/a.txt'))
  let asked: schema.PolicyApproval | undefined
  const done = await space.exec('rm -r old', {
    onApproval: (a) => {
      asked = a
      return 'approve'
    },
  })
  assert.equal(done.exitCode, 0)
  assert.match(JSON.stringify(asked?.question), /old/)
  assert.equal(await space.files.exists('old'), false)
  const stop = new AbortController()
  await space.files.write('more/a.txt', 'x')
  const waiting = space.exec('rm -r more', { onApproval: () => 'wait' })
  for await (const a of client.approvals.watch({ signal: stop.signal })) {
    await client.approvals.approve(a.approval_id, { actionSha256: a.action_sha256 })
    break
  }
  assert.equal((await waiting).exitCode, 0)
})

test('capabilities: an SDK of the developer is used by code', async () => {
  await using space = await client.spaces.create({ runtime: 'nano' })
  await space.files.write('company.py', 'def orders(day):\n    return [{"id": 1, "total": 40}, {"id": 2, "total": 2}]\n')
  const done = await space.code('import company\nsum(o["total"] for o in company.orders("today"))')
  assert.equal(await done.text(), '42')
})

test('code keeps its variables and shows rich results', async () => {
  await using space = await client.spaces.create({ runtime: 'nano' })
  await space.code('x = 20')
  assert.equal(await (await space.code('x + 1')).text(), '21')
  const js = await space.code('const y: number = 4; y * 2', { language: 'typescript' })
  assert.equal(await js.text(), '8')
  const html = await space.code('class T:\n    def _repr_html_(self): return "<b>hi</b>"\nT()')
  assert.ok(html.displays.some((d) => d.mimeType.startsWith('text/html')), JSON.stringify(html.raw.displays))
  const bad = await space.code('1/0')
  assert.equal(bad.ok, false)
  assert.match(bad.stderr, /ZeroDivisionError/)
  assert.deepEqual((await space.contexts.list()).map((c) => c.name).sort(), ['main', 'main-javascript'])
})

test('files: bytes, many, folders, an archive, hostile names', async () => {
  await using space = await client.spaces.create()
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
  await space.files.write('b.bin', bytes)
  assert.deepEqual(await space.files.read('b.bin'), bytes)
  await space.files.write('archive', 'a file with that name')
  assert.equal(await space.files.readText('archive'), 'a file with that name')
  await space.files.write('a b#?ü.txt', 'odd')
  assert.equal(await space.files.readText('a b#?ü.txt'), 'odd')
  await assert.rejects(space.files.write('../out.txt', 'x'), ValidationError)
  await assert.rejects(space.files.read('none.txt'), NotFoundError)
  assert.equal(await space.files.stat('none/none.txt'), undefined)
  const local = await mkdtemp(join(tmpdir(), 'sdk-'))
  try {
    await mkdir(join(local, 'in/deep'), { recursive: true })
    for (let i = 0; i < 120; i++) await writeFile(join(local, `in/deep/f${i}.txt`), `${i}`)
    assert.equal((await space.files.uploadDirectory(join(local, 'in'), 'data')).length, 120)
    assert.equal((await space.exec('ls data/deep | wc -l')).stdout.trim(), '120')
    assert.equal((await space.files.downloadDirectory('data', join(local, 'out'))).length, 120)
    assert.equal(await readFile(join(local, 'out/deep/f7.txt'), 'utf8'), '7')
  } finally {
    await rm(local, { recursive: true })
  }
  const zip = await space.files.archive('data')
  assert.deepEqual([...zip.slice(0, 2)], [0x50, 0x4b])
})

test('events: a subscription gets what happens, resumes, and ends with its signal', async () => {
  const stop = new AbortController()
  const head = await client.events.list({ limit: 1 })
  await using space = await client.spaces.create({ name: 'watched' })
  const types: string[] = []
  let last = 0
  for await (const e of client.events.subscribe({ fromSeq: head.next_from_seq, spaceId: space.id, signal: stop.signal })) {
    types.push(e.event_type)
    last = e.seq
    if (e.event_type === 'space.created') break
  }
  assert.ok(types.includes('space.created'))
  const more = client.events.subscribe({ after: last, signal: stop.signal })
  await space.exec('true')
  const next = await more.next()
  assert.equal(next.done ? 0 : next.value.seq, last + 1)
  setTimeout(() => stop.abort(), 50)
  for await (const _ of more) void _
})

test('rooms: a thread and its messages', async () => {
  const room = await client.rooms.create({ title: 'lab' })
  const thread = await client.rooms.createThread(room.room_id, 'release')
  await client.rooms.post(thread.thread_id, '**ready**')
  const { messages } = await client.rooms.messages(thread.thread_id)
  assert.equal(messages[0].content_md, '**ready**')
})

test('errors: typed, with a code and what to do', async () => {
  await assert.rejects(client.spaces.get('spc_01ARZ3NDEKTSV4RRFFQ69G5FAV'), (err) => err instanceof NotFoundError && err.requestId !== undefined)
  await assert.rejects(client.spaces.create({ policy: 'none' as 'standard' }), ValidationError)
  await client.spaces.create({ name: 'taken' })
  await assert.rejects(client.spaces.create({ name: 'taken' }), (err) => err instanceof ConflictError && err.code === 'space_name_taken')
  await assert.rejects(new Agentbox({ url: daemon.url, key: 'wrong' }).spaces.get('x'), AuthenticationError)
  await assert.rejects(new Agentbox({ url: 'http://127.0.0.1:9', key: 'k', retries: 0 }).spaces.get('x'), NetworkError)
  await using space = await client.spaces.create()
  await assert.rejects(space.exec('sudo reboot'), (err) => err instanceof PolicyDeniedError && err.code.length > 0)
  await assert.rejects(space.exec('while :; do :; done', { commandMs: 5000, timeoutMs: 500, onStdout() {} }), TimeoutError)
  const stop = new AbortController()
  setTimeout(() => stop.abort(new Error('enough')), 50)
  await assert.rejects(new Agentbox({ url: 'http://127.0.0.1:9', key: 'k', retries: 50 }).spaces.get('x', { signal: stop.signal }), /enough/)
})

test('a repeat under one key does the thing once', async () => {
  const one = await client.spaces.create({ name: 'once', idempotencyKey: 'create-once' })
  const two = await client.spaces.create({ name: 'once', idempotencyKey: 'create-once' })
  assert.equal(one.id, two.id)
})

test('an answer that is lost is asked for again, and nothing happens twice', async () => {
  let lost = 0
  const flaky: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (init?.method === 'POST' && lost < 2) {
      lost++
      await answer.arrayBuffer()
      throw new TypeError('fetch failed')
    }
    return answer
  }
  const shaky = new Agentbox({ url: daemon.url, key: daemon.key, fetch: flaky })
  await using space = await shaky.spaces.create({ name: 'shaky' })
  assert.equal(lost, 2)
  const same: string[] = []
  for await (const s of client.spaces.list()) if (s.name === 'shaky') same.push(s.id)
  assert.deepEqual(same, [space.id])
})

test('tools: a model gets answers, never exceptions', async () => {
  await using space = await client.spaces.create()
  const offered = Object.fromEntries(tools(space, { maxCharacters: 1000 }).map((t) => [t.name, t]))
  assert.match(await offered.run_command.execute({ command: 'echo hi; exit 2' }), /hi\n\nexit code 2|hi\n.*exit code 2/s)
  assert.match(await offered.run_command.execute({ command: 'sudo id' }), /^denied: .*\nrule: .*/)
  assert.match(await offered.run_command.execute({ command: 'seq 100000' }), /characters left out/)
  assert.equal(await offered.run_python.execute({ code: '6 * 7' }), '42')
  await offered.write_file.execute({ path: 'n.txt', content: 'note' })
  assert.equal(await offered.read_file.execute({ path: 'n.txt' }), 'note')
  assert.match(await offered.list_files.execute({}), /n\.txt\t4/)
  assert.match(await offered.read_file.execute({ path: 'none' }), /^error: /)
  assert.match(await offered.read_file.execute({ wrong: 1 }), /^error: /)
  await offered.write_file.execute({ path: 'old/a', content: 'x' })
  const impatient = tools(space, { timeoutMs: 1000 })[0]
  assert.match(await impatient.execute({ command: 'rm -r old' }), /a person had to decide/)
  const asking = tools(space, { onApproval: () => 'approve' })[0]
  assert.equal(await asking.execute({ command: 'rm -r old' }), '')
})

test('discovery: the environment, a data directory, and clear errors', async () => {
  const found = await discover({ home: daemon.home })
  assert.deepEqual([found.url, found.key], [daemon.url, daemon.key])
  process.env.AGENTBOX_KEY = ''
  try {
    await assert.rejects(discover(), /AGENTBOX_KEY is set and empty/)
  } finally {
    delete process.env.AGENTBOX_KEY
  }
  await assert.rejects(discover({ home: '/nonexistent' }), /start a daemon|cannot be read/)
})

test('discovery: the key of the local owner goes nowhere else', async () => {
  const named = await discover({ url: daemon.url, home: daemon.home })
  assert.deepEqual([named.url, named.key], [daemon.url, daemon.key])
  for (const [url, home, says] of [
    ['http://127.0.0.1:1', daemon.home, /goes to http:.* only/],
    ['no address', daemon.home, /no key for no address/],
    [daemon.url, '/nonexistent', /no key for/],
  ] as const) {
    await assert.rejects(discover({ url, home }), (err: AgentboxError) => says.test(err.message) && err.code === 'key_missing')
  }
  assert.throws(() => new Agentbox({ url: '127.0.0.1:7433', key: 'abk_x' }), (err) => err instanceof ValidationError && /with http/.test(err.suggestion ?? ''))
})

test('a daemon is started where none runs, and ended', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sdk-home-'))
  try {
    const own = await Agentbox.connect({ home: folder, start: true })
    assert.match(own.origin, /^started in /)
    const space = await own.spaces.create()
    assert.equal((await space.exec('echo hi')).stdout, 'hi\n')
    await space.destroy()
    await own.close()
    await assert.rejects(Agentbox.connect({ home: folder }), /cannot be read|has ended/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a paused space keeps its files, and goes on where it was', async () => {
  await using space = await client.spaces.create()
  await space.exec('echo kept > a')
  await space.pause({ reason: 'lunch' })
  assert.deepEqual([space.info.status, space.info.pause?.reason], ['paused', 'lunch'])
  assert.equal(await space.files.readText('a'), 'kept\n')
  await assert.rejects(space.pause(), ConflictError)
  await space.resume({ ttlSeconds: 600 })
  assert.equal(space.info.pause, undefined)
  assert.equal((await space.exec('cat a')).stdout, 'kept\n')
  await space.pause({ resumeOnRun: true })
  assert.equal((await space.exec('cat a')).stdout, 'kept\n')
  await assert.rejects(space.resume(), ConflictError)
})
