// The journeys in short, without a framework for tests, so that Node, Bun and Deno run the same program: scripts/sdk test.
import { Agentbox, ApprovalRequiredError, NotFoundError, PolicyDeniedError, TimeoutError, tools, type RunFrame, type schema } from '../src/index.js'
import { Daemon } from '../src/testing.js'

let checks = 0

function same(got: unknown, want: unknown): void {
  checks++
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}

async function refused(kind: new (...given: never[]) => Error, work: Promise<unknown>): Promise<void> {
  checks++
  const err = await work.then(
    () => undefined,
    (e: unknown) => e,
  )
  if (!(err instanceof kind)) throw new Error(`got ${String(err)}, want ${kind.name}`)
}

async function frames(stream: AsyncIterable<RunFrame>): Promise<RunFrame[]> {
  const all: RunFrame[] = []
  for await (const frame of stream) all.push(frame)
  return all
}

async function helloAgentSpace(client: Agentbox): Promise<void> {
  await using space = await client.spaces.create()
  await space.files.writeMany({ 'in/sales.csv': 'day,total\nmon,40\ntue,2\n', 'in/bytes.bin': new Uint8Array([0, 255, 128]) })
  const run = await space.run([
    { type: 'createFile', path: 'sum.py', content: 'import csv\nprint(sum(int(r["total"]) for r in csv.DictReader(open("in/sales.csv"))))\n' },
    { type: 'shell', id: 'sum', command: 'python3 sum.py | tee report.txt' },
  ])
  same((run.result('sum') as schema.RunResultShell).stdout, '42\n')
  same(await space.files.readText('report.txt'), '42\n')
  same([...(await space.files.read('in/bytes.bin'))], [0, 255, 128])
  same((await space.exec('exit 3')).exitCode, 3)
  await refused(NotFoundError, space.files.read('missing'))
  await space.rewind(run.id)
  same(await space.files.exists('report.txt'), false)
}

async function aTaskInALoop(client: Agentbox): Promise<void> {
  await using space = await client.spaces.create()
  const streamed = await space.runStream([
    { type: 'shell', id: 'bad', command: 'cat missing' },
    { type: 'createFile', path: 'notes.txt', content: 'tried\n' },
  ])
  const told = await frames(streamed)
  await streamed.run.refresh()
  same((streamed.run.result('bad') as schema.RunResultShell).exitCode, 1)
  same(await space.files.readText('notes.txt'), 'tried\n')
  same(await frames(streamed.run.stream()), told)
  const printed: string[] = []
  await space.exec('echo ü; echo two', { onStdout: (text) => printed.push(text) })
  same(printed.join(''), 'ü\ntwo\n')
  await refused(TimeoutError, space.exec('while :; do :; done', { commandMs: 5000, timeoutMs: 300, onStdout() {} }))
}

async function aSensitiveAction(client: Agentbox): Promise<void> {
  await using space = await client.spaces.create()
  await space.files.write('build/x', 'x')
  await refused(PolicyDeniedError, space.exec('sudo reboot'))
  const seen: string[] = []
  same((await space.exec('rm -r build', { onApproval: (q) => (seen.push(q.question?.what ?? ''), 'approve') })).exitCode, 0)
  same(seen.length === 1 && /rm -r build/.test(seen[0]), true)
  const offered = Object.fromEntries(tools(space).map((t) => [t.name, t]))
  same(/^refused: |^denied: /.test(await offered.run_command.execute({ command: 'sudo true' })), true)
  await space.files.write('dist/x', 'x')
  await refused(ApprovalRequiredError, space.exec('rm -r dist'))
}

async function codeInPlaceOfTools(client: Agentbox): Promise<void> {
  await using space = await client.spaces.create({ runtime: 'nano' })
  await space.files.write('orders.py', 'def of(day):\n    return [10, 20, 12]\n')
  same(await (await space.code('import orders\nsum(orders.of("today"))')).text(), '42')
  same(await (await space.code('const n: number = 41; n + 1', { language: 'typescript' })).text(), '42')
}

async function aCommandInTheBackground(client: Agentbox): Promise<void> {
  await using space = await client.spaces.create({ runtime: 'heavy' })
  const counting = await space.start('wc -c', { stdin: true })
  await counting.write('x'.repeat(100_000))
  await counting.closeStdin()
  let printed = ''
  for await (const piece of counting.output()) printed += piece.text
  same([printed.trim(), (await counting.wait()).exitCode], ['100000', 0])
}

async function theLog(client: Agentbox): Promise<void> {
  const stop = new AbortController()
  const { next_from_seq: head } = await client.events.list({ limit: 1 })
  await client.spaces.create()
  const types: string[] = []
  for await (const e of client.events.subscribe({ fromSeq: head, signal: stop.signal })) {
    types.push(e.event_type)
    if (e.event_type === 'space.ready') stop.abort()
  }
  same(types.includes('space.created'), true)
}

const daemon = await Daemon.start()
try {
  for (const journey of [helloAgentSpace, aTaskInALoop, aSensitiveAction, codeInPlaceOfTools, aCommandInTheBackground, theLog]) {
    await journey(daemon.client)
    await journey(await Agentbox.connect({ home: daemon.home })) // as a program that finds the daemon
  }
} finally {
  await daemon.stop()
}
const runtime = 'Deno' in globalThis ? 'deno' : 'Bun' in globalThis ? 'bun' : 'node'
console.log(`${runtime}: the journeys, ${checks} checks`)
