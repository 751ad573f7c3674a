import { tool, type FunctionTool } from '@openai/agents'
import type { Space } from './space.js'
import { tools, type ToolOptions } from './tools.js'

/** The tools of a space for the OpenAI Agents SDK: `new Agent({ tools: agentboxTools(space), ... })`. */
export function agentboxTools(space: Space, options: ToolOptions = {}): FunctionTool[] {
  return tools(space, options).map(
    (t) =>
      tool({
        name: t.name,
        description: t.description,
        parameters: t.schema as never,
        strict: false,
        execute: (input: unknown) => t.execute(input as Record<string, unknown>),
      }) as unknown as FunctionTool,
  )
}
