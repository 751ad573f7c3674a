import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agentbox, type ClientOptions } from './client.js'
import { lives } from './discover.js'
import { start, type Started } from './program.js'

export interface DaemonOptions extends ClientOptions {
  /** The program; AGENTBOX_BIN, the package of this platform, else `agentbox` of the PATH. */
  program?: string | undefined
  /** Further arguments of `agentbox up`. */
  args?: string[] | undefined
  /** Milliseconds until it has to be ready; 60,000 unless given. */
  startMs?: number | undefined
}

/** What the names of temporary data directories begin with; the process that made one follows. */
const PREFIX = 'agentbox-test-'

/**
 * A daemon of a test, with a data directory of its own that is removed at the end. Where the process of a test was killed, the next start
 * ends the daemon that it left behind and removes its data directory.
 */
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
    const home = options.home ?? (await temporary())
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

/** temporary makes a data directory, after it has removed those of processes that live no more. */
async function temporary(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const maker = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]
    if (maker !== undefined && !lives(Number(maker))) await sweep(join(tmpdir(), name)).catch(() => undefined) // it is another user's, perhaps
  }
  return mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`))
}

/** sweep ends the daemon of a data directory that nobody uses any more, and removes the directory. */
async function sweep(home: string): Promise<void> {
  const state = await readFile(join(home, 'daemon.json'), 'utf8').catch(() => undefined)
  const pid = state === undefined ? undefined : (JSON.parse(state) as { pid: number }).pid
  if (pid !== undefined && lives(pid)) {
    // A number may have been given to another process meanwhile. Where that cannot be told, nothing is ended and the directory stays.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (!command.split('\0').includes(home)) {
      if (command === '') return
    } else {
      process.kill(pid, 'SIGTERM')
      for (const until = Date.now() + 10_000; lives(pid) && Date.now() < until; ) await new Promise((resolve) => setTimeout(resolve, 20))
      if (lives(pid)) return
    }
  }
  await rm(home, { recursive: true, force: true })
}
