/** One server-sent event. */
export interface Message {
  id: string
  event: string
  data: string
}

/** The most that one message of a stream may have, in characters. */
const MAX_MESSAGE = 64 << 20

/** messages reads the events of a stream until it ends. An event that the end cut off is dropped. */
export async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  let id = ''
  let event = 'message'
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      let from = 0
      for (;;) {
        const end = lineEnd(rest, from)
        if (!end) break
        const line = rest.slice(from, end.at)
        from = end.next
        if (line === '') {
          if (data.length > 0) yield { id, event, data: data.join('\n') }
          event = 'message'
          data = []
          continue
        }
        const colon = line.indexOf(':')
        const field = colon < 0 ? line : line.slice(0, colon)
        const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
        if (field === 'id' && !text.includes('\0')) id = text
        else if (field === 'event') event = text || 'message'
        else if (field === 'data') data.push(text)
      }
      rest = rest.slice(from)
      if (rest.length > MAX_MESSAGE) throw new RangeError(`a message of the stream has more than ${MAX_MESSAGE} characters`)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** lineEnd finds the end of a line: LF, CR or CR LF. A CR at the end of the text may be half of a CR LF. */
function lineEnd(text: string, from: number): { at: number; next: number } | undefined {
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 10) return { at: i, next: i + 1 }
    if (c === 13) {
      if (i + 1 === text.length) return undefined
      return { at: i, next: text.charCodeAt(i + 1) === 10 ? i + 2 : i + 1 }
    }
  }
  return undefined
}
