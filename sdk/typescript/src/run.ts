import { AgentboxError, ApprovalRequiredError, NotFoundError, TimeoutError } from './errors.js'
import { part, type CallOptions, type Transport } from './http.js'
import type { ArtifactList, PolicyApproval, RunEvents, RunOperation, RunResult, RunShown, StepArtifact, StreamRunFrame } from './schema.js'

/** An operation of protocol 1.0: createFile, readFile, editFile, deleteFile, shell or message. */
export type Operation = RunOperation

/** What became of an operation. */
export type Result = RunResult

/** A frame of a run's stream. */
export type RunFrame = StreamRunFrame

/** What a person, or a program for them, says of a question: `wait` leaves it to somebody else. */
export type Answer = 'approve' | 'deny' | 'wait'

export interface WaitOptions extends CallOptions {
  /**
   * Is asked when the run waits for a person. Without it waiting ends with an ApprovalRequiredError, which names the question; the run
   * itself goes on waiting.
   */
  onApproval?: ((approval: PolicyApproval) => Answer | Promise<Answer>) | undefined
  /** Gets what commands print to standard output, as it comes. */
  onStdout?: ((text: string) => void) | undefined
  /** Gets what commands print to standard error, as it comes. */
  onStderr?: ((text: string) => void) | undefined
}

/** What a run is given beside its operations. */
export interface RunOptions extends WaitOptions {
  title?: string | undefined
  /** Who acts; the agent of the space unless named. */
  agent?: string | undefined
  /** How long its data are kept, as in `30d`. */
  retention?: string | undefined
  /** Files of the space that are kept when the run ends, as in `['out/**']`: see `run.artifacts`. */
  artifacts?: string[] | undefined
}

/** An output of a run: a file that it has kept, or something that its code has shown. */
export class Artifact {
  readonly artifactId: string
  /** The path of the file in its space; the id of an artifact that is no file. */
  readonly path: string
  /** Bytes of its content. */
  readonly size: number
  /** The hash of its content, in hexadecimal digits. */
  readonly sha256: string
  /** A guess from its name and content. */
  readonly mediaType: string

  constructor(
    private readonly http: Transport,
    readonly raw: StepArtifact,
  ) {
    this.artifactId = raw.artifact_id
    this.path = raw.path ?? raw.artifact_id
    this.size = raw.size_bytes ?? 0
    this.sha256 = (raw.sha256 ?? '').replace(/^sha256:/, '')
    this.mediaType = raw.mime_type ?? 'application/octet-stream'
  }

  /** Downloads its content. */
  bytes(options: CallOptions = {}): Promise<Uint8Array> {
    return this.http.bytes({ ...options, path: `/v1/artifacts/${part(this.artifactId)}/content` })
  }

  /** Downloads its content as UTF-8. */
  async text(options: CallOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.bytes(options))
  }
}

const ENDED = new Set(['completed', 'error', 'cancelled'])

/** A run of operations in a space. */
export class Run {
  /** What the run was when it was last asked. */
  status: string
  results: Result[]

  constructor(
    private readonly http: Transport,
    readonly spaceId: string,
    message: RunEvents,
  ) {
    this.id = message.runId
    this.status = message.status
    this.results = message.events ?? []
  }
  readonly id: string

  /** Whether the run has ended, in whatever way. */
  get ended(): boolean {
    return ENDED.has(this.status)
  }

  /** The result of one operation, by the id that it was given or by its place, from 0. */
  result(operation: string | number): Result | undefined {
    if (typeof operation === 'number') return this.results[operation]
    return this.results.find((r) => r.operationId === operation)
  }

  /** Lists what the run has left: the files that `artifacts` named when it was started, and what its code has shown. They outlive the space. */
  artifacts(options: CallOptions = {}): Promise<Artifact[]> {
    return kept(this.http, this.id, options)
  }

  /** Asks how the run stands. */
  async refresh(options: CallOptions = {}): Promise<this> {
    this.take((await this.show(options)).result)
    return this
  }

  /** Everything that the daemon shows of the run. */
  show(options: CallOptions = {}): Promise<RunShown> {
    return this.http.json<RunShown>({ ...options, path: `${this.path}` })
  }

  /** Waits until the run has ended. */
  async wait(options: WaitOptions = {}): Promise<this> {
    if (this.ended) return this
    const late = options.timeoutMs === undefined ? undefined : AbortSignal.timeout(options.timeoutMs)
    const signals = [options.signal, late].filter((s) => s !== undefined)
    try {
      await this.follow({ ...options, signal: signals.length > 0 ? AbortSignal.any(signals) : undefined })
    } catch (err) {
      if (!late?.aborted || options.signal?.aborted) throw err
      throw new TimeoutError(`the run ${this.id} has not ended within ${options.timeoutMs} ms; it goes on`, {
        code: 'timeout',
        runId: this.id,
        suggestion: 'give more timeoutMs, wait again, or cancel the run',
        cause: err,
      })
    }
    return this.refresh({ signal: options.signal })
  }

  private async follow(options: WaitOptions): Promise<void> {
    const asked = new Set<string>()
    for await (const frame of this.stream(options)) {
      if (frame.event === 'stdout' || frame.event === 'stderr') {
        const text = output(frame.data)
        if (frame.event === 'stdout') options.onStdout?.(text)
        else options.onStderr?.(text)
      }
      if (frame.event === 'event' && 'type' in frame.data && frame.data.type === 'approvalRequired' && frame.data.approvalId) {
        const approval = frame.data.approvalId
        if (!asked.has(approval)) {
          asked.add(approval)
          await this.ask(approval, frame.data.reason ?? 'a person has to decide first', options)
        }
      }
    }
  }

  /** ask puts a question to the caller's onApproval, or ends waiting. */
  ask(id: string, reason: string, options: WaitOptions): Promise<void> {
    return question(this.http, this.id, id, reason, options)
  }

  /** Yields the frames of the run from its beginning until it has ended; resumes after a lost connection without gap or repeat. */
  async *stream(options: CallOptions & { from?: number } = {}): AsyncGenerator<RunFrame, void, undefined> {
    const request = {
      ...options,
      path: `${this.path}/stream`,
      query: { from: options.from },
      done: (m: { event: string }) => m.event === 'complete',
    }
    for await (const m of this.http.follow(request)) {
      yield { event: m.event, id: Number(m.id), data: JSON.parse(m.data) as unknown } as RunFrame
    }
  }

  /** Approves what the run waits for. */
  async approve(options: CallOptions & { reason?: string } = {}): Promise<this> {
    return this.resume('approve', options)
  }

  /** Denies what the run waits for; the run goes on with its next operation. */
  async deny(options: CallOptions & { reason?: string } = {}): Promise<this> {
    return this.resume('deny', options)
  }

  private async resume(decision: 'approve' | 'deny', options: CallOptions & { reason?: string }): Promise<this> {
    await this.refresh(options)
    const last = this.results.findLast((r) => r.type === 'approvalRequired')
    if (!last?.operationId || this.status !== 'awaiting_approval') {
      throw new AgentboxError(`the run ${this.id} waits for nobody; it is ${this.status}`, { code: 'run_not_waiting', status: 409 })
    }
    const { reason, ...call } = options
    const approval = { operationId: last.operationId, decision, ...(reason ? { reason } : {}) }
    this.take(await this.http.json<RunEvents>({ ...call, method: 'POST', path: `${this.path}/resume`, json: { approval, wait_seconds: 0 } }))
    return this
  }

  /** Ends the run and every process of it. */
  async cancel(options: CallOptions = {}): Promise<this> {
    await this.http.json({ ...options, method: 'POST', path: `${this.path}/cancel` })
    return this.refresh(options)
  }

  private take(message: RunEvents | undefined): void {
    if (!message) throw new NotFoundError(`the run ${this.id} shows no result`, { code: 'run_not_found' })
    this.status = message.status
    this.results = message.events ?? []
  }

  private get path(): string {
    return `/v1/spaces/${part(this.spaceId)}/runs/${part(this.id)}`
  }
}

/** question puts a question of a run to the caller's onApproval, or ends waiting where there is none. */
export async function question(http: Transport, run: string, id: string, reason: string, options: Pick<WaitOptions, 'onApproval'>): Promise<void> {
  const approval = await http.json<PolicyApproval>({ path: `/v1/approvals/${part(id)}` })
  if (approval.status !== 'pending' && approval.status !== 'held') return // somebody was faster
  if (!options.onApproval) {
    throw new ApprovalRequiredError(reason, {
      code: 'approval_required',
      status: 409,
      approvalId: id,
      runId: run,
      suggestion: `answer with client.approvals.approve(${JSON.stringify(id)}), or give onApproval`,
    })
  }
  const answer = await options.onApproval(approval)
  if (answer === 'wait') return
  await http.json({
    method: 'POST',
    path: `/v1/approvals/${part(id)}/decide`,
    json: { decision: answer, action_sha256: approval.action_sha256 },
  })
}

/** kept lists the artifacts of a run, in the order in which they were made. */
export async function kept(http: Transport, run: string, options: CallOptions = {}): Promise<Artifact[]> {
  const found: Artifact[] = []
  let cursor: string | undefined
  do {
    const page = await http.json<ArtifactList>({ ...options, path: '/v1/artifacts', query: { run_id: run, limit: 100, cursor } })
    found.push(...page.artifacts.map((a) => new Artifact(http, a)))
    cursor = page.next_cursor
  } while (cursor)
  return found.reverse()
}

/** output is what a command printed, as text. */
export function output(data: { data: string; encoding: string }): string {
  return data.encoding === 'base64' ? new TextDecoder().decode(fromBase64(data.data)) : data.data
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
}

export function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
  return btoa(text)
}
