import { jsonSchema, tool, type ToolSet } from 'ai'
import type { Space } from './space.js'
import { tools, type ToolOptions } from './tools.js'

/** The tools of a space for the Vercel AI SDK: `generateText({ tools: agentboxTools(space), ... })`. */
export function agentboxTools(space: Space, options: ToolOptions = {}): ToolSet {
  return Object.fromEntries(
    tools(space, options).map((t) => [
      t.name,
      tool({
        description: t.description,
        inputSchema: jsonSchema<Record<string, unknown>>(t.schema as never),
        execute: (input: Record<string, unknown>, call: { abortSignal?: AbortSignal | undefined }) => t.execute(input, { signal: call.abortSignal }),
      }),
    ]),
  ) as ToolSet
}
