import { AgentboxError } from './errors.js'

/** The package of this platform that brings the program. */
const PACKAGE = typeof process === 'undefined' ? '' : `@agentbox/program-${process.platform}-${process.arch}`

/** program finds the program: AGENTBOX_BIN, the package of this platform, else `agentbox` of the PATH. Node, Bun and Deno only. */
export async function program(): Promise<string> {
  const own = process.env['AGENTBOX_BIN']
  if (own) return own
  const { createRequire } = await import('node:module')
  try {
    return createRequire(import.meta.url).resolve(`${PACKAGE}/bin/agentbox${process.platform === 'win32' ? '.exe' : ''}`)
  } catch {
    return 'agentbox' // the package is optional
  }
}

/** A daemon that this process has started. */
export interface Started {
  url: string
  key: string
  home: string
  stop(): Promise<void>
  /** What it has written to its log so far. */
  log(): string
}

/** start starts a daemon on a free port of loopback and waits until it is ready. It ends with this process. */
export async function start(options: { home: string; program?: string | undefined; args?: string[] | undefined; startMs?: number | undefined }): Promise<Started> {
  const [{ spawn }, fs, path] = await Promise.all([import('node:child_process'), import('node:fs/promises'), import('node:path')])
  const file = options.program ?? (await program())
  await fs.mkdir(options.home, { recursive: true, mode: 0o700 })
  const child = spawn(file, ['up', '--data', options.home, '--listen', '127.0.0.1:0', ...(options.args ?? [])], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  let failure: Error | undefined
  const keep = (chunk: Buffer): void => {
    said = (said + chunk.toString()).slice(-64 << 10)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  child.on('error', (err) => (failure = err))
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()))
  const end = (): void => void child.kill('SIGTERM')
  process.once('exit', end)
  const stop = async (): Promise<void> => {
    process.off('exit', end)
    if (child.pid === undefined) return
    if (child.exitCode === null && child.signalCode === null) {
      child.ref() // the process waits for its end
      end()
    }
    await ended
  }
  const until = Date.now() + (options.startMs ?? 60_000)
  for (;;) {
    if (failure || child.exitCode !== null || child.signalCode !== null) {
      await stop()
      throw new AgentboxError(`${file} did not start: ${failure?.message ?? said.trim().slice(-500)}`, {
        code: 'daemon_not_started',
        suggestion: `install ${PACKAGE}, set AGENTBOX_BIN, or put agentbox on the PATH`,
        cause: failure,
      })
    }
    try {
      const state = JSON.parse(await fs.readFile(path.join(options.home, 'daemon.json'), 'utf8')) as { addr: string; pid: number; phase?: string }
      if (state.pid === child.pid && !state.phase) {
        const key = (await fs.readFile(path.join(options.home, 'owner.key'), 'utf8')).trim()
        for (const stream of [child.stdout, child.stderr]) (stream as unknown as { unref?(): void }).unref?.()
        child.unref()
        return { url: `http://${state.addr}`, key, home: options.home, stop, log: () => said }
      }
    } catch {
      // it is not there yet
    }
    if (Date.now() > until) {
      await stop()
      throw new AgentboxError(`${file} was not ready in time: ${said.trim().slice(-500)}`, { code: 'daemon_not_started' })
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
