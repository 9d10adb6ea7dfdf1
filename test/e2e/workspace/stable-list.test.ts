import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { isModern, REVISIONS, type Revision } from '../../../src/protocol/revisions.ts'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { Json } from '../../../src/wire/json/json.ts'
import { serverOf } from '../../matrix/cells.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { modern, openSession, send } from '../../support/raw.ts'

// Clients and model providers cache a list by its bytes: the one of a workspace above its budget depends on nothing but the
// definitions. The servers here list their tools in another order each time.

const SMALL = ['zeta', 'alpha', 'mid', 'Beta', 'alpha_2', 'ultra', 'gamma']
const FAVOURITES = SMALL.flatMap(name => [`a__${name}`, `b__${name}`]).toSorted()
const SHORT_LIST = ['search_tools', 'describe_tool', 'call_tool', ...FAVOURITES]

const definitionOf = (name: string, description: string) => ({
  name,
  description,
  inputSchema: { type: 'object', properties: { b: { type: 'string' }, a: { type: 'number' } } },
})

const listInTurn = (server: MatrixServer, names: readonly string[], purpose = 'Does it.'): void => {
  let turn = 0
  server.methods.set('tools/list', () => {
    const at = ++turn % names.length
    const tools = [...names.slice(at), ...names.slice(0, at)].map(name => definitionOf(name, purpose))
    return { tools, ttlMs: 0, cacheScope: 'private' }
  })
}

const closing: (() => Promise<unknown>)[] = []
let servers: Record<'a' | 'b' | 'large', MatrixServer>
beforeEach(async () => {
  const [a, b, large] = await Promise.all(
    (['2026-07-28', '2025-06-18', '2025-11-25'] as const).map(revision => serverOf(revision).start()),
  )
  if (!a || !b || !large) throw new Error('three servers')
  servers = { a, b, large }
  for (const server of Object.values(servers)) closing.push(server.close)
  listInTurn(a, SMALL)
  listInTurn(b, SMALL)
  listInTurn(large, SMALL, 'It is described at length. '.repeat(200))
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const urlOf = ({ config }: MatrixServer): string => ('url' in config ? String(config.url) : '')

interface ServerState {
  readonly name: string
  readonly state: string
}

interface Replica {
  readonly cluster?: MemoryCluster
  readonly keys?: ReturnType<typeof randomKeys>
}

const start = async ({ cluster = new MemoryCluster(), keys = randomKeys() }: Replica = {}) => {
  const budget = { tokens: 3000, favourites: ['b/*', 'a/*'] }
  const value = {
    mcpServers: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, { url: urlOf(server) }])),
    workspaces: { default: { servers: '*', budget } },
    limits: { shutdownMs: 200 },
  }
  const snapshot = await loadConfig({ value, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT, state: { store: cluster.join(), keys } })
  closing.push(gateway.close)
  await gateway.ready
  return gateway
}

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

/** The bytes of the tools that a client of a revision is sent. */
const toolsFor = async (url: string, revision: Revision = '2026-07-28'): Promise<Json> => {
  const request = isModern(revision)
    ? modern(1, 'tools/list')
    : { headers: (await openSession(url, revision)).headers, body: LIST }
  const { text } = await send(url, request)
  const message = /^data: ?(\{.*\})$/m.exec(text)?.[1] ?? text
  const tools = Json.parse(Buffer.from(message)).at('result', 'tools')
  if (!tools) throw new Error(`no list of tools: ${text}`)
  return tools
}
const namesIn = (tools: Json): unknown[] => [...tools.elements()].map(tool => tool.get('name')?.asString())

test('the same bytes each time, and after a restart', async () => {
  const first = await start()
  const bytes = (await toolsFor(first.url())).toString()
  expect(namesIn(await toolsFor(first.url()))).toEqual(SHORT_LIST)
  for (let i = 0; i < 3; i++) expect((await toolsFor(first.url())).toString()).toBe(bytes)
  await first.close()
  const second = await start()
  expect((await toolsFor(second.url())).toString()).toBe(bytes)
  expect(servers.a.of('tools/list').length).toBeGreaterThan(1) // each in another order
})

test('the same bytes at every replica', async () => {
  const shared = { cluster: new MemoryCluster(), keys: randomKeys() }
  const [one, other] = [await start(shared), await start(shared)]
  expect(namesIn(await toolsFor(one.url()))).toEqual(SHORT_LIST)
  expect((await toolsFor(other.url())).toString()).toBe((await toolsFor(one.url())).toString())
})

describe('for clients of every revision', () => {
  test('the same order, and the same bytes of what no revision changes', async () => {
    const gateway = await start()
    const favourites = async (revision: Revision): Promise<string[]> =>
      [...(await toolsFor(gateway.url(), revision)).elements()]
        .slice(3)
        .map(tool => tool.without('execution').toString()) // of 2025-11-25 only
    const expected = await favourites('2026-07-28')
    expect(expected).toHaveLength(FAVOURITES.length)
    for (const revision of REVISIONS) {
      const tools = await toolsFor(gateway.url(), revision)
      expect(namesIn(tools), revision).toEqual(SHORT_LIST)
      expect(await favourites(revision), revision).toEqual(expected)
      expect((await toolsFor(gateway.url(), revision)).toString(), revision).toBe(tools.toString())
    }
  })
})

test('the same bytes while another server is away, and when it is back with its tools in another order', async () => {
  const gateway = await start()
  const bytes = (await toolsFor(gateway.url())).toString()
  /** A call notices what the gateway would only find out with its next probe. */
  const stateOfB = async (): Promise<string | undefined> => {
    await send(gateway.url(), modern(2, 'tools/call', { name: 'b__mid', arguments: {} }))
    const ready = (await (await fetch(`${gateway.origin}/readyz`)).json()) as { servers: ServerState[] }
    return ready.servers.find(({ name }) => name === 'b')?.state
  }
  await servers.b.kill()
  await expect.poll(stateOfB, { timeout: 20_000 }).toBe('down')
  expect((await toolsFor(gateway.url())).toString()).toBe(bytes)
  const lists = servers.b.of('tools/list').length
  await servers.b.restart()
  await expect.poll(stateOfB, { timeout: 20_000 }).toBe('ready')
  await expect.poll(() => servers.b.of('tools/list').length).toBeGreaterThan(lists) // in another order
  for (let i = 0; i < 5; i++) expect((await toolsFor(gateway.url())).toString()).toBe(bytes)
})

test('other bytes once a definition has changed', async () => {
  const first = await start()
  const bytes = (await toolsFor(first.url())).toString()
  await first.close()
  listInTurn(servers.a, SMALL, 'Does it otherwise.')
  expect((await toolsFor((await start()).url())).toString()).not.toBe(bytes)
})
