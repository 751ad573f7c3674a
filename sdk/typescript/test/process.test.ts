// Commands in the background, against a real daemon.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Agentbox, ApprovalRequiredError, PolicyDeniedError, ValidationError, type Output, type Process, type Space } from '../src/index.js'
import { Daemon } from '../src/testing.js'

let daemon: Daemon
let space: Space
before(async () => {
  daemon = await Daemon.start()
  space = await daemon.client.spaces.create({ runtime: 'heavy' })
})
after(() => daemon?.stop())

/** until reads a process until it has printed something. */
async function until(process: Process, said: string): Promise<string> {
  let text = ''
  for await (const piece of process.output()) {
    text += piece.text
    if (text.includes(said)) return text
  }
  throw new Error(`the command ended and had only printed ${JSON.stringify(text)}`)
}

test('input of any size goes to the command and closing it ends the command', async () => {
  const counting = await space.start('wc -c', { stdin: true, tag: 'count' })
  await counting.write('one\n')
  await counting.write(new Uint8Array(200_000).fill(97))
  await counting.closeStdin()
  const done = await counting.wait()
  assert.deepEqual([done.exitCode, done.stdout.trim()], [0, '200004'])
})

test('a command in the background holds up no other one, is found again, and gets signals', async () => {
  const serving = await space.start("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done", { tag: 'server' })
  await until(serving, 'up')
  assert.equal((await space.exec('echo beside')).stdout, 'beside\n')
  const found: string[] = []
  for await (const p of space.processes()) found.push(p.id)
  assert.deepEqual(found, [serving.id])
  const again = await space.process(serving.id)
  await again.signal('SIGTERM')
  const done = await again.wait()
  assert.deepEqual([done.exitCode, done.stdout], [7, 'up\nbye\n'])
  const run = await space.run([{ type: 'shell', command: 'true' }])
  await assert.rejects(space.process(run.id), ValidationError)
})

test('killing ends every process', async () => {
  const endless = await space.start('sleep 1000 & sleep 1000')
  await endless.kill()
  assert.equal(endless.run.status, 'cancelled')
})

test('output goes on behind the last piece after a lost connection, and a character is never cut', async () => {
  let broken = 0
  const flaky: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (!String(input).includes('/stream') || broken >= 3 || !answer.body) return answer
    broken++
    let left = 700 // the connection breaks after so many bytes
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, out) {
        if (left <= 0) throw new TypeError('terminated')
        out.enqueue(chunk.subarray(0, left))
        left -= chunk.length
      },
    })
    return new Response(answer.body.pipeThrough(cut), { status: answer.status, headers: answer.headers })
  }
  const shaky = new Agentbox({ url: daemon.url, key: daemon.key, fetch: flaky })
  const counting = await (await shaky.spaces.get(space.id)).start("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done; printf '\\303'; sleep 0.3; printf '\\251'")
  const pieces: Output[] = []
  for await (const piece of counting.output()) pieces.push(piece)
  assert.equal(pieces.map((p) => p.text).join(''), '1\n2\n3\n4\n5\n6\n7\n8\né')
  assert.equal(broken, 3)
  const rest: string[] = []
  for await (const piece of counting.output({ after: pieces[0].id })) rest.push(piece.text)
  assert.equal(rest.join(''), pieces.slice(1).map((p) => p.text).join(''))
})

const ASK = `import os
print(*os.get_terminal_size())
line = input()
print(*os.get_terminal_size(), "got", line)`

test('a terminal has a size, takes keys, and is asked about before it begins', async () => {
  const shell = await space.start(`python3 -c '${ASK}'`, { pty: { cols: 80, rows: 24 } })
  const asked = shell.wait({ onApproval: () => 'approve' })
  await until(shell, '80 24')
  await shell.resize(100, 30)
  await shell.write('hello\r')
  const done = await asked
  assert.match(done.stdout, /80 24\r\nhello\r\n100 30 got hello/)
})

test('what policy refuses or asks about ends waiting with its error', async () => {
  await assert.rejects((await space.start('sudo reboot')).wait(), PolicyDeniedError)
  await space.files.write('old/a', 'x')
  const asking = await space.start('rm -r old')
  await assert.rejects(asking.wait(), ApprovalRequiredError)
  assert.equal((await asking.wait({ onApproval: () => 'approve' })).exitCode, 0)
})

test('nano says what it lacks', async () => {
  await using nano = await daemon.client.spaces.create({ runtime: 'nano' })
  assert.equal((await (await nano.start('echo hi')).wait()).stdout, 'hi\n')
  await assert.rejects((await nano.start('cat', { stdin: true })).wait(), { code: 'tier_lacks' })
})
