import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agentbox, type ClientOptions } from './client.js'
import { discover } from './discover.js'
import { AgentboxError } from './errors.js'

export interface DaemonOptions extends ClientOptions {
  /** The program; AGENTBOX_BIN, else `agentbox` of the PATH. */
  program?: string | undefined
  /** Further arguments of `agentbox up`. */
  args?: string[] | undefined
  /** Milliseconds until it has to be ready; 60,000 unless given. */
  startMs?: number | undefined
}

/** A daemon of a test, with a data directory of its own that is removed at the end. */
export class Daemon implements AsyncDisposable {
  private constructor(
    readonly client: Agentbox,
    readonly url: string,
    readonly key: string,
    readonly home: string,
    private readonly stopping: () => Promise<void>,
    /** What the daemon has written to its log so far. */
    readonly log: () => string,
  ) {}

  /** Starts a daemon on a free port of loopback and waits until it is ready. */
  static async start(options: DaemonOptions = {}): Promise<Daemon> {
    const home = options.home ?? (await mkdtemp(join(tmpdir(), 'agentbox-test-')))
    const program = options.program ?? process.env['AGENTBOX_BIN'] ?? 'agentbox'
    const child = spawn(program, ['up', '--data', home, '--listen', '127.0.0.1:0', ...(options.args ?? [])], { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    let failure: Error | undefined
    const keep = (chunk: Buffer): void => {
      said = (said + chunk.toString()).slice(-64 << 10)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', (err) => (failure = err))
    const ended = new Promise<void>((resolve) => child.on('close', () => resolve()))
    const stop = async (): Promise<void> => {
      if (child.exitCode === null && child.signalCode === null && child.pid) child.kill('SIGTERM')
      if (child.pid) await ended
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
    }
    const until = Date.now() + (options.startMs ?? 60_000)
    for (;;) {
      if (failure || child.exitCode !== null || child.signalCode !== null) {
        await stop()
        throw new AgentboxError(`${program} did not start: ${failure?.message ?? said.trim().slice(-500)}`, { code: 'daemon_not_started', cause: failure })
      }
      try {
        const found = await discover({ home, url: undefined, key: undefined })
        const answer = await fetch(`${found.url}/readyz`)
        await answer.arrayBuffer()
        if (answer.ok) {
          const client = new Agentbox({ ...options, url: found.url, key: found.key })
          return new Daemon(client, found.url, found.key, home, stop, () => said)
        }
      } catch {
        // not there yet
      }
      if (Date.now() > until) {
        await stop()
        throw new AgentboxError(`${program} was not ready in time: ${said.trim().slice(-500)}`, { code: 'daemon_not_started' })
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  stop(): Promise<void> {
    return this.stopping()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stopping()
  }
}
