// What remains of processes that are killed: a daemon under its clients, and a test under its daemon.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { access, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agentbox, AgentboxError, ApprovalRequiredError, OperationError, type schema } from '../src/index.js'
import { start } from '../src/program.js'
import { Daemon } from '../src/testing.js'

const CLIENTS = 100
const POSTS = 3
const RATES = ['--rate', 'owner=1000000', '--rate', 'general=1000000', '--rate', 'streams=1000']

async function pidOf(home: string): Promise<number> {
  return (JSON.parse(await readFile(join(home, 'daemon.json'), 'utf8')) as { pid: number }).pid
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test('a daemon is killed under 100 clients: no event is lost, no effect is doubled, each client goes on or has its typed error', async () => {
  const home = await mkdtemp(join(tmpdir(), 'sdk-killed-'))
  let daemon = await start({ home, args: RATES })
  const stop = new AbortController()
  let following: Promise<void>[] = []
  try {
    const calm = new Agentbox({ url: daemon.url, key: daemon.key, retries: 20 })
    const { room_id } = await calm.rooms.create({ title: 'busy' })
    const { thread_id } = await calm.rooms.createThread(room_id, 'posts')
    const spaces = await Promise.all(Array.from({ length: 5 }, () => calm.spaces.create({ runtime: 'nano' })))
    const begin = (await calm.events.list({ limit: 1 })).next_from_seq
    const clients = Array.from({ length: CLIENTS }, (_, n) => new Agentbox({ url: daemon.url, key: daemon.key, retries: n % 10 === 0 ? 0 : 12 }))

    const seen: number[][] = clients.map(() => [])
    following = clients.map(async (client, n) => {
      for await (const e of client.events.subscribe({ fromSeq: begin, signal: stop.signal })) seen[n].push(e.seq)
    })
    const outcome = new Map<string, unknown>() // undefined where it succeeded
    const attempt = async (name: string, effect: () => Promise<unknown>): Promise<void> => outcome.set(name, await effect().then(() => undefined, (err: unknown) => err)) as never
    const acting = [
      ...clients.map(async (client, n) => {
        for (let k = 0; k < POSTS; k++) await attempt(`post ${n} ${k}`, () => client.rooms.post(thread_id, `post ${n} ${k}`))
      }),
      ...spaces.map(async (space, n) => {
        const own = await clients[n + 1].spaces.get(space.id)
        for (let k = 0; k < 3; k++) await attempt(`line ${n} ${k}`, async () => (await own.exec(`echo line ${n} ${k} >> log.txt`, { onApproval: () => 'approve' })).orThrow())
      }),
    ]
    while (outcome.size < (CLIENTS * POSTS) / 4) await pause(2)
    process.kill(await pidOf(home), 'SIGKILL')
    const before = outcome.size
    daemon = await start({ home, args: [...RATES, '--listen', new URL(daemon.url).host] })
    await Promise.all(acting)
    assert.ok(before < outcome.size, 'the daemon was killed after everything was done')

    const posted = new Map<string, number>()
    let older: string | undefined
    do {
      const page = await calm.rooms.messages(thread_id, { before: older, limit: 100 })
      for (const m of page.messages) posted.set(m.content_md ?? '', (posted.get(m.content_md ?? '') ?? 0) + 1)
      older = page.next_before
    } while (older)
    for (const space of spaces) {
      if (!(await space.files.exists('log.txt'))) continue
      for (const line of (await space.files.readText('log.txt')).trim().split('\n')) posted.set(line, (posted.get(line) ?? 0) + 1)
    }
    for (const n of spaces.keys()) {
      // the kill interrupts one command of a space at most
      const failed = [...outcome].filter(([name, err]) => name.startsWith(`line ${n} `) && err !== undefined)
      assert.ok(failed.length <= 1, failed.map(([name, err]) => `${name} failed with ${String(err)}`).join('; '))
    }
    let failed = 0
    for (const [name, err] of outcome) {
      if (err === undefined) assert.equal(posted.get(name), 1, `${name} succeeded`)
      else {
        failed++
        assert.ok(err instanceof AgentboxError && err.code !== '', `${name} failed with ${String(err)}`)
        assert.ok((posted.get(name) ?? 0) <= 1, `${name} failed and happened twice`)
      }
    }
    assert.equal(outcome.size, CLIENTS * POSTS + 15)
    assert.ok(failed < outcome.size / 2, `${failed} of ${outcome.size} failed`)

    const recorded: schema.EventShown[] = []
    for (let from = begin; ; ) {
      const page = await calm.events.list({ fromSeq: from, limit: 200 })
      if (!page.events?.length) break
      recorded.push(...page.events)
      from = page.next_from_seq
    }
    const want = recorded.map((e) => e.seq)
    const until = Date.now() + 20_000
    while (seen.some((s) => (s.at(-1) ?? 0) < want[want.length - 1]) && Date.now() < until) await pause(10)
    for (const [n, got] of seen.entries()) assert.deepEqual(got.slice(0, want.length), want, `client ${n} lost events or got some twice`)
    stop.abort()
    await Promise.all(following)
  } finally {
    stop.abort()
    await Promise.allSettled(following)
    await daemon.stop()
    await rm(home, { recursive: true, force: true })
  }
})

test('a person decides what follows a command that a kill interrupted', async () => {
  const home = await mkdtemp(join(tmpdir(), 'sdk-killed-'))
  let daemon = await start({ home })
  try {
    const client = new Agentbox({ url: daemon.url, key: daemon.key, retries: 12 })
    const space = await client.spaces.create({ runtime: 'nano' })
    let first: Promise<unknown> = Promise.resolve()
    await new Promise<void>((resolve, reject) => {
      const command = 'echo begun; while :; do :; done'
      first = space.exec(command, { commandMs: 600_000, onStdout: () => resolve(), onApproval: () => 'wait' }).catch((err: unknown) => err)
      void first.then(reject)
    })
    process.kill(await pidOf(home), 'SIGKILL')
    daemon = await start({ home, args: ['--listen', new URL(daemon.url).host] })
    const behind = await space.exec('echo behind it').catch((err: unknown) => err)
    assert.ok(behind instanceof ApprovalRequiredError && behind.approvalId, String(behind))
    await client.approvals.approve(behind.approvalId)
    const unknown = await first
    assert.ok(unknown instanceof OperationError && unknown.suggestion, String(unknown))
    assert.equal(unknown.code, 'outcome_unknown')
    assert.equal((await space.exec('echo behind it')).stdout, 'behind it\n')
  } finally {
    await daemon.stop()
    await rm(home, { recursive: true, force: true })
  }
})

test('what a test that was killed leaves behind is swept by the next start', async () => {
  const testing = new URL('../src/testing.js', import.meta.url).href
  const program = `import { Daemon } from ${JSON.stringify(testing)}; const d = await Daemon.start(); console.log(d.home); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const home = await new Promise<string>((resolve) => child.stdout.once('data', (line: Buffer) => resolve(line.toString().trim())))
  const orphan = await pidOf(home)
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))
  process.kill(orphan, 0) // the daemon lives on
  await using daemon = await Daemon.start()
  assert.ok(daemon.home.includes(`-${process.pid}-`))
  assert.throws(() => process.kill(orphan, 0), { code: 'ESRCH' })
  await assert.rejects(access(home), { code: 'ENOENT' })
})
