import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { Space } from './space.js'
import { tools, type ToolOptions } from './tools.js'

/** An MCP server that offers the tools of a space; connect it to a transport of `@modelcontextprotocol/sdk`. */
export function agentboxServer(space: Space, options: ToolOptions = {}): Server {
  const offered = tools(space, options)
  const server = new Server({ name: 'agentbox', version: '0.1.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: offered.map((t) => ({ name: t.name, description: t.description, inputSchema: t.schema })),
  }))
  server.setRequestHandler(CallToolRequestSchema, async (request, extra) => {
    const found = offered.find((t) => t.name === request.params.name)
    if (!found) return { isError: true, content: [{ type: 'text' as const, text: `there is no tool ${request.params.name}` }] }
    const text = await found.execute(request.params.arguments ?? {}, { signal: extra.signal })
    return { isError: /^(denied|error|waits for a person)/.test(text), content: [{ type: 'text' as const, text }] }
  })
  return server
}
