// The four journeys of a developer from beginning to end, each against a real daemon.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Agentbox, PolicyDeniedError, tools, type Run, type RunFrame, type schema } from '../src/index.js'
import { Daemon } from '../src/testing.js'

let daemon: Daemon
let client: Agentbox
before(async () => {
  daemon = await Daemon.start()
  client = daemon.client
})
after(() => daemon?.stop())

/** frames reads the stream of a run from its beginning. */
async function frames(stream: AsyncIterable<RunFrame>): Promise<RunFrame[]> {
  const all: RunFrame[] = []
  for await (const frame of stream) all.push(frame)
  return all
}

/** head is the place where the log goes on. */
async function head(): Promise<number> {
  return (await client.events.list({ limit: 1 })).next_from_seq
}

/** history returns what was recorded from a place on. */
async function history(from: number): Promise<schema.EventShown[]> {
  const all: schema.EventShown[] = []
  for (;;) {
    const page = await client.events.list({ fromSeq: from, limit: 200 })
    if (!page.events?.length) return all
    all.push(...page.events)
    from = page.next_from_seq
  }
}

test('hello agent space: upload, run a script, read the artifact and the log', async () => {
  const began = Date.now()
  const begin = await head()
  const local = await mkdtemp(join(tmpdir(), 'sdk-story-'))
  try {
    await mkdir(join(local, 'project'))
    await writeFile(join(local, 'project/sales.csv'), 'day,total\nmon,40\ntue,2\n')
    await using space = await client.spaces.create()
    assert.equal(space.info.policy, 'standard')
    await space.files.uploadDirectory(join(local, 'project'), 'project')
    const run = await space.run([
      { type: 'createFile', path: 'sum.py', content: 'import csv\nprint(sum(int(r["total"]) for r in csv.DictReader(open("project/sales.csv"))))\n' },
      { type: 'shell', id: 'sum', command: 'mkdir -p out && python3 sum.py | tee out/report.txt' },
    ])
    const done = run.result('sum') as schema.RunResultShell
    assert.deepEqual([run.status, done.stdout, done.exitCode], ['completed', '42\n', 0])
    const written = await space.files.downloadDirectory('out', join(local, 'out'))
    assert.deepEqual(written, [join(local, 'out/report.txt')])
    assert.equal(await readFile(join(local, 'out/report.txt'), 'utf8'), '42\n')
    const types = (await history(begin)).map((e) => e.event_type)
    for (const type of ['space.created', 'run.created', 'run.started', 'run.completed']) assert.ok(types.includes(type), `${type} is not in ${types.join()}`)
    assert.ok(Date.now() - began < 5 * 60_000)
  } finally {
    await rm(local, { recursive: true })
  }
})

test('a long task in a loop: a failure is local, the work goes on, and the transcript replays', async () => {
  await using space = await client.spaces.create()
  await space.files.write('context/task.md', 'Count the lines of context/data.txt')
  await space.files.write('context/data.txt', 'a\nb\nc\n')
  const told: RunFrame[][] = []
  const runs: Run[] = []
  const batch = async (operations: Parameters<typeof space.runStream>[0]): Promise<schema.RunResult[]> => {
    const streamed = await space.runStream(operations)
    told.push(await frames(streamed))
    runs.push(streamed.run)
    return (await streamed.run.refresh()).results
  }
  const [read] = await batch([{ type: 'readFile', path: 'context/task.md' }])
  assert.match((read as schema.RunResultReadFile).content ?? '', /Count the lines/)
  const first = await batch([
    { type: 'createFile', path: 'count.py', content: 'print(len(open("data.txt").readlines()))\n' },
    { type: 'shell', id: 'try', command: 'python3 count.py' },
    { type: 'createFile', path: 'notes.txt', content: 'tried\n' },
  ])
  assert.notEqual((first[1] as schema.RunResultShell).exitCode, 0)
  assert.match((first[1] as schema.RunResultShell).stderr ?? '', /data\.txt/)
  assert.ok((first[2] as schema.RunResultCreateFile).success, 'what follows a failure is done all the same')
  const second = await batch([
    { type: 'editFile', path: 'count.py', edits: [{ oldContent: '"data.txt"', newContent: '"context/data.txt"' }] },
    { type: 'shell', id: 'again', command: 'python3 count.py | tee report.txt' },
  ])
  assert.equal((second[1] as schema.RunResultShell).stdout, '3\n', JSON.stringify(second))
  assert.equal(await space.files.readText('report.txt'), '3\n')
  for (const [n, run] of runs.entries()) {
    assert.deepEqual(await frames(run.stream()), told[n], 'the transcript of a run that has ended is the one that was seen')
    const shown = await run.show()
    assert.deepEqual(shown.result?.events, run.results)
  }
})

test('a sensitive action: the question says what, why and what follows; no secret reaches the model; all is in the log', async () => {
  const begin = await head()
  const secret = 'hunter2-hunter2-hunter2'
  await using space = await client.spaces.create({ env: { DEPLOY_TOKEN: secret } })
  await space.files.write('build/old.txt', 'x')
  const questions: schema.PolicyApproval[] = []
  const offered = Object.fromEntries(
    tools(space, {
      onApproval: (q) => {
        questions.push(q)
        return questions.length === 1 ? 'deny' : 'approve'
      },
    }).map((t) => [t.name, t]),
  )
  const said: string[] = []
  const ask = async (command: string): Promise<string> => {
    said.push(await offered.run_command.execute({ command }))
    return said.at(-1) ?? ''
  }
  assert.match(await ask('rm -r build'), /^denied: /)
  assert.ok(await space.files.exists('build/old.txt'))
  assert.equal(await ask('rm -r build'), '')
  assert.equal(await space.files.exists('build'), false)
  for (const q of questions) for (const part of ['what', 'why', 'impact'] as const) assert.ok(q.question?.[part], `the question has no ${part}`)
  assert.match(questions[0].question?.what ?? '', /rm -r build/)
  await ask('echo "$DEPLOY_TOKEN"; printenv DEPLOY_TOKEN')
  await assert.rejects(space.exec('sudo reboot'), PolicyDeniedError)
  assert.ok(!said.join('\n').includes(secret), `the model was told the secret: ${said.at(-1)}`)
  const log = await history(begin)
  const types = log.map((e) => e.event_type)
  for (const type of ['approval.requested', 'approval.decided', 'approval.used', 'policy.denied']) assert.ok(types.includes(type), `${type} is not in ${[...new Set(types)].join()}`)
  const holding = log.filter((e) => /^(tool|run|file)\./.test(e.event_type) && JSON.stringify(e).includes(secret))
  assert.deepEqual(holding, [], 'what was done and printed is recorded without the secret')
})

test('code in place of tools: an SDK of the developer, composed and filtered by code', async () => {
  await using space = await client.spaces.create({ runtime: 'nano' })
  await space.files.writeMany({
    'company/__init__.py': '',
    'company/orders.py': 'def of(day):\n    return [{"id": n, "customer": n % 3, "total": 10 * n} for n in range(1, 8)]\n',
    'company/customers.py': 'def get(n):\n    return {"id": n, "name": ["Ann", "Bo", "Cy"][n], "vip": n == 1}\n',
  })
  const cell = await space.code(
    [
      'import json',
      'from company import orders, customers',
      'vips = [o for o in orders.of("today") if customers.get(o["customer"])["vip"]]',
      'json.dump(vips, open("vips.json", "w"))',
      'sum(o["total"] for o in vips)',
    ].join('\n'),
  )
  assert.equal(await cell.text(), '120', cell.stderr)
  assert.equal((JSON.parse(await space.files.readText('vips.json')) as object[]).length, 3)
  assert.equal(await (await space.code('len(vips)')).text(), '3')
})

test('files of a run outlive its space', async () => {
  const space = await client.spaces.create({ runtime: 'nano' })
  const done = await space.exec("mkdir -p out && echo '# report' > out/report.md && echo no > other", { artifacts: ['out/**'] })
  await space.destroy()
  const [report, ...others] = await done.run.artifacts()
  assert.ok(report)
  assert.deepEqual(others, [])
  assert.deepEqual([report.path, report.size, report.mediaType], ['out/report.md', 9, 'text/markdown'])
  assert.equal(report.sha256, createHash('sha256').update('# report\n').digest('hex'))
  assert.equal(await report.text(), '# report\n')
})
