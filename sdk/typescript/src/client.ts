import { Agents } from './agents.js'
import { Blueprints, Models } from './blueprints.js'
import { discover, home } from './discover.js'
import { AgentboxError } from './errors.js'
import { part, Transport, type CallOptions, type Request } from './http.js'
import { McpServers } from './mcp-servers.js'
import { start, type Started } from './program.js'
import type {
  AnswerRequest, ApprovalList, EventList, EventShown, MessageList, MessageRequest, PolicyApproval, PolicyBundle, Room, RoomList, RoomMessage, RoomRequest, RoomThread, ShownRoom,
  Space as SpaceDocument, SpaceBounds, SpaceList, ThreadList,
} from './schema.js'
import { Space, clean } from './space.js'
import { toBase64 } from './run.js'

export interface ClientOptions {
  /** The address of the daemon, such as http://127.0.0.1:7433. */
  url?: string | undefined
  /** An API key, or the bearer of a capability token. */
  key?: string | undefined
  /** A capability token that narrows what the key may do. */
  capabilityToken?: string | undefined
  /** The data directory of a local daemon; AGENTBOX_HOME or ~/.agentbox unless given. */
  home?: string | undefined
  /** Milliseconds for one call, with its repeats; 30,000 unless given. Waiting for a command adds its own time. */
  timeoutMs?: number | undefined
  /** How often a call is repeated that may succeed a moment later; 3 unless given. */
  retries?: number | undefined
  /** Another fetch, for a proxy or a test. */
  fetch?: typeof fetch | undefined
}

/** The client of a daemon. */
export class Agentbox implements AsyncDisposable {
  readonly spaces: Spaces
  readonly approvals: Approvals
  readonly events: Events
  readonly rooms: Rooms
  readonly blueprints: Blueprints
  readonly models: Models
  readonly mcpServers: McpServers
  readonly agents: Agents
  readonly http: Transport

  constructor(options: ClientOptions & { url: string; key: string }) {
    this.http = new Transport({
      url: options.url,
      key: options.key,
      capabilityToken: options.capabilityToken,
      timeoutMs: options.timeoutMs ?? 30_000,
      retries: options.retries ?? 3,
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
    })
    this.spaces = new Spaces(this.http)
    this.approvals = new Approvals(this.http, (o) => this.events.subscribe(o))
    this.events = new Events(this.http)
    this.rooms = new Rooms(this.http)
    this.blueprints = new Blueprints(this.http)
    this.models = new Models(this.http)
    this.mcpServers = new McpServers(this.http)
    this.agents = new Agents(this.http)
  }

  /** Where the daemon was found, or that it was started. */
  origin = 'the options'

  #started: Started | undefined // with the key, which nothing shows

  /**
   * Connects to the daemon that the options name, else to that of the environment, else to the local one. With `start` it starts one where
   * none is found; close() ends that one.
   */
  static async connect(options: ClientOptions & { start?: boolean } = {}): Promise<Agentbox> {
    try {
      const found = await discover(options)
      const client = new Agentbox({ ...options, url: found.url, key: found.key })
      client.origin = found.from
      return client
    } catch (err) {
      if (!options.start || !(err instanceof AgentboxError) || err.code !== 'daemon_not_running') throw err
    }
    const started = await start({ home: options.home ?? (await home()) })
    const client = new Agentbox({ ...options, url: started.url, key: started.key })
    client.#started = started
    client.origin = `started in ${started.home}`
    return client
  }

  /** Ends the daemon that connect has started, if it has. */
  async close(): Promise<void> {
    await this.#started?.stop()
    this.#started = undefined
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Sends any request of the API and reads the JSON of its answer: for what has no method here. */
  request<T>(request: Request): Promise<T> {
    return this.http.json<T>(request)
  }
}

export interface SpaceOptions extends CallOptions {
  name?: string | undefined
  description?: string | undefined
  /** `standard` unless given. */
  policy?: 'restrictive' | 'standard' | 'permissive' | undefined
  /** Sections that replace those of the preset. */
  policyOverrides?: unknown
  policyBundle?: PolicyBundle | undefined
  /** `auto`, `nano`, `heavy` or the name of a tier. */
  runtime?: string | undefined
  env?: Record<string, string> | undefined
  metadata?: Record<string, string> | undefined
  limits?: SpaceBounds | undefined
  roomId?: string | undefined
  ttlSeconds?: number | undefined
  /** Accepts a host that cannot enforce every bound. */
  bestEffort?: boolean | undefined
  /** What its files begin with: a zip, tar or tar.gz file, or a folder of the daemon's host. */
  from?: { archive: Uint8Array } | { path: string } | undefined
}

/** The spaces of the workspace. */
export class Spaces {
  constructor(private readonly http: Transport) {}

  async create(options: SpaceOptions = {}): Promise<Space> {
    const { name, description, policy, policyOverrides, policyBundle, runtime, env, metadata, limits, roomId, ttlSeconds, bestEffort, from, ...call } = options
    const made = await this.http.json<SpaceDocument>({
      ...call,
      method: 'POST',
      path: '/v1/spaces',
      json: clean({
        name,
        description,
        policy,
        policy_overrides: policyOverrides,
        policy_bundle: policyBundle,
        runtime,
        env,
        metadata,
        limits,
        room_id: roomId,
        ttl_seconds: ttlSeconds,
        best_effort: bestEffort,
        from: from && ('archive' in from ? { archive: toBase64(from.archive) } : from),
      }),
    })
    return new Space(this.http, made)
  }

  /** Finds a space by its id or its name. */
  async get(space: string, options: CallOptions = {}): Promise<Space> {
    return new Space(this.http, await this.http.json<SpaceDocument>({ ...options, path: `/v1/spaces/${part(space)}` }))
  }

  /** Yields the spaces that live, the newest first. */
  async *list(options: CallOptions & { status?: string } = {}): AsyncGenerator<Space, void, undefined> {
    const { status, ...call } = options
    let cursor: string | undefined
    do {
      const page = await this.http.json<SpaceList>({ ...call, path: '/v1/spaces', query: { status, cursor } })
      for (const found of page.spaces) yield new Space(this.http, found)
      cursor = page.next_cursor
    } while (cursor)
  }
}

export interface AnswerOptions extends CallOptions {
  reason?: string | undefined
  /** What else the answer covers; every scope but `once` needs expiresAt and uses. */
  scope?: AnswerRequest['scope']
  expiresAt?: Date | undefined
  uses?: number | undefined
  /** The hash of the action that the person saw; an answer to another action is refused. */
  actionSha256?: string | undefined
}

/** The questions that wait for a person. */
export class Approvals {
  constructor(
    private readonly http: Transport,
    private readonly subscribe: (o: SubscribeOptions) => AsyncIterable<EventShown>,
  ) {}

  get(approval: string, options: CallOptions = {}): Promise<PolicyApproval> {
    return this.http.json({ ...options, path: `/v1/approvals/${part(approval)}` })
  }

  /** Yields questions, the newest first; those that are open unless a status is given. */
  async *list(
    options: CallOptions & { status?: string; spaceId?: string; runId?: string; roomId?: string } = {},
  ): AsyncGenerator<PolicyApproval, void, undefined> {
    const { status = 'pending', spaceId, runId, roomId, ...call } = options
    let cursor: string | undefined
    do {
      const page = await this.http.json<ApprovalList>({
        ...call,
        path: '/v1/approvals',
        query: { status, space_id: spaceId, run_id: runId, room_id: roomId, cursor },
      })
      yield* page.approvals
      cursor = page.next_cursor
    } while (cursor)
  }

  approve(approval: string, options: AnswerOptions = {}): Promise<PolicyApproval> {
    return this.decide(approval, 'approve', options)
  }

  deny(approval: string, options: AnswerOptions = {}): Promise<PolicyApproval> {
    return this.decide(approval, 'deny', options)
  }

  /** Says that somebody looks into it; a final answer follows. */
  hold(approval: string, options: AnswerOptions = {}): Promise<PolicyApproval> {
    return this.decide(approval, 'hold', options)
  }

  private decide(approval: string, decision: 'approve' | 'deny' | 'hold', options: AnswerOptions): Promise<PolicyApproval> {
    const { reason, scope, expiresAt, uses, actionSha256, ...call } = options
    return this.http.json({
      ...call,
      method: 'POST',
      path: `/v1/approvals/${part(approval)}/decide`,
      json: { decision, ...clean({ reason, scope, expires_at: expiresAt?.toISOString(), uses, action_sha256: actionSha256 }) },
    })
  }

  /** Yields each open question: those of now first, then each new one, until the signal ends it. No question is missed and none comes twice. */
  async *watch(options: { signal?: AbortSignal } = {}): AsyncGenerator<PolicyApproval, void, undefined> {
    const head = await this.http.json<EventList>({ ...options, path: '/v1/events', query: { limit: 1 } })
    const seen = new Set<string>()
    for await (const open of this.list(options)) {
      seen.add(open.approval_id)
      yield open
    }
    for await (const e of this.subscribe({ ...options, fromSeq: head.next_from_seq, eventTypes: ['approval.requested'] })) {
      const id = e.entity_id ?? ''
      if (id === '' || seen.has(id)) continue
      const open = await this.get(id, options)
      if (open.status === 'pending' || open.status === 'held') yield open
    }
  }
}

export interface SubscribeOptions {
  signal?: AbortSignal | undefined
  /** The place of the first event; without it only what happens from now on. */
  fromSeq?: number | undefined
  /** The `seq` of the last event that was received. */
  after?: number | undefined
  eventTypes?: string[] | undefined
  spaceId?: string | undefined
  runId?: string | undefined
  roomId?: string | undefined
  threadId?: string | undefined
  correlationId?: string | undefined
}

/** The log of the workspace. */
export class Events {
  constructor(private readonly http: Transport) {}

  /** Reads a page of events in ascending order. `next_from_seq` goes on. */
  list(options: CallOptions & Omit<SubscribeOptions, 'after'> & { limit?: number; before?: number } = {}): Promise<EventList> {
    const { signal, timeoutMs, limit, before, ...filter } = options
    return this.http.json({ signal, timeoutMs, path: '/v1/events', query: { ...query(filter), limit, before } })
  }

  /** Yields events as they are recorded, until the signal ends it. It resumes after a lost connection: nothing is missed, nothing comes twice. */
  async *subscribe(options: SubscribeOptions = {}): AsyncGenerator<EventShown, void, undefined> {
    const { signal, after, ...filter } = options
    try {
      for await (const m of this.http.follow({ signal, path: '/v1/events/stream', query: query(filter), lastId: after?.toString() })) {
        yield JSON.parse(m.data) as EventShown
      }
    } catch (err) {
      if (!signal?.aborted) throw err
    }
  }
}

function query(f: Omit<SubscribeOptions, 'after' | 'signal'>): Record<string, string | number | undefined> {
  return {
    from_seq: f.fromSeq,
    event_types: f.eventTypes?.join(','),
    space_id: f.spaceId,
    run_id: f.runId,
    room_id: f.roomId,
    thread_id: f.threadId,
    correlation_id: f.correlationId,
  }
}

/** The rooms where people and agents talk. */
export class Rooms {
  constructor(private readonly http: Transport) {}

  create(room: RoomRequest, options: CallOptions = {}): Promise<Room> {
    return this.http.json({ ...options, method: 'POST', path: '/v1/rooms', json: room })
  }

  get(room: string, options: CallOptions = {}): Promise<ShownRoom> {
    return this.http.json({ ...options, path: `/v1/rooms/${part(room)}` })
  }

  list(options: CallOptions & { cursor?: string } = {}): Promise<RoomList> {
    const { cursor, ...call } = options
    return this.http.json({ ...call, path: '/v1/rooms', query: { cursor } })
  }

  createThread(room: string, title: string, options: CallOptions = {}): Promise<RoomThread> {
    return this.http.json({ ...options, method: 'POST', path: `/v1/rooms/${part(room)}/threads`, json: { title } })
  }

  threads(room: string, options: CallOptions & { cursor?: string } = {}): Promise<ThreadList> {
    const { cursor, ...call } = options
    return this.http.json({ ...call, path: `/v1/rooms/${part(room)}/threads`, query: { cursor } })
  }

  /** Posts a message of Markdown into a thread. */
  post(thread: string, content: string, options: CallOptions & Omit<MessageRequest, 'content_md'> = {}): Promise<RoomMessage> {
    const { signal, timeoutMs, idempotencyKey, ...rest } = options
    return this.http.json({
      signal,
      timeoutMs,
      idempotencyKey,
      method: 'POST',
      path: `/v1/threads/${part(thread)}/messages`,
      json: { content_md: content, ...rest },
    })
  }

  /** Reads a page of a thread, the newest message first. `before` is the `next_before` of the page in front of it. */
  messages(thread: string, options: CallOptions & { before?: string | undefined; limit?: number | undefined } = {}): Promise<MessageList> {
    const { before, limit, ...call } = options
    return this.http.json({ ...call, path: `/v1/threads/${part(thread)}/messages`, query: { before, limit } })
  }

  /** Yields the events of a room as they are recorded. */
  async *stream(room: string, options: { signal?: AbortSignal; after?: number } = {}): AsyncGenerator<EventShown, void, undefined> {
    const { signal, after } = options
    try {
      for await (const m of this.http.follow({ signal, path: `/v1/streams/rooms/${part(room)}`, lastId: after?.toString() })) {
        yield JSON.parse(m.data) as EventShown
      }
    } catch (err) {
      if (!signal?.aborted) throw err
    }
  }
}
