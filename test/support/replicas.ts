import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Gateway, startGateway } from '../../src/app/gateway.ts'
import {
  type Auth,
  type ClusterConfig,
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type Limits,
  type ServerConfig,
  type TasksConfig,
  type WorkspaceRules,
} from '../../src/config/snapshot.ts'
import type { Upstream } from '../../src/protocol/exchange.ts'
import type { Policy } from '../../src/protocol/policy.ts'
import { MemoryCluster } from '../../src/stores/state/memory-state.ts'
import type { OpenState } from '../../src/stores/state/open-state.ts'
import { randomKeys } from '../../src/stores/state/secret.ts'
import type { StateStore } from '../../src/stores/state/state-store.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'
import { freePort } from './free-port.ts'
import { type Relay, startRelay } from './relay.ts'

/** One gateway of a cluster in this process. */
export interface TestReplica {
  readonly gateway: Gateway
  readonly store: StateStore
  readonly url: string
  readonly relay: Relay // before its cluster port
  /** As `kill -9` does, for the other replicas: its lease has ended and its port refuses connections. */
  kill(): Promise<void>
}

interface ReplicaOptions {
  readonly size: number
  readonly limits?: Partial<Limits>
  readonly data?: string | undefined // with tokens
  readonly auth?: Auth
  readonly tls?: ClusterConfig['tls']
  readonly isDirect?: boolean // without relays: a closed port refuses connections, instead of breaking them off
  /** The server of each replica; the demo server when absent. */
  readonly server?: (at: number) => Upstream
  /** The configured server of each replica, instead. */
  readonly entry?: (at: number) => ServerConfig
  readonly openState?: () => Promise<OpenState> // of one replica; in memory when absent
  readonly others?: readonly ServerConfig[] // further servers of every workspace
  readonly labels?: (at: number) => readonly string[]
  readonly rules?: Partial<WorkspaceRules> // of every workspace
  readonly tasks?: TasksConfig
  readonly onReload?: (at: number) => void
  readonly log?: Log
}

const NOTHING: Policy = { allow: { tools: [] }, deny: {}, readOnly: false }
const DEMO: ServerConfig = { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' }

/** Gateways that share their state, and a balancer before them that gives each request to the next one. */
export const startReplicas = async (options: ReplicaOptions) => {
  const shared = new MemoryCluster()
  const keys = randomKeys()
  const replicas: TestReplica[] = []
  const start = async (): Promise<TestReplica> => {
    const port = await freePort()
    const relay = await startRelay(`http://127.0.0.1:${port}`)
    const origin = new URL(relay.url).origin
    const relayed = options.tls ? origin.replace('http:', 'https:') : origin
    const address = options.isDirect ? undefined : relayed
    const labels = options.labels?.(replicas.length) ?? []
    const cluster: ClusterConfig = { listen: { host: '127.0.0.1', port }, address, labels, tls: options.tls }
    const upstream = options.server?.(replicas.length)
    const embedded = upstream && ({ name: 'demo', disabled: false, kind: 'embedded', upstream } as const)
    const server: ServerConfig = embedded ?? options.entry?.(replicas.length) ?? DEMO
    const state = (await options.openState?.()) ?? { store: shared.join(), keys }
    const { store } = state
    const at = replicas.length
    const gateway = await startGateway(snapshotOf(server, cluster, options), {
      log: options.log ?? SILENT,
      data: options.data,
      state,
      onReload: () => options.onReload?.(at),
    })
    const kill = async (): Promise<void> => {
      await relay.stop()
      shared.kill(store.members.self)
    }
    const replica = { gateway, store, url: gateway.url(), relay, kill }
    replicas.push(replica)
    return replica
  }
  for (let i = 0; i < options.size; i++) await start()
  const balancer = await startBalancer(replicas)
  const close = async (): Promise<void> => {
    await balancer.close()
    await Promise.all(
      replicas.map(async ({ gateway, store, relay }) => {
        await gateway.close()
        await store.close()
        await relay.close()
      }),
    )
  }
  return { shared, keys, replicas, start, url: `${balancer.origin}/mcp`, balancer, close }
}

const snapshotOf = (
  server: ServerConfig,
  cluster: ClusterConfig,
  { limits, rules, auth, tasks, others = [] }: ReplicaOptions,
) => ({
  listen: { ...DEFAULT_LISTEN, port: 0 },
  auth,
  limits: { ...DEFAULT_LIMITS, shutdownMs: 300, ...limits },
  cluster,
  tasks,
  servers: new Map([server, ...others].map(each => [each.name, each])),
  workspaces: new Map(
    ['default', 'other', 'servers'].map(name => {
      const servers = [server, ...others].map(each => each.name)
      return [name, { name, servers, ...defaultRules(servers.length), ...rules }]
    }),
  ),
  policies: new Map([['nothing', NOTHING]]),
  warnings: [],
})

/** A reverse proxy without affinity: each request goes to the next replica, streams are passed on as they come. */
const startBalancer = async (replicas: readonly TestReplica[]) => {
  const away = new Set<TestReplica>()
  let next = 0
  const choose = (): TestReplica => {
    const live = replicas.filter(replica => !away.has(replica))
    return live[next++ % live.length] as TestReplica
  }
  const server = createServer((near, answer) => {
    const far = request(`${choose().gateway.origin}${near.url}`, { method: near.method, headers: near.headers })
    far.on('response', response => {
      answer.writeHead(response.statusCode ?? 0, response.headers).flushHeaders()
      response.pipe(answer)
      response.on('error', () => answer.destroy())
    })
    far.on('error', () => answer.destroy())
    answer.on('close', () => far.destroy())
    near.pipe(far)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** No longer sends requests to a replica. */
    leaveOut: (replica: TestReplica): void => void away.add(replica),
    close: (): Promise<void> =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
