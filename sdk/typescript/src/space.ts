import { AgentboxError, OperationError, PolicyDeniedError, ValidationError } from './errors.js'
import { Files } from './files.js'
import { part, type CallOptions, type Transport } from './http.js'
import { Ports } from './ports.js'
import { Process, type StartOptions } from './process.js'
import { Run, fromBase64, output, type Operation, type RunFrame, type RunOptions, type WaitOptions } from './run.js'
import type {
  ApprovalList, ContextList, RunDisplay, RunEvents, RunLack, RunList, RunResultShell, RunShown, SnapshotEntry, SnapshotList, Space as SpaceDocument, SpaceContext, SpaceDiff, SpaceRewound,
} from './schema.js'

/** Languages of code that is run by itself. */
export type Language = 'python' | 'javascript' | 'typescript'

export interface ExecOptions extends RunOptions {
  /** The working folder, below the files of the space. */
  cwd?: string | undefined
  /** Variables beside those of the space. */
  env?: Record<string, string> | undefined
  /** Milliseconds that the command may take: 1,000 to 3,600,000, 30,000 by default, and never more than policy allows. */
  commandMs?: number | undefined
}

export interface CodeOptions extends ExecOptions {
  /** `python` unless given. */
  language?: Language | undefined
  /** The interpreter that keeps the variables between calls; `main` unless given, one for each language. */
  context?: string | undefined
}

/** What became of a command. A command that ended with another code than 0 is a result, and no error. */
export class ExecResult {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number
  readonly durationMs: number
  /** Whether the command was ended because its time was over. */
  readonly timedOut: boolean
  /** The bound that ended the command, such as `timeout_ms` or `memory_bytes`. */
  readonly limit: string | undefined
  /** What the command wanted and the tier has not. */
  readonly lacks: RunLack[]
  /** The tier in which it ran. */
  readonly tier: string | undefined

  constructor(
    readonly run: Run,
    /** The result as the daemon sent it. */
    readonly raw: RunResultShell,
  ) {
    this.stdout = text(raw.stdout, raw.encoding)
    this.stderr = text(raw.stderr, raw.encoding)
    this.exitCode = raw.exitCode ?? -1
    this.durationMs = raw.durationMs ?? 0
    this.timedOut = raw.timedOut ?? false
    this.limit = raw.limit
    this.lacks = raw.lacks ?? []
    this.tier = raw.tier
  }

  /** Whether the command ended with 0. */
  get ok(): boolean {
    return this.exitCode === 0
  }

  /** Returns the result if the command ended with 0, and throws an OperationError otherwise. */
  orThrow(): this {
    if (this.ok) return this
    const said = this.stderr.trim().split('\n').at(-1) ?? ''
    throw new OperationError(`the command ended with ${this.exitCode}${this.limit ? ` at its limit ${this.limit}` : ''}${said ? `: ${said}` : ''}`, {
      code: this.limit ? 'limit_reached' : 'command_failed',
      suggestion: this.lacks.length > 0 ? `the tier lacks ${this.lacks.map((l) => l.name).join(', ')}` : undefined,
    })
  }

  toString(): string {
    return this.stdout
  }
}

/** What became of a cell of code. */
export class CodeResult extends ExecResult {
  /** What the cell has shown beside its output: the value of its last line, charts, tables. */
  readonly displays: Display[]

  constructor(http: Transport, run: Run, raw: RunResultShell) {
    super(run, raw)
    this.displays = (raw.displays ?? []).map((d) => new Display(http, d))
  }

  /** The value of the last line, in its plainest form; undefined where there is none. */
  async text(options: CallOptions = {}): Promise<string | undefined> {
    const value = this.displays.filter((d) => d.isResult)
    return (value.find((d) => d.mimeType.startsWith('text/plain')) ?? value[0])?.text(options)
  }
}

/** Something that code has shown. One value may come in several forms, which share its number. */
export class Display {
  readonly artifactId: string
  readonly mimeType: string
  readonly sizeBytes: number
  /** Whether it is the value of the cell's last line. */
  readonly isResult: boolean
  /** The number of the value, of which this is one form. */
  readonly value: number

  constructor(
    private readonly http: Transport,
    readonly raw: RunDisplay,
  ) {
    this.artifactId = raw.artifact_id
    this.mimeType = raw.mime_type
    this.sizeBytes = raw.size_bytes
    this.isResult = raw.result ?? false
    this.value = raw.value
  }

  bytes(options: CallOptions = {}): Promise<Uint8Array> {
    return this.http.bytes({ ...options, path: `/v1/artifacts/${part(this.artifactId)}/content` })
  }

  async text(options: CallOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.bytes(options))
  }
}

/** A run under way whose frames are yielded as they come. */
export interface StreamedRun extends AsyncIterable<RunFrame> {
  readonly run: Run
}

/** An isolated place where code runs, with its own files. `await using` removes it at the end of the block. */
export class Space implements AsyncDisposable {
  readonly files: Files
  readonly ports: Ports
  readonly snapshots: Snapshots
  readonly contexts: Contexts

  constructor(
    private readonly http: Transport,
    /** What the daemon said of the space when it was last asked. */
    public info: SpaceDocument,
  ) {
    this.files = new Files(http, info.space_id)
    this.ports = new Ports(http, info.space_id)
    this.snapshots = new Snapshots(http, info.space_id)
    this.contexts = new Contexts(http, info.space_id)
  }

  get id(): string {
    return this.info.space_id
  }
  get name(): string {
    return this.info.name
  }
  get tier(): string {
    return this.info.tier
  }

  /** Runs a command in bash and returns what became of it. Throws a PolicyDeniedError or an ApprovalRequiredError where it was not run. */
  async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
    const { cwd, env, commandMs, ...rest } = options
    const operation = { type: 'shell' as const, id: 'exec', command, ...clean({ cwd, env, timeout: commandMs }) }
    const run = await this.run([operation as Operation], { title: command.slice(0, 200), timeoutMs: patience(commandMs), ...rest })
    return new ExecResult(run, shell(run))
  }

  /** Runs code in an interpreter that keeps its variables, and returns its output and what it has shown. */
  async code(code: string, options: CodeOptions = {}): Promise<CodeResult> {
    const { language = 'python', context, cwd, env, commandMs, ...rest } = options
    const inside = language === 'typescript' ? 'javascript' : language
    const name = context ?? (inside === 'python' ? 'main' : `main-${inside}`)
    const run = await this.launch(
      `/contexts/${part(name)}/cells`,
      { language: inside, code, ...clean({ cwd, env, timeout_ms: commandMs }) },
      { title: code.slice(0, 200), timeoutMs: patience(commandMs), ...rest },
    )
    return new CodeResult(this.http, run, shell(run))
  }

  /** Runs operations of protocol 1.0 in order and waits for their end. What policy refuses is a result in `run.results`. */
  run(operations: Operation[], options: RunOptions = {}): Promise<Run> {
    return this.launch('/runs', { protocolVersion: '1.0', operations }, options)
  }

  /** Starts operations and yields their frames as they come: what begins, what is printed, what became of each. */
  async runStream(operations: Operation[], options: RunOptions = {}): Promise<StreamedRun> {
    const run = await this.begin('/runs', { protocolVersion: '1.0', operations }, options, 0)
    return { run, [Symbol.asyncIterator]: () => run.stream(options) }
  }

  /**
   * Starts a command in the background and returns at once. It runs beside the other runs of the space, without a time limit of its own, until
   * it ends or its space does. `stdin` and `pty` need a tier with processes.
   */
  async start(command: string, options: StartOptions = {}): Promise<Process> {
    const { cwd, env, commandMs, stdin, pty, tag, title = command.slice(0, 200), ...rest } = options
    const operation = { type: 'shell', id: 'exec', command, ...clean({ cwd, env, timeout: commandMs, stdin, pty, tag }) }
    const run = await this.begin('/runs', { protocolVersion: '1.0', background: true, operations: [operation] }, { title, ...rest }, 0)
    return new Process(this.http, run, pty !== undefined)
  }

  /** Finds a command in the background again, by the id of its run. */
  async process(run: string, options: CallOptions = {}): Promise<Process> {
    const shown = await this.http.json<RunShown>({ ...options, path: `${this.path}/runs/${part(run)}` })
    if (!shown.background || !shown.result) {
      throw new ValidationError(`the run ${run} is no command in the background`, { code: 'run_not_background', status: 400 })
    }
    return new Process(this.http, new Run(this.http, this.id, shown.result), shown.pty !== undefined)
  }

  /** Yields the commands in the background that run, or those with another status, the newest first. */
  async *processes(options: CallOptions & { status?: string } = {}): AsyncGenerator<Process, void, undefined> {
    const { status = 'running', ...call } = options
    let cursor: string | undefined
    do {
      const query = { space_id: this.id, background: true, status, cursor }
      const page = await this.http.json<RunList>({ ...call, path: '/v1/runs', query })
      for (const found of page.runs ?? []) yield await this.process(found.run_id, call)
      cursor = page.next_cursor
    } while (cursor)
  }

  private async launch(path: string, body: object, options: RunOptions): Promise<Run> {
    const live = options.onStdout !== undefined || options.onStderr !== undefined
    const run = await this.begin(path, body, options, live ? 0 : 1)
    if (run.status === 'queued') await this.unblock(run, options)
    return run.wait(options)
  }

  /** unblock looks whether a run waits behind another one that waits for a person; then that question comes first. */
  private async unblock(run: Run, options: RunOptions): Promise<void> {
    const query = { status: 'pending', space_id: this.id, limit: 1 }
    const found = await this.http.json<ApprovalList>({ signal: options.signal, path: '/v1/approvals', query })
    const open = found.approvals[0]
    if (!open?.run_id || open.run_id === run.id) return
    const first = new Run(this.http, this.id, { protocolVersion: '1.0', runId: open.run_id, status: 'awaiting_approval', events: [] })
    try {
      await first.ask(open.approval_id, `an earlier run of the space waits for a person: ${open.title}`, options)
    } catch (err) {
      await run.cancel().catch(() => undefined) // what was just asked for is not left behind
      throw err
    }
  }

  private async begin(path: string, body: object, options: RunOptions & WaitOptions, seconds: number): Promise<Run> {
    const { title, agent, retention, artifacts, signal, timeoutMs, idempotencyKey } = options
    const message = await this.http.json<RunEvents>({
      method: 'POST',
      path: `${this.path}${path}`,
      json: { ...body, wait_seconds: seconds, ...clean({ title, retention, artifacts, agent: agent ? { name: agent } : undefined }) },
      signal,
      timeoutMs: timeoutMs ?? (seconds + 30) * 1000,
      idempotencyKey,
    })
    return new Run(this.http, this.id, message)
  }

  /** Ends a run of the space and every process of it. */
  cancel(run: string, options: CallOptions = {}): Promise<void> {
    return this.http.json({ ...options, method: 'POST', path: `${this.path}/runs/${part(run)}/cancel` })
  }

  /** Returns the files to what they were: at a snapshot, after a step, or before a run. */
  rewind(to: string, options: CallOptions = {}): Promise<SpaceRewound> {
    return this.http.json({ ...options, method: 'POST', path: `${this.path}/rewind`, json: { to } })
  }

  /** Makes a space whose files begin as a snapshot of this one, by default as they are now. It inherits no environment. */
  async fork(options: CallOptions & { at?: string; name?: string; env?: Record<string, string>; ttlSeconds?: number } = {}): Promise<Space> {
    const { at, name, env, ttlSeconds, ...call } = options
    const made = await this.http.json<SpaceDocument>({
      ...call,
      method: 'POST',
      path: `${this.path}/fork`,
      json: clean({ at, name, env, ttl_seconds: ttlSeconds }),
    })
    return new Space(this.http, made)
  }

  /** Compares two snapshots, by default the files before the last run with those of now. */
  diff(options: CallOptions & { from?: string; to?: string } = {}): Promise<SpaceDiff> {
    const { from, to, ...call } = options
    return this.http.json({ ...call, path: `${this.path}/diff`, query: { from, to } })
  }

  /** Changes name, description, environment or notes. */
  async update(
    change: { name?: string; description?: string; env?: Record<string, string>; metadata?: Record<string, string> },
    options: CallOptions = {},
  ): Promise<this> {
    this.info = await this.http.json<SpaceDocument>({ ...options, method: 'PATCH', path: this.path, json: change })
    return this
  }

  /** Sets how many seconds the space lives from now. */
  async extend(ttlSeconds: number, options: CallOptions = {}): Promise<this> {
    this.info = await this.http.json<SpaceDocument>({ ...options, method: 'POST', path: `${this.path}/extend`, json: { ttl_seconds: ttlSeconds } })
    return this
  }

  /**
   * Stops the processes of the space until it is resumed. They use no processor time, and the time limits of commands stop. A run that is sent
   * meanwhile waits, or resumes the space with `resumeOnRun`.
   */
  async pause(options: CallOptions & { reason?: string | undefined; resumeOnRun?: boolean | undefined } = {}): Promise<this> {
    const { reason, resumeOnRun, ...call } = options
    const json = { ...(reason === undefined ? {} : { reason }), ...(resumeOnRun === undefined ? {} : { resume_on_run: resumeOnRun }) }
    this.info = await this.http.json<SpaceDocument>({ ...call, method: 'POST', path: `${this.path}/pause`, json })
    return this
  }

  /** Lets a paused space go on. With `ttlSeconds` it lives that long from now. */
  async resume(options: CallOptions & { ttlSeconds?: number | undefined } = {}): Promise<this> {
    const { ttlSeconds, ...call } = options
    const json = ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds }
    this.info = await this.http.json<SpaceDocument>({ ...call, method: 'POST', path: `${this.path}/resume`, json })
    return this
  }

  /** Asks the daemon what the space is now. */
  async refresh(options: CallOptions = {}): Promise<this> {
    this.info = await this.http.json<SpaceDocument>({ ...options, path: this.path })
    return this
  }

  /** Ends the runs and processes of the space and removes its files. Its events stay in the log. */
  async destroy(options: CallOptions = {}): Promise<void> {
    this.info = await this.http.json<SpaceDocument>({ ...options, method: 'DELETE', path: this.path })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.destroy()
    } catch (err) {
      if (!(err instanceof AgentboxError) || (err.status !== 404 && err.code !== 'space_ended')) throw err
    }
  }

  private get path(): string {
    return `/v1/spaces/${part(this.id)}`
  }
}

/** The snapshots of a space's files: one before each run and after each operation that can change files. */
export class Snapshots {
  constructor(
    private readonly http: Transport,
    private readonly space: string,
  ) {}

  /** Yields them, the newest first. */
  async *list(options: CallOptions = {}): AsyncGenerator<SnapshotEntry, void, undefined> {
    let cursor: string | undefined
    do {
      const page = await this.http.json<SnapshotList>({ ...options, path: `/v1/spaces/${part(this.space)}/snapshots`, query: { cursor } })
      yield* page.snapshots
      cursor = page.next_cursor
    } while (cursor)
  }
}

/** The interpreters of a space that keep their variables. */
export class Contexts {
  constructor(
    private readonly http: Transport,
    private readonly space: string,
  ) {}

  async list(options: CallOptions = {}): Promise<SpaceContext[]> {
    return (await this.http.json<ContextList>({ ...options, path: `/v1/spaces/${part(this.space)}/contexts` })).contexts
  }

  /** Deletes an interpreter with its variables. */
  delete(name: string, options: CallOptions = {}): Promise<void> {
    return this.http.json({ ...options, method: 'DELETE', path: `/v1/spaces/${part(this.space)}/contexts/${part(name)}` })
  }
}

/** shell finds the result of the only command of a run. */
export function shell(run: Run): RunResultShell {
  const last = run.results.at(-1)
  if (last?.type === 'shell') {
    if (last.exitCode !== undefined || !last.error) return last
    throw new OperationError(last.error, { code: last.reasonCode ?? 'command_not_started', suggestion: last.suggestion })
  }
  const about = { status: 0, suggestion: last && 'suggestion' in last ? last.suggestion : undefined }
  if (last?.type === 'policyDenied') {
    throw new PolicyDeniedError(last.reason ?? 'policy refused it', { ...about, code: last.reasonCode ?? 'policy_denied', approvalId: last.approvalId })
  }
  if (last?.type === 'error') {
    throw new OperationError(last.message ?? last.error ?? 'it could not be tried', { ...about, code: last.reasonCode ?? 'operation_failed' })
  }
  if (last?.type === 'unknown') {
    throw new OperationError(last.reason ?? 'it is not known whether it took effect', { ...about, code: last.reasonCode ?? 'outcome_unknown' })
  }
  throw new OperationError(`the run ${run.id} ended as ${run.status} without a result`, { ...about, code: `run_${run.status}` })
}

function text(value: string | undefined, encoding: string | undefined): string {
  return value === undefined ? '' : output({ data: value, encoding: encoding ?? 'utf-8' })
}

/** patience is how long a call waits for a command: as long as it may take, and five minutes, in which a new machine compiles the interpreter. */
function patience(commandMs: number | undefined): number {
  return (commandMs ?? 300_000) + 300_000
}

/** clean leaves out what is undefined. */
export function clean<T extends object>(o: T): Partial<T> {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as Partial<T>
}

export { fromBase64 }
