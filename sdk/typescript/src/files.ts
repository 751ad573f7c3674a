import { AgentboxError, NotFoundError, OperationError, ValidationError } from './errors.js'
import { part, type CallOptions, type Transport } from './http.js'
import { fromBase64 } from './run.js'
import type { Listing, RunEvents, SpaceEntry, Uploaded } from './schema.js'

/** A file, folder or link of a space. */
export type Entry = SpaceEntry

/** What can be written as a file. */
export type Content = string | Uint8Array | ArrayBuffer | Blob

export interface WriteOptions extends CallOptions {
  /** Replaces a file that exists, which is so by default. */
  overwrite?: boolean | undefined
  /** `0755` makes it executable. */
  mode?: string | undefined
}

/** What became of a file or folder of a watched folder. */
export interface FileEvent {
  /** `overflow` says that more happened than is known: list the folder anew. */
  kind: 'created' | 'changed' | 'removed' | 'renamed' | 'overflow'
  /** Relative to the space's top; empty of `overflow`. */
  path: string
  /** The earlier path of what was renamed. */
  from?: string
  type?: 'file' | 'directory' | 'symlink' | 'other'
  size?: number
  /** Of a change: only the permissions are others. */
  attributesOnly?: boolean
  /** Give it as `after` to go on behind this event. */
  cursor: number
}

export interface WatchOptions extends CallOptions {
  /** Also what is in the folders. */
  recursive?: boolean | undefined
  /** A cursor of an earlier event, behind which the watch goes on. */
  after?: number | undefined
  /** Called when the watch has begun: what happens from then on is told. */
  onStart?: (() => void) | undefined
}

/** The files of a space. Paths are relative to its top and may hold slashes. */
export class Files {
  constructor(
    private readonly http: Transport,
    private readonly space: string,
  ) {}

  /** Reads a file. */
  async read(path: string, options: CallOptions = {}): Promise<Uint8Array> {
    if (path !== 'archive') return this.http.bytes({ ...options, path: this.at(path) })
    // GET /files/archive is the zip file of all; a file of that name is read by an operation.
    const done = await this.http.json<RunEvents>({
      ...options,
      method: 'POST',
      path: `/v1/spaces/${part(this.space)}/runs`,
      json: { protocolVersion: '1.0', title: 'read archive', operations: [{ type: 'readFile', path }] },
    })
    const result = done.events?.[0]
    if (result?.type !== 'readFile' || !result.success || result.content === undefined) {
      throw new OperationError(`archive cannot be read: ${JSON.stringify(result)}`, { code: 'file_unreadable' })
    }
    return result.encoding === 'base64' ? fromBase64(result.content) : new TextEncoder().encode(result.content)
  }

  /** Reads a file as UTF-8. */
  async readText(path: string, options: CallOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** Writes a file, which appears as a whole or not at all; folders are made. */
  async write(path: string, content: Content, options: WriteOptions = {}): Promise<Entry> {
    const { overwrite, mode, ...call } = options
    return this.http.json<Entry>({
      ...call,
      method: 'PUT',
      path: this.at(path),
      query: { overwrite, mode },
      headers: { 'Content-Type': 'application/octet-stream' },
      body: content as BodyInit,
    })
  }

  /** Deletes a file or an empty folder. */
  async delete(path: string, options: CallOptions = {}): Promise<void> {
    return this.http.json({ ...options, method: 'DELETE', path: this.at(path) })
  }

  /** Lists a folder; `recursive` also what is in its folders. */
  async list(folder = '', options: CallOptions & { recursive?: boolean } = {}): Promise<Entry[]> {
    const { recursive, ...call } = options
    const found = await this.http.json<Listing>({ ...call, path: this.base, query: { path: folder || undefined, recursive } })
    if (found.truncated) {
      throw new AgentboxError(`there are more entries below ${folder || 'the top'} than one listing holds`, {
        code: 'listing_truncated',
        suggestion: 'list the folders one by one, or read files.archive()',
      })
    }
    return found.entries
  }

  /** Says what lies at a path, or undefined. */
  async stat(path: string, options: CallOptions = {}): Promise<Entry | undefined> {
    const clean = path.replace(/\/+$/, '')
    try {
      return (await this.list(clean.split('/').slice(0, -1).join('/'), options)).find((e) => e.path === clean)
    } catch (err) {
      if (err instanceof NotFoundError) return undefined
      throw err
    }
  }

  /** Says whether anything lies at a path. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.stat(path, options)) !== undefined
  }

  /** Writes many files at once, by their paths. It fails with the first that was refused; the others are written all the same. */
  async writeMany(files: Record<string, Content> | Map<string, Content>, options: WriteOptions = {}): Promise<Entry[]> {
    const all = [...(files instanceof Map ? files : Object.entries(files))]
    const written: Entry[] = []
    const { overwrite = true, mode, ...call } = options
    for (let i = 0; i < all.length; i += 100) {
      const form = new FormData()
      for (const [path, content] of all.slice(i, i + 100)) {
        form.append('file', content instanceof Blob ? content : new Blob([content as BlobPart]), path)
      }
      const answer = await this.http.json<Uploaded>({ ...call, method: 'POST', path: this.base, query: { overwrite, mode }, body: form })
      const refused = answer.files.find((f) => !f.ok)
      if (refused) {
        const p = refused.error
        throw new AgentboxError(`${refused.path}: ${p?.detail ?? 'it was not taken'}`, {
          code: p?.error ?? 'file_refused',
          status: p?.status ?? 0,
          suggestion: p?.suggestion,
        })
      }
      written.push(...answer.files.flatMap((f) => (f.entry ? [f.entry] : [])))
    }
    return written
  }

  /**
   * Yields each change of the files in a folder, until the signal ends it or the folder is gone. It tells the changes of everybody. After a
   * lost connection it connects again and yields the changes of the meantime. If these are not known, it yields `overflow`.
   */
  async *watch(folder = '', options: WatchOptions = {}): AsyncGenerator<FileEvent, void, undefined> {
    const { recursive, after, onStart, signal } = options
    let started = false
    try {
      for await (const m of this.http.follow({
        ...(signal ? { signal } : {}),
        path: `/v1/spaces/${part(this.space)}/watch`,
        query: { path: folder || undefined, recursive },
        lastId: after?.toString(),
        done: (message) => message.event === 'ended',
      })) {
        if (m.event === 'watching' && !started) {
          started = true
          onStart?.()
        }
        if (m.event === 'watching') continue
        const d = JSON.parse(m.data) as WatchData
        if (m.event === 'ended') {
          if (d.reason === 'watched_folder_removed' || d.reason === 'space_files_missing') return
          throw new AgentboxError(`the watch of ${folder || 'the top'} has ended: ${d.reason ?? ''}`, { code: d.reason ?? 'watch_failed' })
        }
        yield {
          kind: m.event as FileEvent['kind'],
          path: d.path ?? '',
          cursor: d.cursor,
          ...(d.from === undefined ? {} : { from: d.from }),
          ...(d.type === undefined ? {} : { type: d.type }),
          ...(d.size_bytes === undefined ? {} : { size: d.size_bytes }),
          ...(d.attributes_only === undefined ? {} : { attributesOnly: d.attributes_only }),
        }
      }
    } catch (err) {
      if (!signal?.aborted) throw err
    }
  }

  /** Reads a folder with everything in it as a zip file. */
  archive(folder = '', options: CallOptions = {}): Promise<Uint8Array> {
    return this.http.bytes({ ...options, path: `${this.base}/archive`, query: { path: folder || undefined } })
  }

  /** Writes a folder of this machine, with everything in it, into the space. Links are left out. Node, Bun and Deno only. */
  async uploadDirectory(local: string, into = '', options: WriteOptions = {}): Promise<Entry[]> {
    const [fs, nodePath] = await Promise.all([import('node:fs/promises'), import('node:path')])
    const written: Entry[] = []
    let batch = new Map<string, Content>()
    let size = 0
    const send = async (): Promise<void> => {
      if (batch.size > 0) written.push(...(await this.writeMany(batch, options)))
      batch = new Map()
      size = 0
    }
    for (const found of (await fs.readdir(local, { recursive: true, withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (!found.isFile()) continue
      const full = nodePath.join(found.parentPath, found.name)
      const name = nodePath.relative(local, full).split(nodePath.sep).join('/')
      const content = await fs.readFile(full)
      batch.set(into ? `${into}/${name}` : name, content)
      size += content.length
      if (batch.size === 100 || size > 8 << 20) await send()
    }
    await send()
    return written
  }

  /** Writes everything below a folder of the space into a folder of this machine. Links are left out. Node, Bun and Deno only. */
  async downloadDirectory(folder: string, local: string, options: CallOptions = {}): Promise<string[]> {
    const [fs, nodePath] = await Promise.all([import('node:fs/promises'), import('node:path')])
    const top = nodePath.resolve(local)
    const written: string[] = []
    for (const entry of await this.list(folder, { ...options, recursive: true })) {
      const name = folder ? entry.path.slice(folder.length + 1) : entry.path
      const target = nodePath.resolve(top, name)
      if (!target.startsWith(top + nodePath.sep)) throw new AgentboxError(`${entry.path} would lie outside of ${local}`, { code: 'path_invalid' })
      if (entry.type === 'directory') await fs.mkdir(target, { recursive: true })
      if (entry.type !== 'file') continue
      await fs.mkdir(nodePath.dirname(target), { recursive: true })
      await fs.writeFile(target, await this.read(entry.path, options))
      written.push(target)
    }
    return written
  }

  private get base(): string {
    return `/v1/spaces/${part(this.space)}/files`
  }

  private at(path: string): string {
    const parts = path.split('/')
    if (path === '' || parts.some((p) => p === '.' || p === '..' || p === '')) {
      throw new ValidationError(`${JSON.stringify(path)} is no path below the files of a space`, { code: 'path_invalid', status: 400 })
    }
    return `${this.base}/${parts.map(encodeURIComponent).join('/')}`
  }
}

/** WatchData is the data of a message of a watch. */
interface WatchData {
  cursor: number
  path?: string
  from?: string
  type?: 'file' | 'directory' | 'symlink' | 'other'
  size_bytes?: number
  attributes_only?: boolean
  reason?: string
}
