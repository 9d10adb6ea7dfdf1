import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { checkConfig } from '../../../src/config/check.ts'
import { parseJsonText } from '../../../src/config/json-text.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { send } from '../../support/raw.ts'

/** Clients written for Graphiti's memory server, at the same path, with the tools and arguments it had at first. */

const NINE = [
  ...['add_memory', 'search_nodes', 'search_memory_facts', 'delete_entity_edge', 'delete_episode'],
  ...['get_entity_edge', 'get_episodes', 'clear_graph', 'get_status'],
]

let folder: string
let gateway: Awaited<ReturnType<typeof startGateway>>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-graphiti-'))
  const { snapshot, problems } = checkConfig(parseJsonText('{}'), { env: {} })
  expect(problems).toEqual([])
  const listen = { ...snapshot.listen, port: 0 }
  gateway = await startGateway({ ...snapshot, listen }, { log: SILENT, data: folder })
  await gateway.ready // the thread of the memory compiles TypeScript first
}, 60_000)
afterAll(async () => {
  await gateway.close()
  await rm(folder, { recursive: true, force: true })
})

type Members = Readonly<Record<string, unknown>>
interface Result {
  readonly content: readonly { readonly type: string; readonly text: string }[]
  readonly structuredContent?: Members
  readonly isError?: boolean
}

/** Every answer is one event, taken apart as the notes on Graphiti's server say; newer clients take JSON, too. */
const messageIn = (text: string, isOld: boolean): Members => {
  if (!isOld) return JSON.parse(/^data: ?(.*)$/m.exec(text)?.[1] ?? text) as Members
  const start = 'event: message\ndata: '
  expect(text.slice(0, start.length)).toBe(start)
  return JSON.parse(text.slice(start.length)) as Members
}

/** A client by hand: it shakes hands with one request, keeps the session id, and says no more than that. */
const scripted = async (revision: string) => {
  const url = `${gateway.origin}/mcp/`
  const isOld = revision === '2024-11-05'
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const clientInfo = { name: 'test-client', version: '1.0.0' }
  const params = { protocolVersion: revision, capabilities: {}, clientInfo }
  const hello = await send(url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } })
  const session = { ...headers, 'mcp-session-id': String(hello.headers['mcp-session-id']) }
  let id = 1
  const ask = async (method: string, params?: object): Promise<Members> =>
    messageIn((await send(url, { headers: session, body: { jsonrpc: '2.0', id: ++id, method, params } })).text, isOld)
  const call = async (name: string, given: object = {}): Promise<Result> =>
    (await ask('tools/call', { name, arguments: given })).result as unknown as Result
  return { hello: messageIn(hello.text, isOld), ask, call }
}

/** What a tool said, after looking that it says the same in both ways. */
const said = ({ content, structuredContent, isError }: Result): Members => {
  expect(isError ?? false).toBe(false)
  const text = JSON.parse(content[0]?.text ?? '') as Members
  if (structuredContent !== undefined)
    expect('result' in structuredContent ? structuredContent.result : structuredContent).toEqual(text)
  return text
}

const list = (found: Members, key: string): Members[] => found[key] as Members[]

/** The nine tools in the order somebody comes to use them, with the answers he knows. */
const useNine = async (call: (name: string, given?: Record<string, unknown>) => Promise<Result>, group: string) => {
  const ask = async (name: string, given: Record<string, unknown> = {}) => said(await call(name, given))
  const group_ids = [group]
  expect(await ask('get_status')).toEqual({ status: 'ok', message: expect.any(String) })
  const bodies = [
    { name: 'Team', episode_body: 'Priya leads the Falcon project. Tomas reviews it.' },
    { name: 'Chat', episode_body: 'user: I prefer tea\nassistant: Noted', source: 'message' },
    { name: 'CRM', episode_body: '{"name":"Acme","city":"Lyon"}', source: 'json', source_description: 'CRM export' },
  ]
  for (const body of bodies)
    expect(await ask('add_memory', { ...body, group_id: group })).toEqual({
      message: `Episode '${body.name}' queued for processing in group '${group}'`,
      uuid: expect.any(String),
    })
  const nodes = await ask('search_nodes', { query: 'Priya', group_ids, max_nodes: 5 })
  expect(nodes.message).toBe('Nodes retrieved successfully')
  const [priya] = list(nodes, 'nodes')
  expect(priya).toMatchObject({ name: 'Priya', group_id: group, labels: expect.arrayContaining(['Entity']) })
  const center_node_uuid = String(priya?.uuid)
  const facts = await ask('search_memory_facts', {
    query: 'Who leads Falcon?',
    group_ids,
    max_facts: 5,
    center_node_uuid,
  })
  expect(facts.message).toBe('Facts retrieved successfully')
  const uuid = String(list(facts, 'facts')[0]?.uuid)
  expect(await ask('get_entity_edge', { uuid })).toEqual(list(facts, 'facts')[0])
  expect(await ask('get_entity_edge', { uuid })).toMatchObject({
    fact: 'Priya leads the Falcon project.',
    group_id: group,
  })
  expect(await ask('delete_entity_edge', { uuid })).toEqual({
    message: `Entity edge with UUID ${uuid} deleted successfully`,
  })
  expect(await ask('delete_entity_edge', { uuid })).toEqual({
    error: `Error deleting entity edge: edge ${uuid} not found`,
  })
  const episodes = list(await ask('get_episodes', { group_ids, max_episodes: 10 }), 'episodes')
  expect(episodes.map(({ name }) => name)).toEqual(['CRM', 'Chat', 'Team'])
  const chat = String(episodes[1]?.uuid)
  expect(await ask('delete_episode', { uuid: chat })).toEqual({
    message: `Episode with UUID ${chat} deleted successfully`,
  })
  expect(list(await ask('get_episodes', { group_ids }), 'episodes')).toHaveLength(2)
  expect(await ask('clear_graph', { group_ids })).toEqual({
    message: `Graph data cleared successfully for group IDs: ${group}`,
  })
  expect(await ask('get_episodes', { group_ids })).toEqual({ message: 'No episodes found', episodes: [] })
  expect(await ask('search_nodes', { query: 'Priya', group_ids })).toEqual({
    message: 'No relevant nodes found',
    nodes: [],
  })
  expect(await ask('search_memory_facts', { query: 'x', group_ids, max_facts: 0 })).toEqual({
    error: 'max_facts must be a positive integer',
  })
}

describe.each(['2024-11-05', '2025-03-26'])('a client by hand that speaks %s', revision => {
  it('gets its revision, and the tools it knows', async () => {
    const { hello, ask } = await scripted(revision)
    expect(hello).toMatchObject({ id: 1, result: { protocolVersion: revision, instructions: expect.any(String) } })
    const { result } = await ask('tools/list')
    expect(list(result as Members, 'tools').map(({ name }) => name)).toEqual(expect.arrayContaining(NINE))
  })

  it('uses the nine tools with the arguments it knows', async () => {
    const { call } = await scripted(revision)
    await useNine(call, `hand-${revision}`)
  })

  it('gets the known messages for invalid arguments and unknown tools', async () => {
    const { ask, call } = await scripted(revision)
    const { isError, content } = await call('search_nodes', {})
    expect([isError, content[0]?.text]).toEqual([
      true,
      'Error executing tool search_nodes: 1 validation error for search_nodesArguments\nquery\n  Field required [type=missing]',
    ])
    expect(await ask('tools/call', { name: 'add_episode', arguments: {} })).toMatchObject({ error: { code: -32602 } })
  })

  it('writes a text in one argument', async () => {
    const { call } = await scripted(revision)
    const written = said(await call('write_memory', { text: `The spare key of ${revision} hangs behind the clock.` }))
    expect(written).toMatchObject({ uuid: expect.any(String) })
    const found = said(await call('search_memory_facts', { query: `spare key ${revision}` }))
    expect(list(found, 'facts')[0]?.fact).toContain(revision)
  })
})

describe.each([
  ['SDK v1', connectV1],
  ['SDK v2', (options: { url: string }) => connectV2('SDK v2 auto', options)],
] as const)('a client of %s', (kind, connect) => {
  it('uses the nine tools, whose results match their output schemas', async () => {
    const client = await connect({ url: `${gateway.origin}/mcp/` })
    try {
      expect(await client.toolNames()).toEqual(expect.arrayContaining(NINE))
      await useNine(
        async (name, given) => (await client.call(name, given)) as unknown as Result,
        kind.replace(' ', '-'),
      )
    } finally {
      await client.close()
    }
  })
})
