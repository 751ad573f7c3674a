// Has `ai` work at a scripted model: drive.mjs URL STEPS. The tool does nothing. The model's server measures.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'

const [, , baseURL, steps] = process.argv
const provider = createOpenAICompatible({ name: 'scripted', baseURL, apiKey: 'none' })
const result = streamText({
  model: provider.chatModel('m'),
  prompt: 'work',
  tools: { note: tool({ description: 'Does nothing.', inputSchema: z.object({ n: z.number() }), execute: async () => 'done' }) },
  stopWhen: stepCountIs(Number(steps) + 1),
})
let text = ''
for await (const piece of result.textStream) text += piece
if (!text.endsWith(`turn ${steps}`)) throw new Error(`it ended with ${text}`)
