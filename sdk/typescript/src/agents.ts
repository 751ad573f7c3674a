import { ConflictError, TimeoutError, ValidationError } from './errors.js'
import { part, type CallOptions, type Transport } from './http.js'
import { kept, question, toBase64, type Answer, type Artifact } from './run.js'
import type {
  AgentTask, CallList, ModelUsed, PolicyApproval, RoomMessage, Run as RunDocument, RunList, RunShown, StepCall, StreamAnyRunFrame, UsageList,
} from './schema.js'
import { clean, type Space } from './space.js'

/** A frame of the stream of an agent's run: `delta` is a piece of the model's answer, `operation` a tool call, `event` what became of it. */
export type AgentFrame = StreamAnyRunFrame

/** A picture of a task: PNG, JPEG, GIF or WebP of at most 3 MiB. */
export interface Pictured {
  data: Uint8Array
  /** The name of its file. */
  name?: string | undefined
}

/** How a task is given. */
export interface TaskOptions extends CallOptions {
  /** The run of an agent that has ended. The new one goes on with its conversation, in its space, room and thread unless others are named. */
  after?: AgentRun | string | undefined
  /** The model that answers, by its name in the catalogue; that of the blueprint unless given. */
  model?: string | undefined
  /** At most 8 that belong to the task, for a model that takes pictures. They become artifacts of the run. */
  pictures?: readonly (Uint8Array | Pictured)[] | undefined
  /** The space in which the agent works; a new one, as the blueprint says, unless given. */
  space?: Space | string | undefined
  roomId?: string | undefined
  /** The agent is told before its next turn what people post in this thread; a new one unless given. */
  threadId?: string | undefined
  /** Of the run; the beginning of the task unless given. */
  title?: string | undefined
  /** Of the blueprint; the newest unless given. */
  version?: number | undefined
}

/** What is told while an agent works. */
export interface FollowOptions extends CallOptions {
  /** Gets the text of the model's answers, as it comes. */
  onText?: ((text: string) => void) | undefined
  /** Says that the text since the last tool call does not count, because the model is asked again. */
  onAgain?: (() => void) | undefined
  /** Receives each tool call that begins. */
  onTool?: ((call: { id: string; tool: string; summary: string }) => void) | undefined
  /** Is asked when the agent waits for a person. Without it the run waits until somebody answers elsewhere. */
  onApproval?: ((approval: PolicyApproval) => Answer | Promise<Answer>) | undefined
}

const ENDED = new Set(['succeeded', 'failed', 'cancelled'])

/** The most that `steer` says, in bytes. */
const MAX_STEER = 64 << 10

/** The agents that the blueprints of the workspace define. */
export class Agents {
  constructor(private readonly http: Transport) {}

  /** Gives an agent a task, and returns its run at once. The daemon executes it. */
  async start(blueprint: string, task: string | AgentTask, options: TaskOptions = {}): Promise<AgentRun> {
    const { after, model, pictures, space, roomId, threadId, title, version, ...call } = options
    const given = clean({
      after_run_id: after instanceof AgentRun ? after.id : after,
      model,
      pictures: pictures?.map((p) => (p instanceof Uint8Array ? { data: toBase64(p) } : clean({ data: toBase64(p.data), name: p.name }))),
      space_id: typeof space === 'object' ? space.id : space,
      room_id: roomId,
      thread_id: threadId,
      title,
      version,
    })
    const json = { ...(typeof task === 'string' ? { task } : task), ...given }
    const path = `/v1/blueprints/${part(blueprint)}/runs`
    return new AgentRun(this.http, await this.http.json<RunDocument>({ ...call, method: 'POST', path, json }))
  }

  /** Gives an agent a task, and waits until its run has ended. `report` is what the agent answered. The run goes on when the signal ends the waiting. */
  async run(blueprint: string, task: string | AgentTask, options: TaskOptions & FollowOptions = {}): Promise<AgentRun> {
    const { onText, onAgain, onTool, onApproval, timeoutMs, ...start } = options
    const run = await this.start(blueprint, task, start)
    return run.wait({ signal: options.signal, timeoutMs, onText, onAgain, onTool, onApproval })
  }

  /** Finds the run of an agent by its id. */
  async get(run: string, options: CallOptions = {}): Promise<AgentRun> {
    const shown = await this.http.json<RunShown>({ ...options, path: `/v1/runs/${part(run)}` })
    if (shown.work !== 'agent') throw new ValidationError(`${run} is not the run of an agent`, { code: 'not_an_agent', status: 400 })
    return new AgentRun(this.http, shown)
  }

  /** Yields the runs of agents, the newest first. */
  async *list(options: CallOptions & { blueprint?: string | undefined; status?: RunStatus | undefined } = {}): AsyncGenerator<AgentRun, void, undefined> {
    const { blueprint, status, ...call } = options
    let cursor: string | undefined
    do {
      const page = await this.http.json<RunList>({ ...call, path: '/v1/runs', query: { work: blueprint === undefined ? 'agent' : undefined, blueprint, status, cursor } })
      for (const found of page.runs) yield new AgentRun(this.http, found)
      cursor = page.next_cursor
    } while (cursor)
  }
}

/** How the run of an agent stands. */
export type RunStatus = 'queued' | 'running' | 'awaiting_approval' | 'succeeded' | 'failed' | 'cancelled'

/** The run in which an agent works on a task. */
export class AgentRun {
  readonly id: string

  constructor(
    private readonly http: Transport,
    /** What the daemon said of the run when it was last asked. */
    public info: RunDocument | RunShown,
  ) {
    this.id = info.run_id
  }

  get status(): RunStatus {
    return this.info.status as RunStatus
  }

  /** Whether the run has ended, in whatever way. */
  get ended(): boolean {
    return ENDED.has(this.status)
  }

  /** What the agent answered; undefined when the run did not succeed. */
  get report(): string | undefined {
    const output = this.info.reported?.output as { report?: string } | undefined
    return this.status === 'succeeded' ? output?.report : undefined
  }

  /** Why the run has failed or was stopped. */
  get error(): string | undefined {
    return this.info.reported?.message ?? this.info.error
  }

  /** Asks how the run stands. */
  async refresh(options: CallOptions = {}): Promise<this> {
    this.info = await this.http.json<RunShown>({ ...options, path: this.path })
    return this
  }

  /** Yields the frames of the run from its beginning until it has ended; resumes after a lost connection without gap or repeat. */
  async *stream(options: CallOptions & { from?: number | undefined } = {}): AsyncGenerator<AgentFrame, void, undefined> {
    const { from, ...call } = options
    const done = (m: { event: string }): boolean => m.event === 'complete'
    for await (const m of this.http.follow({ ...call, path: `${this.path}/stream`, query: { from }, done })) {
      yield { event: m.event, id: Number(m.id), data: JSON.parse(m.data) as unknown } as AgentFrame
    }
  }

  /** Waits until the run has ended. It goes on when the signal or timeoutMs ends the waiting. */
  async wait(options: FollowOptions = {}): Promise<this> {
    if (this.ended) return this.refresh({ signal: options.signal })
    const late = options.timeoutMs === undefined ? undefined : AbortSignal.timeout(options.timeoutMs)
    const signals = [options.signal, late].filter((s) => s !== undefined)
    try {
      const asked = new Set<string>()
      for await (const frame of this.stream(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {})) await this.tell(frame, asked, options)
    } catch (err) {
      if (!late?.aborted || options.signal?.aborted) throw err
      throw new TimeoutError(`the agent has not ended ${this.id} within ${options.timeoutMs} ms; it goes on`, {
        code: 'timeout',
        runId: this.id,
        suggestion: 'give more timeoutMs, wait again, or stop the run',
        cause: err,
      })
    }
    return this.refresh({ signal: options.signal })
  }

  private async tell(frame: AgentFrame, asked: Set<string>, options: FollowOptions): Promise<void> {
    if (frame.event === 'delta') {
      if (frame.data.again) options.onAgain?.()
      else if (frame.data.type === 'text' && frame.data.text) options.onText?.(frame.data.text)
    } else if (frame.event === 'operation' && 'operationId' in frame.data) {
      options.onTool?.({ id: frame.data.operationId, tool: frame.data.type, summary: frame.data.summary ?? '' })
    } else if (frame.event === 'event' && options.onApproval && 'type' in frame.data && frame.data.type === 'approvalRequired') {
      const { approvalId, reason } = frame.data
      if (!approvalId || asked.has(approvalId)) return
      asked.add(approvalId)
      await question(this.http, this.id, approvalId, reason ?? 'a person has to decide first', options)
    }
  }

  /** Tells the agent something before its next turn, by a message in the thread of the run. What it does meanwhile goes on. */
  async steer(text: string, options: CallOptions = {}): Promise<RoomMessage> {
    if (text.trim() === '') throw new ValidationError('say what the agent is to be told', { code: 'usage' })
    if (new TextEncoder().encode(text).length > MAX_STEER) {
      throw new ValidationError(`a message has at most ${MAX_STEER} bytes`, { code: 'usage', suggestion: 'put what is longer into a file of the space' })
    }
    await this.refresh(options)
    if (this.ended) {
      throw new ConflictError(`the run is ${this.status}; nobody would hear it`, {
        code: 'run_ended',
        status: 409,
        suggestion: `go on with agents.start(blueprint, task, { after: ${JSON.stringify(this.id)} })`,
      })
    }
    const thread = this.info.thread_id
    if (!thread) {
      throw new ConflictError('the run has no thread, because its requester may not begin one', { code: 'run_without_thread', status: 409 })
    }
    return this.http.json({ ...options, method: 'POST', path: `/v1/threads/${part(thread)}/messages`, json: { content_md: text } })
  }

  /** Ends the run, and what it executes in its space. */
  async stop(options: CallOptions & { reason?: string | undefined } = {}): Promise<this> {
    const { reason, ...call } = options
    await this.http.json({ ...call, method: 'POST', path: `${this.path}/cancel`, json: clean({ reason }) })
    return this.refresh(call)
  }

  /** Lists the tool calls of the agent, in the order in which they were made. */
  async calls(options: CallOptions = {}): Promise<StepCall[]> {
    const found: StepCall[] = []
    let cursor: string | undefined
    do {
      const page = await this.http.json<CallList>({ ...options, path: '/v1/toolcalls', query: { run_id: this.id, limit: 100, cursor } })
      found.push(...page.tool_calls)
      cursor = page.next_cursor
    } while (cursor)
    return found.reverse()
  }

  /** Lists what the run and its tool calls have left, such as the charts that its code has shown. They outlive the space. */
  async artifacts(options: CallOptions = {}): Promise<Artifact[]> {
    const runs = [this.id, ...(await this.calls(options)).map((c) => c.child_run_id).filter((id) => id !== undefined)]
    const found: Artifact[] = []
    for (const run of runs) found.push(...(await kept(this.http, run, options)))
    return found
  }

  /** Says what models cost for this run: requests, tokens and money; undefined before the first request. */
  async usage(options: CallOptions = {}): Promise<ModelUsed | undefined> {
    const query = { scope: 'run', run_id: this.id, limit: 1 }
    return (await this.http.json<UsageList>({ ...options, path: '/v1/usage', query })).usage[0]
  }

  private get path(): string {
    return `/v1/runs/${part(this.id)}`
  }
}
