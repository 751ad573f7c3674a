// Measures the TypeScript SDK against the daemon of AGENTBOX_URL and prints milliseconds as JSON.
// measure.mjs SDK call COUNT | measure.mjs SDK subscriptions HOW_MANY EVENTS
import { pathToFileURL } from 'node:url'

const [, , folder, what, ...numbers] = process.argv
const { Agentbox } = await import(pathToFileURL(`${folder}/index.js`).href)
const [url, key] = [process.env.AGENTBOX_URL, process.env.AGENTBOX_KEY]
const client = new Agentbox({ url, key })

async function timed(into, f) {
  const began = performance.now()
  await f()
  into.push(performance.now() - began)
}

if (what === 'call') {
  const space = await client.spaces.create({ runtime: 'nano' })
  const ours = []
  const raw = []
  for (let n = -20; n < Number(numbers[0]); n++) {
    await timed(n < 0 ? [] : raw, async () => {
      const answer = await fetch(`${url}/v1/spaces/${space.id}`, { headers: { Authorization: `Bearer ${key}` } })
      if (!answer.ok) throw new Error(`${answer.status}`)
      await answer.json()
    })
    await timed(n < 0 ? [] : ours, () => client.spaces.get(space.id))
  }
  await space.destroy()
  console.log(JSON.stringify({ ours, raw }))
} else {
  const [many, events] = numbers.map(Number)
  const { room_id } = await client.rooms.create({ title: 'busy' })
  const { thread_id } = await client.rooms.createThread(room_id, 'posts')
  const stop = new AbortController()
  const from = (await client.events.list({ limit: 1 })).next_from_seq
  let arrived = 0
  let done = () => {}
  const following = Array.from({ length: many }, async () => {
    for await (const e of client.events.subscribe({ fromSeq: from, eventTypes: ['message.created'], signal: stop.signal })) {
      if (e.event_type === 'message.created' && ++arrived % many === 0) done()
    }
  })
  const ours = []
  for (let n = 0; n <= events; n++) {
    await timed(n === 0 ? [] : ours, async () => {
      const all = new Promise((resolve) => (done = resolve))
      await client.rooms.post(thread_id, `event ${n}`)
      await all
    })
    if (arrived !== (n + 1) * many) throw new Error(`${arrived} arrived, and ${(n + 1) * many} were sent`)
  }
  console.log(JSON.stringify({ ours, rss: process.memoryUsage().rss / 1e6 }))
  stop.abort()
  await Promise.all(following)
}
