import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkServers } from '../../../src/app/check.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type Overlay } from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { statelessServer } from '../../matrix/stateless-server.ts'

let server: MatrixServer
beforeEach(async () => {
  server = await statelessServer()
})
afterEach(() => server.close())

const look = (overlays: Record<string, Partial<Overlay>> = {}, on?: string, labels: readonly string[] = []) => {
  const bare = { hidden: false, fixed: {}, defaults: {} }
  const tools = new Map(Object.entries(overlays).map(([name, overlay]) => [name, { ...bare, ...overlay }]))
  const workspace = { name: 'default', servers: ['far'], ...defaultRules(2), overlays: new Map([['far', tools]]) }
  const { config } = server
  return checkServers(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: DEFAULT_LIMITS,
      cluster: { labels },
      servers: new Map([['far', { ...config, name: 'far', on }]]),
      workspaces: new Map([['default', workspace]]),
      warnings: [],
    },
    { log: SILENT, version: '1' },
  )
}

const tool = (name: string, properties: object = {}) => ({ name, inputSchema: { type: 'object', properties } })

test('what a server lists wrongly is told, and counted as the gateway would show it', async () => {
  const broken = tool('broken', { a: { type: 'object', 'x-mcp-header': 'A' } })
  server.methods.set('tools/list', () => ({ tools: [tool('x'), tool('x'), tool('y'), broken] }))
  const { servers, workspaces } = await look()
  expect(servers).toMatchObject([{ name: 'far', state: 'ready', tools: 2 }])
  expect(servers[0]?.flaws?.join()).toMatch(/tools: .*broken is hidden.*1 duplicate names/)
  expect(workspaces[0]?.tools).toEqual(['far__x', 'far__y'])
})

test('repeated cursors are detected at the first repetition', async () => {
  server.methods.set('tools/list', () => ({ tools: [tool('x')], nextCursor: 'again' }))
  const { servers } = await look()
  expect(servers).toMatchObject([{ state: 'degraded', tools: 1, reason: expect.stringContaining('repeat') }])
  expect(server.of('tools/list').length).toBe(2)
})

test('a tool that was given the name of another of its server is told of', async () => {
  server.methods.set('tools/list', () => ({ tools: [tool('x'), tool('y')] }))
  const { workspaces } = await look({ y: { name: 'x' } })
  expect(workspaces).toMatchObject([{ tools: ['far__x'], shadowed: [{ tool: 'far/y', by: 'far/x', as: 'far__x' }] }])
  expect((await look({ y: { name: 'x' }, x: { hidden: true } })).workspaces).toMatchObject([
    { tools: ['far__x'], shadowed: [] },
  ])
})

test('a server that runs on replicas with another label is not tried', async () => {
  const { servers } = await look({}, 'gpu', ['cpu'])
  expect(servers).toMatchObject([{ state: 'untried', reason: 'runs only on replicas with the label "gpu"' }])
  expect(server.arrivals).toEqual([])
  expect((await look({}, 'gpu', ['cpu', 'gpu'])).servers).toMatchObject([{ state: 'ready' }])
})
