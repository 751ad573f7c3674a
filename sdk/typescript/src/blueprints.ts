import { part, type CallOptions, type Transport } from './http.js'
import type {
  BlueprintChecked, BlueprintEntry, BlueprintList, BlueprintLocked, BlueprintShown, ModelBudget, ModelList, ModelRoute, ModelSettings, ModelShown, ModelSpec, Tested, UsageList,
} from './schema.js'
import { clean } from './space.js'

/** The blueprints of the workspace: each is the definition of an agent, and its text is YAML. */
export class Blueprints {
  constructor(private readonly http: Transport) {}

  /** Says everything that is wrong with a text, and which references have no pin. */
  check(text: string, options: CallOptions = {}): Promise<BlueprintChecked> {
    return this.http.json({ ...options, method: 'POST', path: '/v1/blueprints/check', json: { text } })
  }

  /** Returns the text with pins for all that it refers to. Write it where the blueprint is kept. */
  async lock(text: string, options: CallOptions = {}): Promise<string> {
    return (await this.http.json<BlueprintLocked>({ ...options, method: 'POST', path: '/v1/blueprints/lock', json: { text } })).text
  }

  /** Registers a blueprint under its name, or a new version of it. An agent starts only where everything is pinned: see `lock`. */
  register(name: string, text: string, options: CallOptions = {}): Promise<BlueprintEntry> {
    return this.http.json({ ...options, method: 'PUT', path: at(name), json: { text } })
  }

  /** Yields the registered blueprints, by name. */
  async *list(options: CallOptions = {}): AsyncGenerator<BlueprintEntry, void, undefined> {
    let cursor: string | undefined
    do {
      const page = await this.http.json<BlueprintList>({ ...options, path: '/v1/blueprints', query: { cursor } })
      yield* page.blueprints
      cursor = page.next_cursor
    } while (cursor)
  }

  /** Shows a blueprint with the text of a version, the newest unless one is given. */
  get(name: string, options: CallOptions & { version?: number | undefined } = {}): Promise<BlueprintShown> {
    const { version, ...call } = options
    return this.http.json({ ...call, path: at(name), query: { version } })
  }

  /** Takes a blueprint off the list. Its versions can still be read. */
  remove(name: string, options: CallOptions & { reason?: string | undefined } = {}): Promise<void> {
    const { reason, ...call } = options
    return this.http.json({ ...call, method: 'DELETE', path: at(name), query: { reason } })
  }
}

function at(name: string): string {
  return `/v1/blueprints/${part(name)}`
}

export interface UsageOptions extends CallOptions {
  /** What is counted: each day of the workspace (unless given), each run, or each agent, room or model in a day. */
  scope?: 'workspace' | 'run' | 'agent' | 'room' | 'model' | undefined
  /** A day of UTC, as in `2026-11-28`. */
  day?: string | undefined
  runId?: string | undefined
  /** At most this many entries: 1 to 1,000, 100 unless given. */
  limit?: number | undefined
}

/** The models that agents ask, and what they were used for. */
export class Models {
  constructor(private readonly http: Transport) {}

  /** Lists the models with their routes, budgets and the names of keys. */
  list(options: CallOptions = {}): Promise<ModelList> {
    return this.http.json({ ...options, path: '/v1/models' })
  }

  get(model: string, options: CallOptions = {}): Promise<ModelShown> {
    return this.http.json({ ...options, path: entry(model) })
  }

  /** Adds a model to the catalogue, or changes it. */
  put(model: string, spec: ModelSpec, options: CallOptions = {}): Promise<ModelShown> {
    return this.http.json({ ...options, method: 'PUT', path: entry(model), json: spec })
  }

  remove(model: string, options: CallOptions & { reason?: string | undefined } = {}): Promise<void> {
    const { reason, ...call } = options
    return this.http.json({ ...call, method: 'DELETE', path: entry(model), query: { reason } })
  }

  /** Asks a model a few short questions, and says what it can do. It takes as long as the model needs. */
  test(model: string, options: CallOptions = {}): Promise<Tested> {
    return this.http.json({ timeoutMs: 300_000, ...options, method: 'POST', path: `${entry(model)}/test`, once: true })
  }

  /** Seals a key for endpoints under a name. Nothing shows it again. */
  setKey(name: string, value: string, options: CallOptions = {}): Promise<void> {
    return this.http.json({ ...options, method: 'PUT', path: `/v1/model-keys/${part(name)}`, json: { value }, once: true })
  }

  /** Destroys a key. */
  removeKey(name: string, options: CallOptions = {}): Promise<void> {
    return this.http.json({ ...options, method: 'DELETE', path: `/v1/model-keys/${part(name)}`, once: true })
  }

  /** Sets which models answer, and the budgets. Both lists replace those that are there. */
  configure(settings: { routes: ModelRoute[]; budgets: ModelBudget[] }, options: CallOptions = {}): Promise<ModelSettings> {
    return this.http.json({ ...options, method: 'PUT', path: '/v1/model-settings', json: settings })
  }

  /** Says what models were used for: requests, tokens and costs. */
  usage(options: UsageOptions = {}): Promise<UsageList> {
    const { scope, day, runId, limit, ...call } = options
    return this.http.json({ ...call, path: '/v1/usage', query: clean({ scope, day, run_id: runId, limit }) })
  }
}

function entry(model: string): string {
  return `/v1/models/${part(model)}`
}
