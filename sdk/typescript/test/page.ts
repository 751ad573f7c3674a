// What a page does with the SDK. browser.test.ts has a browser load it, and reads what it tells.
import { Agentbox, NotFoundError, PolicyDeniedError } from '../src/index.js'

/** What the page has seen. */
export interface Told {
  failure?: string
  agent?: string
  stdout?: string
  streamed?: string
  frames?: string[]
  text?: string | undefined
  files?: string[]
  bytes?: number[]
  refused?: string
  events?: string[]
  follows?: boolean
  changes?: string[]
}

async function journey(client: Agentbox): Promise<Told> {
  const told: Told = {}
  const space = await client.spaces.create({ runtime: 'nano' })
  told.stdout = (await space.exec('echo hello from a page')).stdout
  told.text = await (await space.code('sum([40, 2])')).text()
  await space.files.writeMany({ 'in/a.txt': 'ü', 'in/b.bin': new Blob([new Uint8Array([0, 255, 128])]) })
  told.files = (await space.files.list('in')).map((e) => e.path).sort()
  told.bytes = [...(await space.files.read('in/b.bin'))]

  const names: string[] = []
  let printed = ''
  for await (const frame of await space.runStream([{ type: 'shell', command: 'for n in 1 2 3; do echo $n; done' }])) {
    names.push(frame.event)
    if (frame.event === 'stdout') printed += frame.data.encoding === 'base64' ? atob(frame.data.data) : frame.data.data
  }
  told.frames = names
  told.streamed = printed

  const refusals = [space.exec('sudo true'), space.files.read('missing')].map((work) => work.catch((err: unknown) => err))
  const [denied, missing] = await Promise.all(refusals)
  told.refused = `${denied instanceof PolicyDeniedError} ${missing instanceof NotFoundError}`

  const changes: string[] = []
  for await (const change of space.files.watch('in', { onStart: () => void space.files.write('in/c.txt', 'c') })) {
    changes.push(`${change.kind} ${change.path}`)
    if (change.path === 'in/c.txt') break
  }
  told.changes = changes
  await space.destroy()

  // The events of the space from its beginning, and then the one that is recorded while the stream is open.
  const stop = new AbortController()
  const types: string[] = []
  for await (const e of client.events.subscribe({ fromSeq: 1, spaceId: space.id, signal: stop.signal })) {
    types.push(e.event_type)
    if (e.event_type === 'space.destroyed') stop.abort()
  }
  told.events = types
  const following = new AbortController()
  const room = await client.rooms.create({ title: 'page' })
  for await (const e of client.events.subscribe({ fromSeq: 1, roomId: room.room_id, signal: following.signal })) {
    if (e.event_type === 'room.created') void client.rooms.createThread(room.room_id, 'posts')
    if (e.event_type === 'thread.created') following.abort()
  }
  told.follows = true
  return told
}

/** The server puts the key of the page into it. */
const given = JSON.parse(document.getElementById('given')?.textContent ?? '{}') as { key: string }
const client = new Agentbox({ url: location.origin, key: given.key })
const told = await journey(client).catch((err: unknown): Told => ({ failure: err instanceof Error ? `${err.message}\n${err.stack}` : String(err) }))
await fetch('/told', { method: 'POST', body: JSON.stringify({ ...told, agent: navigator.userAgent }) })
