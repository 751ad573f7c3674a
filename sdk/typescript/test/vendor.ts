// A server that speaks the wire of chat completions, as OpenAI's, and plays a fixed conversation: the scripted model of agents.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A part of an answer: words, or the call of a tool. `$LAST` in words stands for the last text of a person. */
export interface Said {
  say?: string
  tool?: string
  arguments?: object
}

/** What the server was asked. */
export interface Asked {
  model: string
  messages: { role: string; content?: string | { text?: string }[] | null }[]
}

export interface Vendor extends AsyncDisposable {
  /** The base URL of the model. */
  readonly url: string
  /** The requests so far. */
  readonly asked: Asked[]
}

const text = (content: Asked['messages'][number]['content']): string => (Array.isArray(content) ? content.map((p) => p.text ?? '').join('') : (content ?? ''))

/** vendor serves answers: the parts of each answer of a conversation. Every answer after the last one is `report`. */
export async function vendor(answers: Said[][], report: string): Promise<Vendor> {
  const asked: Asked[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const question = JSON.parse(body) as Asked
    asked.push(question)
    const turn = question.messages.filter((m) => m.role === 'assistant').length
    const last = text(question.messages.findLast((m) => m.role === 'user')?.content)
    const parts = answers[turn] ?? [{ say: report }]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = (choices: object[], usage?: object): void => {
      response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: question.model, choices, usage })}\n\n`)
    }
    let calls = 0
    for (const part of parts) {
      for (const word of (part.say ?? '').replace('$LAST', last).match(/\S+\s*|\s+/g) ?? []) {
        chunk([{ index: 0, delta: { role: 'assistant', content: word }, finish_reason: null }])
      }
      if (!part.tool) continue
      const called = { index: calls, id: `call_${turn}_${calls}`, type: 'function', function: { name: part.tool, arguments: JSON.stringify(part.arguments) } }
      chunk([{ index: 0, delta: { role: 'assistant', tool_calls: [called] }, finish_reason: null }])
      calls++
    }
    chunk([{ index: 0, delta: {}, finish_reason: calls > 0 ? 'tool_calls' : 'stop' }])
    chunk([], { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 })
    response.end('data: [DONE]\n\n')
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise((closed) => server.close(() => closed()))
    },
  }
}

/** ADDING is the conversation of an agent that adds numbers by a program. Its report is `the sum is 5050`. */
export const ADDING: Said[][] = [
  [{ say: 'I add them. ' }, { tool: 'code', arguments: { language: 'javascript', code: 'let n = 0; for (let i = 1; i <= 100; i++) n += i; n' } }],
  [{ tool: 'createFile', arguments: { path: 'sum.txt', content: '5050\n', overwrite: true } }],
]
