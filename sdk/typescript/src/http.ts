import { AgentboxError, NetworkError, RateLimitError, TimeoutError, UnavailableError, ValidationError, fromProblem } from './errors.js'
import type { Problem } from './schema.js'
import { messages, type Message } from './sse.js'

/** Escapes one part of a path. Two dots would go up, and name another thing: a space instead of one of its contexts. */
export function part(text: string): string {
  if (text === '' || text === '.' || text === '..') throw new ValidationError(`${JSON.stringify(text)} names nothing`, { code: 'name_invalid', status: 400 })
  return encodeURIComponent(text)
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call. What was asked may still happen. */
  signal?: AbortSignal | undefined
  /** Milliseconds that the call may take, with its repeats; by default those of the client. */
  timeoutMs?: number | undefined
  /** Makes repeats safe: the daemon does the same thing once. A key is made up for each change unless one is given. */
  idempotencyKey?: string | undefined
}

export interface Request extends CallOptions {
  method?: string
  path: string
  query?: Record<string, string | number | boolean | undefined>
  json?: unknown
  body?: BodyInit
  headers?: Record<string, string>
  /** The daemon takes no idempotency key for it, so it is sent once. */
  once?: boolean
}

export interface TransportOptions {
  url: string
  key: string
  capabilityToken?: string | undefined
  timeoutMs: number
  retries: number
  fetch: typeof fetch
}

/** Transport sends requests, repeats those that may be repeated, and turns problem documents into errors. */
export class Transport {
  /** The address of the daemon. */
  readonly url: string
  readonly #options: TransportOptions

  constructor(options: TransportOptions) {
    if (!/^https?:\/\//.test(options.url)) {
      throw new ValidationError(`${options.url} is not the address of a daemon`, {
        code: 'config_invalid',
        suggestion: 'write it with http or https, as in http://127.0.0.1:7433',
      })
    }
    this.url = options.url
    this.#options = options // with the key, which nothing shows
  }

  /** json sends a request and reads the JSON of its answer. */
  async json<T>(request: Request): Promise<T> {
    const answer = await this.send(request)
    return (answer.status === 204 ? undefined : await read(() => answer.json())) as T
  }

  /** bytes sends a request and reads the bytes of its answer. */
  async bytes(request: Request): Promise<Uint8Array> {
    const answer = await this.send(request)
    return new Uint8Array(await read(() => answer.arrayBuffer()))
  }

  /** send sends a request and returns the answer, which is a success. */
  async send(request: Request): Promise<Response> {
    const method = request.method ?? 'GET'
    const headers: Record<string, string> = { ...this.credentials(), Accept: 'application/json, application/octet-stream', ...request.headers }
    let body = request.body
    if (request.json !== undefined) {
      headers['Content-Type'] = 'application/json'
      body = JSON.stringify(request.json)
    }
    if (method !== 'GET' && !request.once) headers['Idempotency-Key'] = request.idempotencyKey ?? crypto.randomUUID()
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs
    const late = AbortSignal.timeout(timeoutMs)
    const signal = request.signal ? AbortSignal.any([request.signal, late]) : late
    for (let failed = 0; ; failed++) {
      try {
        return await this.once(request, { method, headers, signal, ...(body === undefined ? {} : { body }) })
      } catch (err) {
        if (request.signal?.aborted) throw request.signal.reason
        if (late.aborted) {
          throw new TimeoutError(`${method} ${request.path} was not answered within ${timeoutMs} ms`, { code: 'timeout', cause: err })
        }
        if (request.once || failed >= this.#options.retries || !passing(err)) throw err
        await pause(backoff(failed, err), signal).catch(() => undefined) // the next try says why it was aborted
      }
    }
  }

  private async once(request: Request, init: RequestInit): Promise<Response> {
    let answer: Response
    try {
      answer = await this.#options.fetch(this.address(request), { ...init, redirect: 'error' }) // nobody else gets the key, or the request
    } catch (err) {
      throw new NetworkError(`the daemon at ${this.#options.url} cannot be reached: ${why(err)}`, {
        code: 'unreachable',
        suggestion: 'start one with: agentbox up',
        cause: err,
      })
    }
    if (answer.ok) return answer
    throw await problem(answer)
  }

  private address(request: Request): string {
    const url = new URL(this.#options.url.replace(/\/+$/, '') + request.path)
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    return url.href
  }

  private credentials(): Record<string, string> {
    return {
      Authorization: `Bearer ${this.#options.key}`,
      ...(this.#options.capabilityToken ? { 'X-Capability-Token': this.#options.capabilityToken } : {}),
    }
  }

  /**
   * follow yields the messages of an event stream and takes it up again where it broke, until `done` says that a message was the last, the
   * signal ends it, or the daemon does not come back. Nothing is lost and nothing comes twice.
   */
  async *follow(
    request: Request & { lastId?: string | undefined; done?: (m: Message) => boolean },
  ): AsyncGenerator<Message, void, undefined> {
    let last = request.lastId
    for (let failed = 0; ; ) {
      request.signal?.throwIfAborted()
      let progress = false
      let failure: unknown
      try {
        const answer = await this.once(request, {
          method: 'GET',
          headers: { ...this.credentials(), Accept: 'text/event-stream', ...(last === undefined ? {} : { 'Last-Event-ID': last }) },
          ...(request.signal ? { signal: request.signal } : {}),
        })
        if (answer.status === 204 || !answer.body) return
        for await (const m of messages(answer.body)) {
          progress = true
          if (m.id !== '') last = m.id
          yield m
          if (request.done?.(m)) return
        }
      } catch (err) {
        if (request.signal?.aborted) throw request.signal.reason
        if (err instanceof AgentboxError && !passing(err)) throw err
        failure = err
      }
      failed = progress ? 1 : failed + 1
      if (failed > Math.max(this.#options.retries, 6)) {
        throw failure ?? new UnavailableError('the daemon ends the stream again and again', { code: 'stream_ended' })
      }
      if (failure || !progress) await pause(backoff(failed - 1, failure), request.signal)
    }
  }
}

/** problem reads the problem document of an answer that is none of success. */
async function problem(answer: Response): Promise<AgentboxError> {
  const text = await answer.text().catch(() => '')
  try {
    const p = JSON.parse(text) as Problem
    if (typeof p.error === 'string') return fromProblem({ ...p, status: answer.status, retry_after: p.retry_after ?? retryAfter(answer) } as Problem)
  } catch {
    // not from the daemon: a proxy, perhaps
  }
  return fromProblem({
    title: answer.statusText,
    status: answer.status,
    error: `http_${answer.status}`,
    detail: text.slice(0, 200) || `the answer was ${answer.status}`,
    request_id: answer.headers.get('x-request-id') ?? '',
  })
}

function retryAfter(answer: Response): number | undefined {
  const seconds = Number(answer.headers.get('retry-after'))
  return seconds > 0 ? seconds : undefined
}

async function read<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body()
  } catch (err) {
    throw new NetworkError(`the answer broke off: ${why(err)}`, { code: 'answer_cut', cause: err })
  }
}

/** passing says whether the same request may succeed a moment later. */
function passing(err: unknown): boolean {
  return (
    err instanceof UnavailableError ||
    (err instanceof RateLimitError && (err.retryAfter ?? 0) <= 10) ||
    (err instanceof AgentboxError && ([502, 504].includes(err.status) || err.code === 'idempotency_in_progress'))
  )
}

/** backoff doubles from 100 ms to 5 s, with a fifth of chance, and follows Retry-After. */
function backoff(failed: number, err: unknown): number {
  if (err instanceof RateLimitError && err.retryAfter) return err.retryAfter * 1000
  return Math.min(100 * 2 ** failed, 5000) * (0.9 + Math.random() * 0.2)
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve()
    }, ms)
    if (signal?.aborted) end()
    else signal?.addEventListener('abort', end, { once: true })
  })
}

function why(err: unknown): string {
  const cause = err instanceof Error && err.cause instanceof Error ? err.cause : err
  return cause instanceof Error ? cause.message || cause.name : String(cause)
}
