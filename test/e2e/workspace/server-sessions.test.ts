import { expect, onTestFinished, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_TIMEOUT_MS,
  defaultRules,
  type ServerConfig,
} from '../../../src/config/snapshot.ts'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { modern, send } from '../../support/raw.ts'
import { start as startServer } from '../../support/servers/sdk-v1-server.ts'

const WATCHED = 'test://watched-resource'
const UPDATED = 'notifications/resources/updated'

/** Gateways that run one after the other on the same port and the same state. */
const createGateways = async ({ hasSecondServer = false } = {}) => {
  const servers = [await startServer(), ...(hasSecondServer ? [await startServer()] : [])]
  for (const server of servers) onTestFinished(server.close)
  const cluster = new MemoryCluster()
  cluster.join() // without another member, a planned stop ends the sessions
  const keys = randomKeys()
  const configs: ServerConfig[] = servers.map(({ url }, at) => ({
    name: `far${at}`,
    disabled: false,
    kind: 'remote',
    url,
    type: 'auto',
    headers: {},
    era: 'auto',
    timeoutMs: DEFAULT_TIMEOUT_MS,
  }))
  const names = configs.map(({ name }) => name)
  let port = 0
  const start = async () => {
    const store = cluster.join()
    const snapshot = {
      listen: { ...DEFAULT_LISTEN, port },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 100 },
      servers: new Map(configs.map(config => [config.name, config])),
      workspaces: new Map([['default', { name: 'default', servers: names, ...defaultRules(names.length) }]]),
      warnings: [],
    }
    const gateway = await startGateway(snapshot, { log: SILENT, state: { store, keys } })
    onTestFinished(gateway.close)
    port = gateway.port
    await gateway.ready
    return {
      ...gateway,
      kill: async (): Promise<void> => {
        cluster.kill(store.members.self)
        await gateway.close()
      },
      stop: async (): Promise<void> => {
        await gateway.close()
        await store.close()
      },
    }
  }
  /** The sessions that clients have at a server. Those of the gateway's own probes have ended. */
  const sessionsAt = (at = 0) => {
    const entries = servers[at]?.journal.entries ?? []
    const ended = entries.flatMap(entry => (entry.kind === 'ended' ? [entry.session] : []))
    return entries.flatMap(entry => (entry.kind === 'opened' && !ended.includes(entry.session) ? [entry.session] : []))
  }
  const storedSessions = () => [...cluster.records.keys()].filter(key => key.startsWith('server-session')).length
  return { start, sessionsAt, storedSessions }
}

test.each(['kill', 'stop'] as const)('a legacy client keeps its session at the server: %s', async how => {
  const { start, sessionsAt, storedSessions } = await createGateways()
  const first = await start()
  const client = await connectV1({ url: first.url() })
  onTestFinished(client.close)
  await client.watch(WATCHED)
  await client.call('change_watched_resource')
  await client.notices.next(UPDATED)
  await expect.poll(() => sessionsAt().length).toBe(1)
  const before = sessionsAt()
  await expect.poll(storedSessions).toBe(1)
  await first[how]()
  expect(sessionsAt()).toEqual(before)

  await start()
  expect((await client.call('echo', { message: 'hi' })).isError).toBe(false)
  await expect.poll(() => sessionsAt()).toEqual(before)
  await client.notices.next(UPDATED) // it may have changed meanwhile
  await expect.poll(() => client.requests.filter(({ method }) => method === 'GET').length).toBeGreaterThan(1)
  await client.call('change_watched_resource')
  await client.notices.next(UPDATED)
  await client.call('echo', { message: 'after' })
  expect(client.notices.pending(UPDATED)).toEqual([])
  await client.close()
  await expect.poll(() => sessionsAt()).toEqual([])
})

test('the sessions of all servers of a workspace go on', async () => {
  const { start, sessionsAt, storedSessions } = await createGateways({ hasSecondServer: true })
  const first = await start()
  const client = await connectV1({ url: first.url() })
  onTestFinished(client.close)
  await client.call('far0__echo', { message: '1' })
  await client.call('far1__echo', { message: '1' })
  const before = [sessionsAt(0), sessionsAt(1)]
  await expect.poll(storedSessions).toBe(2)
  await first.kill()
  await start()
  await client.call('far0__echo', { message: '2' })
  await client.call('far1__echo', { message: '2' })
  await expect.poll(() => [sessionsAt(0), sessionsAt(1)]).toEqual(before)
  expect(before.map(sessions => sessions.length)).toEqual([1, 1])
})

test.each(['kill', 'stop'] as const)('modern callers keep the session that they share: %s', async how => {
  const { start, sessionsAt, storedSessions } = await createGateways()
  const first = await start()
  const call = (url: string) => send(url, modern(1, 'tools/call', { name: 'echo', arguments: { message: 'hi' } }))
  expect((await call(first.url())).json.result).toBeDefined()
  await expect.poll(() => sessionsAt().length).toBe(1)
  const before = sessionsAt()
  await expect.poll(storedSessions).toBe(1)
  await first[how]()
  const second = await start()
  expect((await call(second.url())).json.result).toBeDefined()
  await expect.poll(() => sessionsAt()).toEqual(before)
})

test('no session is left at the server, and no record, when clients leave', async () => {
  const { start, sessionsAt, storedSessions } = await createGateways()
  const gateway = await start()
  const clients = await Promise.all([0, 1, 2].map(() => connectV1({ url: gateway.url() })))
  await Promise.all(clients.map(client => client.call('echo', { message: 'hi' })))
  await expect.poll(() => sessionsAt().length).toBe(3)
  await Promise.all(clients.map(client => client.close()))
  await expect.poll(() => sessionsAt().length).toBe(0)
  await expect.poll(storedSessions).toBe(0)
})
