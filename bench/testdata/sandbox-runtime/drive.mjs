// Runs the commands that it reads, one on a line, each in a sandbox of @anthropic-ai/sandbox-runtime, as a program that uses it as a library
// does: the proxies are started once. It says "ready", then for each command "output" at its first byte and "exit" with its code.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { SandboxManager } from '@anthropic-ai/sandbox-runtime'

await SandboxManager.initialize({
  network: { allowedDomains: [], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: ['.'], denyWrite: [] },
  ripgrep: { command: process.env.RIPGREP },
  socatPath: process.env.SOCAT,
})
console.log('ready')
for await (const command of createInterface({ input: process.stdin })) {
  const child = spawn(await SandboxManager.wrapWithSandbox(command), { shell: true, stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.once('data', () => console.log('output'))
  const code = await new Promise(end => child.once('close', end))
  SandboxManager.cleanupAfterCommand()
  console.log('exit ' + code)
}
await SandboxManager.reset()
