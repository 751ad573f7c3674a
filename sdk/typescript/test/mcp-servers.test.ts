// The MCP servers of agents: added, looked at, trusted and removed, against a real daemon and a server in a space.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { AgentboxError, ConflictError, NotFoundError, ValidationError, type Agentbox } from '../src/index.js'
import { Daemon } from '../src/testing.js'
import { guarded } from './guarded.js'
import { vendor } from './vendor.js'

let daemon: Daemon
let client: Agentbox
before(async () => {
  daemon = await Daemon.start()
  client = daemon.client
})
after(() => daemon?.stop())

/** INNER is an MCP server that runs in a space. It answers by the protocol's messages, one in each line. */
const INNER = `import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "inner", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]}
    else:
        r = {"content": [{"type": "text", "text": "counted"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

/** refused returns the code of a call's refusal. */
async function refused(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (err) {
    if (err instanceof AgentboxError) return err.code
    throw err
  }
  throw new Error('it was not refused')
}

test('mcp servers: add, list, show, change, remove', async () => {
  const added = await client.mcpServers.put('kept', { url: 'https://mcp.example.com/mcp', key: 'example' })
  assert.deepEqual([added.name, added.url, added.key, added.tools], ['kept', 'https://mcp.example.com:443/mcp', 'example', []])
  const key = 'the-same-change'
  const changed = await client.mcpServers.put('kept', { url: 'https://mcp.example.com/other' }, { idempotencyKey: key })
  assert.deepEqual([changed.url, changed.key], ['https://mcp.example.com:443/other', undefined])
  assert.deepEqual(await client.mcpServers.put('kept', { url: 'https://mcp.example.com/other' }, { idempotencyKey: key }), changed)
  assert.ok(await refused(client.mcpServers.put('kept', { command: 'true' }, { idempotencyKey: key })), 'the key was for another change')
  assert.deepEqual(await client.mcpServers.get('kept'), changed)
  assert.ok((await client.mcpServers.list()).some((s) => s.name === 'kept'))
  await assert.rejects(client.mcpServers.put('both', { url: 'https://mcp.example.com/mcp', command: 'true' }), ValidationError)
  await client.mcpServers.remove('kept', { reason: 'not used' })
  await assert.rejects(client.mcpServers.get('kept'), NotFoundError)
  assert.ok(!(await client.mcpServers.list()).some((s) => s.name === 'kept'))
  await assert.rejects(client.mcpServers.remove('kept'), NotFoundError)
})

test('mcp servers: an agent uses a tool that was looked at and trusted', async () => {
  await using served = await vendor([[{ tool: 'inner__count', arguments: {} }]], 'it is counted')
  await client.mcpServers.put('inner', { command: 'python3 inner.py' })
  await using space = await client.spaces.create({ runtime: 'heavy', policy: 'permissive' })
  await space.files.write('inner.py', INNER)
  const seen = await client.mcpServers.look('inner', space)
  assert.deepEqual(seen.tools.map((t) => [t.tool, t.name, t.state, t.description]), [['count', 'inner__count', 'quarantined', 'Counts.']])
  const other = { tool: 'count', tool_sha256: `sha256:${'0'.repeat(64)}` }
  await assert.rejects(client.mcpServers.trust('inner', [other]), (err) => err instanceof ConflictError && err.code === 'mcp_tool_changed')
  assert.equal(await refused(client.mcpServers.trust('inner', [{ tool: 'count' }])), 'usage')
  const trusted = await client.mcpServers.trust('inner', seen.tools)
  assert.deepEqual(trusted.tools.map((t) => [t.state, t.tool_sha256]), [['trusted', seen.tools[0].tool_sha256]])
  assert.notEqual(trusted.mcp_server_sha256, seen.mcp_server_sha256)

  await client.models.put('counter', { dialect: 'generic', base_url: served.url, model: 'counter-1', allow_private: true })
  const text = 'api_version: 1\nname: counter\nadapter: {kind: internal}\nmodels: {default: counter}\ntools: {mcp: [inner]}\n'
  await client.blueprints.register('counter', await client.blueprints.lock(text))
  const questions: string[] = []
  const run = await client.agents.run('counter', 'Count.', {
    space,
    onApproval: (question) => {
      questions.push(question.question?.what ?? '')
      return 'approve'
    },
  })
  assert.equal(run.report, 'it is counted', run.error)
  assert.match(JSON.stringify(served.asked.at(-1)?.messages), /counted/)
  assert.match(questions.join(), /inner__count/)
  await client.mcpServers.remove('inner')
})

test('mcp servers: a login that cannot begin, and one that has not begun', async () => {
  await using space = await client.spaces.create()
  await client.mcpServers.put('plain', { url: 'https://mcp.example.com/mcp' })
  const back = 'http://127.0.0.1:41817/callback'
  assert.equal(await refused(client.mcpServers.beginLogin('plain', space, back)), 'mcp_login_unwanted')
  await client.mcpServers.put('notes', { url: 'https://mcp.example.com/mcp', login: true })
  assert.equal(await refused(client.mcpServers.beginLogin('notes', space, 'https://example.com/callback')), 'invalid_field')
  assert.equal(await refused(client.mcpServers.beginLogin('notes', space.id, back)), 'no_policy_allows')
  assert.equal(await refused(client.mcpServers.finishLogin('notes', { code: 'c', state: 'WQ4HZ5OJ3TGKX2A7SB6YCLV4NE' })), 'mcp_login_not_found')
  assert.equal(await refused(client.mcpServers.logOut('notes')), 'mcp_login_needed')
  assert.equal((await client.mcpServers.get('notes')).logged_in, undefined)
})

test('mcp servers: a person logs in and out', async () => {
  await using served = await guarded()
  await client.mcpServers.put('guarded', { url: served.url, login: true })
  await using space = await client.spaces.create({ bestEffort: true, policyOverrides: { allow: { domains: [new URL(served.url).host] } } })
  assert.equal(await refused(client.mcpServers.look('guarded', space)), 'mcp_login_needed')
  const back = 'http://127.0.0.1:41817/callback'
  const visit = await client.mcpServers.beginLogin('guarded', space, back)
  assert.ok(Date.parse(visit.expires_at) > Date.now())
  const sent = await fetch(visit.authorization_url, { redirect: 'manual' }) // as the person's browser does
  const address = new URL(sent.headers.get('location') ?? '')
  assert.equal(address.origin + address.pathname, back)
  const { code, state, iss } = Object.fromEntries(address.searchParams)
  const server = await client.mcpServers.finishLogin('guarded', { code, state, iss })
  assert.equal(await refused(client.mcpServers.finishLogin('guarded', { code, state, iss })), 'mcp_login_not_found')
  assert.deepEqual([server.logged_in?.client_id, server.logged_in?.scopes], ['client-1', ['tools']])
  const seen = await client.mcpServers.look('guarded', space)
  assert.deepEqual(seen.tools.map((t) => t.name), ['guarded__echo'])
  assert.equal(served.secrets.length, 3)
  for (const s of served.secrets) assert.ok(!JSON.stringify([server, seen, await client.mcpServers.list()]).includes(s), s)
  await client.mcpServers.logOut('guarded')
  assert.equal((await client.mcpServers.get('guarded')).logged_in, undefined)
  assert.equal(await refused(client.mcpServers.look('guarded', space)), 'mcp_login_needed')
})
