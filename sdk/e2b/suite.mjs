// The cases of the unmodified packages of E2B for Node against a daemon of Agentbox.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(process.env.E2B_MODULES + '/')
const load = async (name) => import(pathToFileURL(require.resolve(name)).href)
const e2b = await load('e2b')
const { Sandbox } = e2b
const Interpreter = (await load('@e2b/code-interpreter')).Sandbox

const policy = { 'agentbox.policy': 'permissive' }
const box = await Sandbox.create({ timeoutMs: 300_000, metadata: { suite: 'node', ...policy }, envs: { COLOUR: 'blue' } })
const coder = await Interpreter.create({ timeoutMs: 300_000 })

// approve answers the question that waits, as the person does whom policy asks about a shell that gets input.
const approve = async () => {
  const base = process.env.E2B_API_URL.replace(/\/e2b$/, '')
  const key = Buffer.from(process.env.E2B_API_KEY.replace(/^e2b_/, ''), 'hex').toString()
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  for (let i = 0; i < 100; i++) {
    const { approvals } = await (await fetch(`${base}/v1/approvals?status=pending`, { headers })).json()
    if (approvals.length) {
      const id = approvals[0].approval_id ?? approvals[0].id
      const r = await fetch(`${base}/v1/approvals/${id}/decide`, { method: 'POST', headers, body: '{"decision":"approve"}' })
      assert.equal(r.status, 200)
      return
    }
    await new Promise((done) => setTimeout(done, 100))
  }
  assert.fail('no question waits')
}

// watched watches a folder, and returns what is told and a function that waits for an event.
const watched = async (sandbox, folder, options = {}) => {
  const seen = []
  let ended = false
  const handle = await sandbox.files.watchDir(folder, (e) => seen.push(`${e.type} ${e.name}`), {
    ...options,
    onExit: () => {
      ended = true
    },
  })
  const until = async (...wanted) => {
    for (let i = 0; i < 200 && !wanted.every((w) => (w === 'end' ? ended : seen.includes(w))); i++) {
      await new Promise((done) => setTimeout(done, 50))
    }
    for (const w of wanted) assert.ok(w === 'end' ? ended : seen.includes(w), `want ${w}, told ${seen.join(', ')}`)
  }
  return { handle, seen, until }
}

const cases = {
  async 'a folder is watched'() {
    await box.files.makeDir('watched/deep')
    await box.files.write('watched/old.txt', 'old')
    const w = await watched(box, 'watched')
    await box.files.write('watched/new.txt', 'new')
    await w.until('create new.txt', 'write new.txt')
    await box.files.write('watched/old.txt', 'changed')
    await w.until('write old.txt')
    await box.files.rename('watched/new.txt', 'watched/other.txt')
    await w.until('rename new.txt', 'create other.txt')
    await box.files.write('watched/deep/f.txt', 'not told')
    await box.files.remove('watched/other.txt')
    await w.until('remove other.txt')
    assert.ok(!w.seen.some((s) => s.includes('f.txt')), w.seen.join(', '))
    await w.handle.stop()
    const count = w.seen.length
    await box.files.write('watched/late.txt', 'x')
    assert.equal(w.seen.length, count)
  },
  async 'a folder is watched recursively, until it goes'() {
    await box.files.makeDir('tree-watched/a')
    const w = await watched(box, 'tree-watched', { recursive: true })
    await box.commands.run('mkdir -p /workspace/tree-watched/a/b && echo x > /workspace/tree-watched/a/b/c.txt')
    await w.until('create a/b', 'create a/b/c.txt')
    await box.files.remove('tree-watched')
    await w.until('remove a/b/c.txt', 'remove a/b', 'remove a', 'end')
  },
  async 'a folder that is not there is not watched'() {
    await assert.rejects(watched(box, 'no/such/folder'), e2b.FileNotFoundError ?? e2b.NotFoundError)
    await assert.rejects(watched(box, '/etc'), e2b.SandboxError)
  },
  async 'withheld files are not told'() {
    const other = await Sandbox.create({ timeoutMs: 60_000 })
    const w = await watched(other, '/home/user', { recursive: true })
    await other.files.write('.env', 'SECRET=1')
    await other.files.write('seen.txt', 'x')
    await w.until('create seen.txt')
    assert.ok(!w.seen.some((s) => s.includes('.env')), w.seen.join(', '))
    await other.kill()
  },
  async 'a wrong key is an authentication error'() {
    await assert.rejects(Sandbox.create({ apiKey: 'e2b_' + '00'.repeat(8) }), e2b.AuthenticationError)
  },
  async 'a sandbox runs and is killed'() {
    const other = await Sandbox.create({ timeoutMs: 60_000 })
    assert.equal(await other.isRunning(), true)
    assert.equal(await other.kill(), true)
    assert.equal(await other.isRunning(), false)
    assert.equal(await Sandbox.kill(other.sandboxId), false)
    await assert.rejects(other.commands.run('true'), e2b.SandboxError)
    await assert.rejects(Sandbox.connect(other.sandboxId), e2b.SandboxNotFoundError ?? e2b.NotFoundError)
  },
  async 'the info has metadata'() {
    const info = await box.getInfo()
    assert.equal(info.sandboxId, box.sandboxId)
    assert.equal(info.metadata.suite, 'node')
  },
  async 'the timeout is set anew'() {
    await box.setTimeout(900_000)
    const left = (await box.getInfo()).endAt - Date.now()
    assert.ok(left > 800_000, String(left))
  },
  async 'connecting finds the same sandbox'() {
    const again = await Sandbox.connect(box.sandboxId)
    await again.files.write('connected.txt', 'x')
    assert.equal(await box.files.read('connected.txt'), 'x')
  },
  async 'the list finds sandboxes by metadata'() {
    const found = await Sandbox.list({ query: { metadata: { suite: 'node' } } }).nextItems()
    assert.ok(found.some((s) => s.sandboxId === box.sandboxId))
    assert.deepEqual(await Sandbox.list({ query: { metadata: { suite: 'a b&c' } } }).nextItems(), [])
  },
  async 'the list has pages'() {
    const pages = Sandbox.list({ limit: 1 })
    const seen = []
    while (pages.hasNext) seen.push(...(await pages.nextItems()).map((s) => s.sandboxId))
    assert.ok(seen.includes(box.sandboxId) && seen.includes(coder.sandboxId), seen.join())
    assert.equal(new Set(seen).size, seen.length)
  },
  async 'metrics have the limits'() {
    assert.ok((await box.getMetrics())[0].memTotal > 0)
  },
  async 'an unknown template is refused'() {
    await assert.rejects(Sandbox.create('no-such-template'), /no template/)
  },
  async 'a paused sandbox goes on where it was'() {
    const one = await Sandbox.create({ timeoutMs: 60_000, metadata: { suite: 'paused', 'agentbox.policy': 'permissive' } })
    const ticks = await one.commands.run('while :; do date +%N >> n; sleep 0.02; done', { background: true, timeoutMs: 0 })
    while (!(await one.files.exists('n'))) await new Promise((f) => setTimeout(f, 20))
    assert.equal(await one.pause(), true)
    assert.equal(await one.pause(), false)
    const before = await one.files.read('n')
    await new Promise((f) => setTimeout(f, 200))
    assert.equal(await one.files.read('n'), before)
    assert.equal((await one.getInfo()).state, 'paused')
    const found = async (state) => (await Sandbox.list({ query: { state: [state] } }).nextItems()).some((s) => s.sandboxId === one.sandboxId)
    assert.ok((await found('paused')) && !(await found('running')))
    assert.equal(await one.isRunning(), false)
    await one.connect({ timeoutMs: 60_000 })
    assert.ok(await found('running'))
    while ((await one.files.read('n')) === before) await new Promise((f) => setTimeout(f, 20))
    await ticks.kill()
    await one.kill()
  },
  async 'network rules are refused at once'() {
    await assert.rejects(Sandbox.create({ network: { allowOut: ['1.1.1.1'] } }), /not offered/)
  },
  async 'a snapshot outlives its sandbox'() {
    const first = await Sandbox.create({ timeoutMs: 60_000 })
    await first.files.write('kept.txt', 'kept')
    const made = await first.createSnapshot()
    await first.kill()
    const again = await Sandbox.create(made.snapshotId, { timeoutMs: 60_000 })
    assert.equal(await again.files.read('kept.txt'), 'kept')
    await again.kill()
    await Sandbox.deleteSnapshot(made.snapshotId)
    await assert.rejects(Sandbox.create(made.snapshotId), /no snapshot/)
  },
  async 'a file is written and read'() {
    const entry = await box.files.write('hello.txt', 'grüße 🌍')
    assert.equal(entry.path, '/home/user/hello.txt')
    for (const path of ['/home/user/hello.txt', '/workspace/hello.txt', 'hello.txt']) assert.equal(await box.files.read(path), 'grüße 🌍')
  },
  async 'bytes are bytes'() {
    const raw = new Uint8Array(100_000).map((_, i) => i % 256)
    await box.files.write('raw.bin', raw.buffer)
    assert.deepEqual(Buffer.from(await box.files.read('raw.bin', { format: 'bytes' })), Buffer.from(raw))
  },
  async 'a blob and a stream are uploaded'() {
    await box.files.write('blob.txt', new Blob(['blob']))
    assert.equal(await box.files.read('blob.txt'), 'blob')
    await box.files.write('stream.txt', new Blob(['streamed']).stream())
    assert.equal(await box.files.read('stream.txt'), 'streamed')
  },
  async 'many files are written at once'() {
    const made = await box.files.write([0, 1, 2].map((i) => ({ path: `many/${i}/f.txt`, data: String(i) })))
    assert.deepEqual(made.map((m) => m.path), [0, 1, 2].map((i) => `/home/user/many/${i}/f.txt`))
    assert.equal(await box.files.read('many/2/f.txt'), '2')
  },
  async 'a name with spaces and signs'() {
    await box.files.write('a folder/ü & + ?#.txt', 'x')
    assert.equal(await box.files.read('a folder/ü & + ?#.txt'), 'x')
  },
  async 'a missing file is not found'() {
    await assert.rejects(box.files.read('missing'), e2b.FileNotFoundError ?? e2b.NotFoundError)
    await assert.rejects(box.files.getInfo('missing'), e2b.FileNotFoundError ?? e2b.NotFoundError)
    assert.equal(await box.files.exists('missing'), false)
    assert.equal(await box.files.exists('missing/deeper'), false)
  },
  async 'a listing has depths'() {
    await box.files.write('tree/a/b/c.txt', 'x')
    assert.deepEqual((await box.files.list('tree')).map((e) => e.name), ['a'])
    assert.deepEqual((await box.files.list('tree', { depth: 2 })).map((e) => e.path).sort(), ['/home/user/tree/a', '/home/user/tree/a/b'])
  },
  async 'the info of a file'() {
    await box.files.write('told.txt', '12345')
    const entry = await box.files.getInfo('told.txt')
    assert.deepEqual([entry.name, Number(entry.size), entry.type], ['told.txt', 5, 'file'])
  },
  async 'a folder is made once'() {
    assert.equal(await box.files.makeDir('made/deep'), true)
    assert.equal(await box.files.makeDir('made/deep'), false)
  },
  async 'a file is renamed and removed'() {
    await box.files.write('old.txt', 'x')
    assert.equal((await box.files.rename('old.txt', 'moved/new.txt')).path, '/home/user/moved/new.txt')
    await box.files.remove('moved/new.txt')
    await box.files.remove('moved')
    assert.equal(await box.files.exists('moved'), false)
  },
  async 'files of tmp are reached by commands'() {
    await box.files.write('/tmp/outside/a.txt', 'outside')
    assert.equal(await box.files.read('/tmp/outside/a.txt'), 'outside')
    assert.deepEqual((await box.files.list('/tmp/outside')).map((e) => e.name), ['a.txt'])
    await box.files.write('/tmp/directly.txt', 'in a folder that every sandbox has')
    assert.equal(await box.files.read('/tmp/directly.txt'), 'in a folder that every sandbox has')
  },
  async 'signed addresses need no key'() {
    await box.files.write('signed file.txt', 'signed')
    assert.equal(await (await fetch(await box.downloadUrl('signed file.txt'))).text(), 'signed')
    const url = await box.uploadUrl('sent.txt', { useSignatureExpiration: 30_000 })
    const form = new FormData()
    form.append('file', new Blob(['sent']), 'sent.txt')
    assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200)
    assert.equal(await box.files.read('sent.txt'), 'sent')
    assert.equal((await fetch(url)).status, 401)
  },
  async 'a command has its output'() {
    const r = await box.commands.run('echo out; echo err >&2')
    assert.deepEqual([r.stdout, r.stderr, r.exitCode], ['out\n', 'err\n', 0])
  },
  async 'a failing command is an error'() {
    await assert.rejects(box.commands.run('echo no >&2; exit 7'), (e) => e instanceof e2b.CommandExitError && e.exitCode === 7 && e.stderr === 'no\n')
  },
  async 'the environment and the folder of a command'() {
    assert.equal((await box.commands.run('echo $COLOUR $SHAPE', { envs: { SHAPE: 'round' } })).stdout, 'blue round\n')
    assert.equal((await box.commands.run('pwd', { cwd: '/' })).stdout, '/\n')
  },
  async 'home is the folder of the files'() {
    await box.files.write('homely.txt', 'here')
    assert.equal((await box.commands.run('cat /home/user/homely.txt')).stdout, 'here')
  },
  async 'output is told as it comes'() {
    let said = ''
    await box.commands.run('for i in 1 2 3; do echo $i; sleep 0.1; done', { onStdout: (text) => (said += text) })
    assert.equal(said, '1\n2\n3\n')
  },
  async 'characters are whole'() {
    assert.equal((await box.commands.run("printf 'ä€🌍%.0s' $(seq 500)")).stdout, 'ä€🌍'.repeat(500))
  },
  async 'a command that takes too long ends'() {
    await assert.rejects(box.commands.run('sleep 60', { timeoutMs: 1000 }), e2b.TimeoutError)
  },
  async 'a background command is waited for'() {
    const handle = await box.commands.run('sleep 0.2; echo done', { background: true })
    assert.ok(handle.pid > 0)
    assert.equal((await handle.wait()).stdout, 'done\n')
  },
  async 'a port is reached by its host'() {
    const one = await Sandbox.create({ timeoutMs: 60_000, metadata: { suite: 'port', ...policy } })
    await one.files.write('web/page.txt', 'from the sandbox')
    await one.commands.run('python3 -m http.server 8080 --directory web', { background: true, timeoutMs: 0 })
    const { hostname, port } = new URL(process.env.E2B_API_URL)
    // The name below localhost is found by browsers, and by some hosts.
    const get = () => new Promise((done, fail) => http.get({
      hostname, port, path: '/page.txt', headers: { Host: one.getHost(8080), 'E2B-Traffic-Access-Token': one.trafficAccessToken },
    }, async (answer) => done([answer.statusCode, Buffer.concat(await answer.toArray()).toString()])).on('error', fail))
    let got = await get()
    for (let i = 0; i < 100 && got[0] === 502; i++) {
      await new Promise((f) => setTimeout(f, 100))
      got = await get()
    }
    assert.deepEqual(got, [200, 'from the sandbox'])
    await one.kill()
  },
  async 'a command gets input'() {
    const handle = await box.commands.run('head -n 1', { background: true, stdin: true })
    await box.commands.sendStdin(handle.pid, 'typed\n')
    assert.equal((await handle.wait()).stdout, 'typed\n')
  },
  async 'the end of the input'() {
    const handle = await box.commands.run('cat', { background: true, stdin: true })
    await box.commands.sendStdin(handle.pid, 'all')
    await box.commands.closeStdin(handle.pid)
    assert.equal((await handle.wait()).stdout, 'all')
  },
  async 'commands are listed, connected and killed'() {
    const handle = await box.commands.run('echo begun; sleep 100', { background: true })
    assert.ok((await box.commands.list()).some((p) => p.pid === handle.pid))
    const again = await box.commands.connect(handle.pid)
    assert.equal(await box.commands.kill(handle.pid), true)
    await assert.rejects(again.wait(), e2b.CommandExitError)
    await assert.rejects(handle.wait(), e2b.CommandExitError)
    assert.equal(await box.commands.kill(4242), false)
  },
  async 'a terminal'() {
    let seen = ''
    const handle = await box.pty.create({ cols: 80, rows: 24, onData: (data) => (seen += Buffer.from(data).toString()), timeoutMs: 30_000 })
    await approve()
    await box.pty.resize(handle.pid, { cols: 100, rows: 30 })
    await box.pty.sendInput(handle.pid, new TextEncoder().encode('stty size; exit 3\n'))
    await assert.rejects(handle.wait(), (e) => e.exitCode === 3)
    assert.ok(seen.includes('30 100'), seen)
  },
  async 'the value of the last line'() {
    const e = await coder.runCode('x = 20\nx + 22')
    assert.equal(e.text, '42')
    assert.equal(e.results[0].isMainResult, true)
  },
  async 'variables stay'() {
    await coder.runCode("kept = 'here'")
    assert.equal((await coder.runCode('kept')).text, "'here'")
  },
  async 'prints with all characters'() {
    let said = ''
    const e = await coder.runCode("print('ü€🌍' * 300)", { onStdout: (m) => (said += m.line) })
    assert.equal(said, 'ü€🌍'.repeat(300) + '\n')
    assert.equal(e.error, undefined)
  },
  async 'an error has a name, a value and a trace'() {
    const { error } = await coder.runCode("raise ValueError('no number')")
    assert.deepEqual([error.name, error.value], ['ValueError', 'no number'])
    assert.match(error.traceback, /Traceback/)
  },
  async 'a context has its own variables'() {
    const context = await coder.createCodeContext({ language: 'python' })
    await coder.runCode('only = 1', { context })
    assert.equal((await coder.runCode('only', { context })).text, '1')
    assert.equal((await coder.runCode('only')).error.name, 'NameError')
    assert.ok((await coder.listCodeContexts()).some((c) => c.id === context.id))
    await coder.restartCodeContext(context)
    await coder.removeCodeContext(context)
    assert.ok(!(await coder.listCodeContexts()).some((c) => c.id === context.id))
  },
  async 'javascript and typescript'() {
    assert.equal((await coder.runCode('6 * 7', { language: 'javascript' })).text, '42')
    assert.equal((await coder.runCode('const n: number = 5\nn + 1', { language: 'typescript' })).text, '6')
    assert.match((await coder.runCode("throw new TypeError('odd')", { language: 'javascript' })).error.name, /TypeError/)
  },
  async 'an html form is a result'() {
    const e = await coder.runCode("class T:\n    def _repr_html_(self): return '<b>ü</b>'\nT()")
    assert.equal(e.results[0].html, '<b>ü</b>')
  },
  async 'code that takes too long'() {
    await coder.runCode("before = 'kept'")
    await assert.rejects(coder.runCode('while True: pass', { timeoutMs: 1000 }), e2b.TimeoutError)
    assert.equal((await coder.runCode('before')).text, "'kept'")
  },
  async 'a context has a folder'() {
    await coder.files.makeDir('deeper')
    const context = await coder.createCodeContext({ cwd: '/home/user/deeper' })
    assert.equal((await coder.runCode('import os; os.getcwd()', { context })).text, "'/workspace/deeper'")
  },
  async 'variables of the environment'() {
    assert.equal((await coder.runCode("import os; os.environ['WORD']", { envs: { WORD: 'said' } })).text, "'said'")
  },
  async 'all forms of a value'() {
    const [r] = (
      await coder.runCode(`class T:
    def _repr_svg_(self): return '<svg/>'
    def _repr_markdown_(self): return '# T'
    def _repr_latex_(self): return '$x$'
    def _repr_json_(self): return {'a': [1]}
display(T())`)
    ).results
    assert.deepEqual([r.svg, r.markdown, r.latex, r.json, r.isMainResult], ['<svg/>', '# T', '$x$', { a: [1] }, false])
  },
  async 'charts of lines, bars and slices'() {
    const drawn = async (code) => {
      const { results, error } = await coder.runCode('import matplotlib.pyplot as plt\n' + code + '\nplt.show()')
      assert.equal(error, undefined)
      assert.ok(results[0].png.startsWith('iVBOR'))
      return results[0].chart
    }
    const line = await drawn("plt.plot([1, 2], [3, 4], label='l')")
    assert.deepEqual([line.type, line.elements], ['line', [{ label: 'l', points: [[1, 3], [2, 4]] }]])
    const bar = await drawn("plt.bar(['a', 'b'], [3, 5])")
    assert.deepEqual([bar.type, bar.elements.map((e) => [e.label, Number(e.value)])], ['bar', [['a', 3], ['b', 5]]])
    const pie = await drawn("plt.pie([1, 3], labels=['x', 'y'])")
    assert.deepEqual([pie.type, pie.elements], ['pie', [{ label: 'x', angle: 90, radius: 1 }, { label: 'y', angle: 270, radius: 1 }]])
  },
  async 'variables of javascript stay'() {
    await coder.runCode('const n: number = 5; function twice(v: number) { return 2 * v }', { language: 'ts' })
    assert.equal((await coder.runCode('await Promise.resolve(twice(n))', { language: 'js' })).text, '10')
  },
  async 'executions are counted'() {
    const first = (await coder.runCode('1')).executionCount
    assert.equal((await coder.runCode('2')).executionCount, first + 1)
  },
  async 'files and code share the folder'() {
    await coder.files.write('shared.txt', 'from outside')
    assert.equal((await coder.runCode("open('/home/user/shared.txt').read()")).text, "'from outside'")
  },
  async 'an unknown language is refused'() {
    await assert.rejects(coder.runCode('1', { language: 'cobol' }), e2b.SandboxError)
  },
  async 'nano has contexts too'() {
    const small = await Interpreter.create({ timeoutMs: 60_000, metadata: { 'agentbox.runtime': 'nano' } })
    await small.runCode('x = 20')
    assert.equal((await small.runCode('x + 22')).text, '42')
    await small.kill()
  },
  async 'a file is there or not'() {
    await box.files.write('there.txt', 'x')
    assert.deepEqual([await box.files.exists('there.txt'), await box.files.exists('not-there.txt')], [true, false])
  },
  async 'a file is replaced whole'() {
    await box.files.write('replaced.txt', 'a long first text')
    const info = await box.files.write('replaced.txt', 'short')
    assert.deepEqual([info.path, await box.files.read('replaced.txt')], ['/home/user/replaced.txt', 'short'])
  },
  async 'the empty file'() {
    await box.files.write('empty.txt', '')
    assert.equal(await box.files.read('empty.txt'), '')
  },
  async 'a large file stays whole'() {
    const raw = randomBytes(6 << 20)
    await box.files.write('large.bin', new Blob([raw]).stream())
    const back = Buffer.from(await box.files.read('large.bin', { format: 'bytes' }))
    assert.ok(back.equals(raw))
  },
  async 'a path that leaves the files does not'() {
    await assert.rejects(box.files.read('../../etc/shadow'), e2b.SandboxError)
  },
  async 'a folder is removed with its files'() {
    await box.files.write('gone/a/b.txt', 'x')
    await box.files.remove('gone')
    assert.equal(await box.files.exists('gone/a/b.txt'), false)
  },
  async 'sandboxes do not share files'() {
    await box.files.write('mine.txt', 'x')
    const other = await Sandbox.create({ timeoutMs: 60_000 })
    assert.equal(await other.files.exists('mine.txt'), false)
    await other.kill()
  },
  async 'errors and output are two streams'() {
    const said = { out: '', err: '' }
    const r = await box.commands.run('echo out; echo err >&2', {
      onStdout: (s) => (said.out += s),
      onStderr: (s) => (said.err += s),
    })
    assert.deepEqual([r.stdout, r.stderr, said.out, said.err], ['out\n', 'err\n', 'out\n', 'err\n'])
  },
  async 'long output is whole'() {
    const { stdout } = await box.commands.run('seq 1 100000')
    assert.deepEqual([stdout.length, stdout.slice(-7)], [588895, '100000\n'])
  },
  async 'an exit code is told'() {
    for (const code of [1, 2, 126, 255]) {
      const e = await box.commands.run(`exit ${code}`).catch((e) => e)
      assert.ok(e instanceof e2b.CommandExitError)
      assert.equal(e.exitCode, code)
    }
  },
  async 'commands run side by side'() {
    const began = Date.now()
    await Promise.all([1, 2, 3, 4].map((n) => box.commands.run(`sleep 1; echo ${n}`)))
    assert.ok(Date.now() - began < 3500, `${Date.now() - began} ms`)
  },
  async 'policy denies with its sentence'() {
    const strict = await Sandbox.create({ timeoutMs: 60_000, metadata: { 'agentbox.policy': 'restrictive' } })
    await assert.rejects(strict.commands.run('curl https://example.com'), e2b.SandboxError)
    await strict.kill()
  },
  async 'an unknown sandbox is not killed'() {
    assert.equal(await Sandbox.kill('spc_01M0000000000000000000000'), false)
  },
}

let failed = 0
for (const [name, run] of Object.entries(cases)) {
  try {
    await run()
  } catch (e) {
    failed++
    console.log(`FAIL ${name}\n${e.stack}`)
  }
}
await box.kill()
await coder.kill()
console.log(JSON.stringify({ cases: Object.keys(cases).length, failed }))
process.exit(failed ? 1 : 0)
