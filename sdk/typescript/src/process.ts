import { ValidationError } from './errors.js'
import { part, type CallOptions, type Transport } from './http.js'
import { fromBase64, toBase64, type Run, type WaitOptions } from './run.js'
import type { InputRequest, RunTerminal } from './schema.js'
import { ExecResult, shell } from './space.js'

/** A signal that a command can get. */
export type Signal = NonNullable<InputRequest['signal']>

/** The size of a terminal, in characters. */
export type Terminal = RunTerminal

/** How a command is started in the background. */
export interface StartOptions extends CallOptions {
  /** The working folder, below the files of the space. */
  cwd?: string | undefined
  /** Variables beside those of the space. */
  env?: Record<string, string> | undefined
  /** Milliseconds that the command may take; without it the command ends at the latest with its space. */
  commandMs?: number | undefined
  /** The command gets input while it runs: `write` and `closeStdin`. */
  stdin?: boolean | undefined
  /** The command runs in a terminal of this size. What it prints is standard output. */
  pty?: Terminal | undefined
  /** Your own name for the command, at most 100 characters. */
  tag?: string | undefined
  title?: string | undefined
  /** Who acts; the agent of the space unless named. */
  agent?: string | undefined
  /** How long its data are kept, as in `30d`. */
  retention?: string | undefined
}

/** A piece of what a command printed. */
export interface Output {
  channel: 'stdout' | 'stderr'
  /** The piece as text. A character that two pieces share comes with the second one. */
  text: string
  /** The piece as it was printed. */
  bytes: Uint8Array
  /** The place of the piece in the stream of the run: `output({ after })` goes on behind it. */
  id: number
}

/** The most that one request gives, in bytes. */
const PIECE = 65_536

/** A command that runs in the background, beside the other runs of its space. `Space.start` makes it and `Space.process` finds it again. */
export class Process {
  constructor(
    private readonly http: Transport,
    /** The run that the command is. */
    readonly run: Run,
    /** Whether the command runs in a terminal. */
    readonly terminal: boolean,
  ) {}

  /** The id of the run. */
  get id(): string {
    return this.run.id
  }

  /**
   * Gives the command input. More than 65,536 bytes go in pieces, in order. A RateLimitError with the code `input_full` says that the command
   * does not read; the pieces before it were given.
   */
  async write(input: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    const bytes = typeof input === 'string' ? new TextEncoder().encode(input) : input
    if (options.idempotencyKey !== undefined && bytes.length > PIECE) {
      throw new ValidationError(`input under one idempotency key has at most ${PIECE} bytes`, { code: 'input_too_large', status: 400 })
    }
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = toBase64(bytes.subarray(at, at + PIECE))
      await this.give(this.terminal ? { pty: piece } : { stdin: piece }, options)
    }
  }

  /** Ends the input. A terminal gets Ctrl-D. */
  closeStdin(options: CallOptions = {}): Promise<void> {
    return this.give({ close: true }, options)
  }

  /** Sends a signal to the process group of the command. `SIGKILL` ends all its processes. */
  signal(name: Signal, options: CallOptions = {}): Promise<void> {
    return this.give({ signal: name }, options)
  }

  /** Ends the run and every process of it. */
  async kill(options: CallOptions = {}): Promise<void> {
    await this.run.cancel(options)
  }

  /** Gives the terminal another size. */
  resize(cols: number, rows: number, options: CallOptions = {}): Promise<void> {
    return this.give({ resize: { cols, rows } }, options)
  }

  /**
   * Yields what the command prints, from its beginning or behind `after`, until it has ended. It resumes after a lost connection: nothing is
   * missed and nothing comes twice.
   */
  async *output(options: { signal?: AbortSignal | undefined; after?: number | undefined } = {}): AsyncGenerator<Output, void, undefined> {
    const { signal, after } = options
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    for await (const frame of this.run.stream({ signal, ...(after === undefined ? {} : { from: after + 1 }) })) {
      if (frame.event !== 'stdout' && frame.event !== 'stderr') continue
      const { data, encoding } = frame.data
      const bytes = encoding === 'base64' ? fromBase64(data) : new TextEncoder().encode(data)
      yield { channel: frame.event, text: decoders[frame.event].decode(bytes, { stream: true }), bytes, id: frame.id }
    }
  }

  /**
   * Waits until the command has ended, and returns what became of it. Throws a PolicyDeniedError or an ApprovalRequiredError where it was not
   * run. The result holds the first 256 KiB of each channel; `output` yields all.
   */
  async wait(options: WaitOptions = {}): Promise<ExecResult> {
    await this.run.wait(options)
    return new ExecResult(this.run, shell(this.run))
  }

  private async give(input: InputRequest, options: CallOptions): Promise<void> {
    await this.http.json({ ...options, method: 'POST', path: `/v1/runs/${part(this.id)}/input`, json: input })
  }
}
