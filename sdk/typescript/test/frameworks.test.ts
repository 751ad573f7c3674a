// The helpers for frameworks, with the frameworks themselves and a model that follows a script.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { RunContext } from '@openai/agents'
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { agentboxTools } from '../src/ai.js'
import { agentboxServer } from '../src/mcp.js'
import { agentboxTools as openaiTools } from '../src/openai-agents.js'
import { Daemon } from '../src/testing.js'

let daemon: Daemon
before(async () => {
  daemon = await Daemon.start()
})
after(() => daemon?.stop())

test('the Vercel AI SDK runs a command through a space', async () => {
  await using space = await daemon.client.spaces.create()
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  let turn = 0
  const model = new MockLanguageModelV3({
    doGenerate: async (call) => {
      turn++
      if (turn === 1) {
        return {
          finishReason: { unified: 'tool-calls' as const, raw: undefined }, usage, warnings: [],
          content: [{ type: 'tool-call' as const, toolCallId: '1', toolName: 'run_command', input: JSON.stringify({ command: 'echo $((6*7))' }) }],
        }
      }
      const said = JSON.stringify(call.prompt.at(-1))
      return { finishReason: { unified: 'stop' as const, raw: undefined }, usage, warnings: [], content: [{ type: 'text' as const, text: said.includes('42') ? 'it is 42' : said }] }
    },
  })
  const done = await generateText({ model, tools: agentboxTools(space), stopWhen: stepCountIs(3), prompt: 'compute' })
  assert.equal(done.text, 'it is 42')
})

test('the OpenAI Agents SDK gets tools that work', async () => {
  await using space = await daemon.client.spaces.create()
  const found = openaiTools(space).find((t) => t.name === 'run_python')
  assert.equal(await found?.invoke(new RunContext(), JSON.stringify({ code: '6*7' })), '42')
})

test('an MCP client lists and calls the tools', async () => {
  await using space = await daemon.client.spaces.create()
  const [mine, theirs] = InMemoryTransport.createLinkedPair()
  const server = agentboxServer(space)
  await server.connect(theirs)
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(mine)
  assert.equal((await client.listTools()).tools.length, 6)
  const good = await client.callTool({ name: 'run_command', arguments: { command: 'echo hi' } })
  assert.equal((good.content as { text: string }[])[0].text.trim(), 'hi')
  const bad = await client.callTool({ name: 'run_command', arguments: { command: 'sudo id' } })
  assert.equal(bad.isError, true)
  await client.close()
})
