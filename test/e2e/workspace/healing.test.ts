import { afterEach, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules } from '../../../src/config/snapshot.ts'
import { MODERN } from '../../../src/protocol/revisions.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { channelClient } from '../../matrix/channel-client.ts'
import type { MatrixClient, Wire } from '../../matrix/client.ts'
import { pipeServer } from '../../matrix/pipe-server.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { sessionServer } from '../../matrix/session-server.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { statelessServer } from '../../matrix/stateless-server.ts'
import { sseServer } from '../../support/sse-server.ts'

const URI = 'test://a'
const UPDATED = 'notifications/resources/updated'
const TOOLS_CHANGED = 'notifications/tools/list_changed'
const PROMPTS_CHANGED = 'notifications/prompts/list_changed'
const ANSWER = { content: [{ type: 'text', text: 'done' }] }
const WORKSPACES = { default: ['server'], many: ['server', 'other'] } as const

type Workspace = keyof typeof WORKSPACES
type SessionServer = Awaited<ReturnType<typeof sessionServer>>

const cleanup: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

/** A gateway before the server: alone in the workspace `default`, with another one in `many`. */
const startBefore = async (server: MatrixServer) => {
  const other = await statelessServer()
  const gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
      servers: new Map([
        ['server', server.config],
        ['other', { ...other.config, name: 'other' }],
      ]),
      workspaces: new Map(
        Object.entries(WORKSPACES).map(([name, servers]) => [
          name,
          { name, servers: [...servers], ...defaultRules(servers.length) },
        ]),
      ),
      warnings: [],
    },
    { log: SILENT },
  )
  await gateway.ready
  cleanup.push(server.close, other.close, () => gateway.close())
  return gateway
}

/** One client of each dialect in each workspace, all of which listen to every list and to these resources. */
const listenAll = async (
  gateway: Awaited<ReturnType<typeof startBefore>>,
  uris: readonly string[],
): Promise<[string, MatrixClient][]> => {
  const kinds: Record<string, (workspace: Workspace) => Promise<MatrixClient>> = {
    modern: workspace => statelessClient(gateway.url(workspace), {}),
    session: workspace => sessionClient(gateway.url(workspace), '2025-11-25', {}),
    channel: workspace => channelClient(gateway.url(), '2024-11-05', {}, workspace),
  }
  const opened: [string, MatrixClient][] = []
  for (const workspace of Object.keys(WORKSPACES) as Workspace[])
    for (const [kind, open] of Object.entries(kinds)) {
      const client = await open(workspace)
      cleanup.push(client.close)
      await client.call('tools/list')
      await client.call('tools/call', { name: 'server__old', arguments: {} }) // a list alone starts no process
      await client.listen(uris)
      opened.push([`${kind} in ${workspace}`, client])
    }
  return opened
}

/** The clients that have received such a message. */
const having = (clients: readonly [string, MatrixClient][], holds: (message: Wire) => boolean): string[] =>
  clients.flatMap(([name, { received }]) => (received.some(holds) ? name : []))

const restarted = async (server: MatrixServer): Promise<void> => {
  await server.kill()
  await server.restart()
}

const CASES: readonly [string, () => Promise<MatrixServer>, (server: MatrixServer) => Promise<void> | void][] = [
  ['2026-07-28 over HTTP that was restarted', statelessServer, restarted],
  ['2026-07-28 over stdio whose process was killed', () => pipeServer(MODERN), restarted],
  ['2025-11-25 over Streamable HTTP that was restarted', () => sessionServer('2025-11-25'), restarted],
  [
    '2025-11-25 over Streamable HTTP whose GET streams broke',
    () => sessionServer('2025-11-25'),
    server => (server as SessionServer).cut(),
  ],
  [
    '2025-11-25 over Streamable HTTP that forgot its sessions',
    () => sessionServer('2025-11-25'),
    server => {
      ;(server as SessionServer).forget()
      ;(server as SessionServer).cut()
    },
  ],
  ['2024-11-05 over HTTP+SSE that was restarted', sseServer, restarted],
  ['2025-06-18 over stdio whose process was killed', () => pipeServer('2025-06-18'), restarted],
]

describe.each(CASES)('a server of %s', (_name, start, interrupt) => {
  test('has what may have changed announced to every listener, and its later changes too', async () => {
    const server = await start()
    server.tools.set('old', () => ANSWER)
    const clients = await listenAll(await startBefore(server), [URI])
    const all = clients.map(([name]) => name)
    const before = new Map(clients.map(([, client]) => [client, client.received.length]))
    const since = (holds: (message: Wire) => boolean): string[] =>
      clients.flatMap(([name, client]) => (client.received.slice(before.get(client)).some(holds) ? name : []))

    server.tools.set('new', () => ANSWER)
    await interrupt(server)

    await expect.poll(() => since(({ method }) => method === TOOLS_CHANGED), { timeout: 8000 }).toEqual(all)
    await expect
      .poll(() => since(({ method, params }) => method === UPDATED && params?.uri === URI), { timeout: 4000 })
      .toEqual(all)
    for (const [name, client] of clients) {
      const { result } = await client.call('tools/list')
      expect([name, JSON.stringify(result).includes('new')]).toEqual([name, true])
    }
    server.methods.set('prompts/list', () => ({ prompts: [{ name: 'q' }] }))
    server.say(UPDATED, { uri: URI, mark: 'live' })
    server.say(PROMPTS_CHANGED)
    await expect.poll(() => having(clients, ({ params }) => params?.mark === 'live')).toEqual(all)
    await expect.poll(() => since(({ method }) => method === PROMPTS_CHANGED)).toEqual(all)
    const ended = clients.filter(([, { received }]) => received.some(({ result }) => isListenEnd(result)))
    expect(ended).toEqual([])
  })
})

const LISTS_ONLY: readonly [string, () => Promise<MatrixServer>][] = [
  ['2025-11-25 over Streamable HTTP', () => sessionServer('2025-11-25')],
  [
    '2025-11-25 over Streamable HTTP that answers 400 for a lost session',
    () => sessionServer('2025-11-25', 'call', 400),
  ],
  ['2024-11-05 over HTTP+SSE', sseServer],
  ['2025-06-18 over stdio', () => pipeServer('2025-06-18')],
]

test.each(LISTS_ONLY)(
  'a restart of a server of %s reaches clients that are subscribed to no resource',
  async (_name, start) => {
    const server = await start()
    server.tools.set('old', () => ANSWER)
    const clients = await listenAll(await startBefore(server), [])
    const all = clients.map(([name]) => name)
    server.methods.set('prompts/list', () => ({ prompts: [{ name: 'q' }] }))
    const hearPrompts = (): string[] => {
      server.say(PROMPTS_CHANGED)
      return having(clients, ({ method }) => method === PROMPTS_CHANGED)
    }
    await expect.poll(hearPrompts, { timeout: 4000 }).toEqual(all)
    server.tools.set('new', () => ANSWER)
    await restarted(server)
    await expect.poll(() => having(clients, ({ method }) => method === TOOLS_CHANGED), { timeout: 8000 }).toEqual(all)
  },
)

test('a client that listens while the only server is down gets its changes once the server is back', async () => {
  const server = await statelessServer()
  const gateway = await startBefore(server)
  await server.kill()
  const client = await statelessClient(gateway.url(), {})
  cleanup.push(client.close)
  await client.listen([URI])
  await server.restart()
  expect((await client.heard(UPDATED)).params).toMatchObject({ uri: URI })
  await client.heard(TOOLS_CHANGED)
  server.say(UPDATED, { uri: URI, mark: 'live' })
  expect((await client.heard(UPDATED)).params).toMatchObject({ mark: 'live' })
})

test.each<[string, () => Promise<MatrixServer>]>([
  ['2026-07-28 over HTTP', statelessServer],
  ['2026-07-28 over stdio', () => pipeServer(MODERN)],
  ['2025-11-25 over Streamable HTTP', () => sessionServer('2025-11-25')],
  ['2024-11-05 over HTTP+SSE', sseServer],
  ['2025-06-18 over stdio', () => pipeServer('2025-06-18')],
])('the update of a part reaches the subscribers of the whole (a server of %s)', async (_name, start) => {
  const server = await start()
  server.tools.set('old', () => ANSWER)
  const [folder, part] = ['test://dir/', 'test://dir/part']
  server.methods.set('resources/list', () => ({ resources: [{ uri: folder, name: 'dir' }] }))
  const clients = await listenAll(await startBefore(server), [folder])
  const all = clients.map(([name]) => name)
  server.say(UPDATED, { uri: part })
  await expect.poll(() => having(clients, ({ params }) => params?.uri === part)).toEqual(all)
})

test('a server that ends its streams at once is not asked again and again', async () => {
  const server = await statelessServer()
  const gateway = await startBefore(server)
  server.endListens()
  const clients = await Promise.all(['default', 'many'].map(workspace => statelessClient(gateway.url(workspace), {})))
  for (const client of clients) {
    cleanup.push(client.close)
    await client.listen()
  }
  await server.arrived('subscriptions/listen', 3)
  const count = server.of('subscriptions/listen').length
  await new Promise(resolve => setTimeout(resolve, 2500))
  expect(server.of('subscriptions/listen').length - count).toBeLessThanOrEqual(4)
  expect(clients.flatMap(({ received }) => received.filter(({ id }) => id !== undefined))).toEqual([])
})

test('listeners of one user share one request to a modern server, in every workspace', async () => {
  const server = await statelessServer()
  const gateway = await startBefore(server)
  const clients = await Promise.all(
    Array.from({ length: 50 }, (_, at) => statelessClient(gateway.url(at % 2 === 0 ? 'default' : 'many'), {})),
  )
  for (const client of clients) cleanup.push(client.close)
  await Promise.all(clients.map(client => client.listen([URI])))
  const open = () => server.of('subscriptions/listen').filter(({ isGone }) => !isGone)
  await expect.poll(open).toHaveLength(1)
  await restarted(server)
  await Promise.all(clients.map(client => client.heard(UPDATED)))
  await expect.poll(open).toHaveLength(1)
})

test('the error of a server that rejects a subscription reaches the client', async () => {
  const server = await statelessServer()
  server.refuseListens({ code: -32602, message: 'unknown flag' })
  const gateway = await startBefore(server)
  const client = await statelessClient(gateway.url(), {})
  const { error } = await client.call('subscriptions/listen', { notifications: { toolsListChanged: true } })
  expect(error).toMatchObject({ code: -32602, message: 'unknown flag' })
})

/** The result of `subscriptions/listen` has nothing but its type and `_meta`. */
const isListenEnd = (result: Record<string, unknown> | undefined): boolean =>
  result?.resultType === 'complete' && Object.keys(result).every(name => name === 'resultType' || name === '_meta')
