import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agentbox, type ClientOptions } from './client.js'
import { start, type Started } from './program.js'

export interface DaemonOptions extends ClientOptions {
  /** The program; AGENTBOX_BIN, the package of this platform, else `agentbox` of the PATH. */
  program?: string | undefined
  /** Further arguments of `agentbox up`. */
  args?: string[] | undefined
  /** Milliseconds until it has to be ready; 60,000 unless given. */
  startMs?: number | undefined
}

/** A daemon of a test, with a data directory of its own that is removed at the end. */
export class Daemon implements AsyncDisposable {
  readonly client: Agentbox

  private constructor(
    private readonly started: Started,
    options: DaemonOptions,
    private readonly temporary: boolean,
  ) {
    this.client = new Agentbox({ ...options, url: started.url, key: started.key })
  }

  /** Starts a daemon on a free port of loopback and waits until it is ready. */
  static async start(options: DaemonOptions = {}): Promise<Daemon> {
    const home = options.home ?? (await mkdtemp(join(tmpdir(), 'agentbox-test-')))
    const { program, args, startMs } = options
    try {
      return new Daemon(await start({ home, program, args, startMs }), options, options.home === undefined)
    } catch (err) {
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
      throw err
    }
  }

  get url(): string {
    return this.started.url
  }
  get key(): string {
    return this.started.key
  }
  get home(): string {
    return this.started.home
  }

  /** What the daemon has written to its log so far. */
  log(): string {
    return this.started.log()
  }

  async stop(): Promise<void> {
    await this.started.stop()
    if (this.temporary) await rm(this.home, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
