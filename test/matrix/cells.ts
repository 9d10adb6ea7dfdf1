import { afterAll, beforeAll, describe, test } from 'vitest'
import { type Gateway, startGateway } from '../../src/app/gateway.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type Limits,
  type ServerConfig,
  type WorkspaceRules,
} from '../../src/config/snapshot.ts'
import { isModern, MODERN, REVISIONS, type Revision } from '../../src/protocol/revisions.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { sseServer } from '../support/sse-server.ts'
import { channelClient } from './channel-client.ts'
import type { MatrixClient } from './client.ts'
import { pipeClient } from './pipe-client.ts'
import { pipeServer } from './pipe-server.ts'
import type { MatrixServer } from './server.ts'
import { sessionClient } from './session-client.ts'
import { sessionServer } from './session-server.ts'
import { statelessClient } from './stateless-client.ts'
import { statelessServer } from './stateless-server.ts'

export interface ClientKind {
  readonly name: string
  readonly revision: Revision
  open(url: string, capabilities: object): Promise<MatrixClient>
}

interface ServerKind {
  readonly name: string
  readonly revision: Revision
  start(): Promise<MatrixServer>
}

const LEGACY = REVISIONS.filter(revision => !isModern(revision))

export const CLIENTS: readonly ClientKind[] = [
  { name: `${MODERN} stateless`, revision: MODERN, open: (url, capabilities) => statelessClient(url, capabilities) },
  ...LEGACY.map(revision => ({
    name: `${revision} streamable`,
    revision,
    open: (url: string, capabilities: object) => sessionClient(url, revision, capabilities),
  })),
  ...(['2024-11-05', '2025-06-18'] as const).map(revision => ({
    name: `${revision} http-sse`,
    revision,
    open: (url: string, capabilities: object) => channelClient(url, revision, capabilities),
  })),
  ...(['2025-11-25', MODERN] as const).map(revision => ({
    name: `${revision} stdio`,
    revision,
    open: (url: string, capabilities: object) => pipeClient(url, revision, capabilities),
  })),
]

const MODERN_HTTP: ServerKind = { name: `${MODERN} stateless`, revision: MODERN, start: statelessServer }
const streamable = (revision: Revision): ServerKind => ({
  name: `${revision} streamable`,
  revision,
  start: () => sessionServer(revision),
})
const httpSse = (revision: Revision): ServerKind => ({
  name: `${revision} http-sse`,
  revision,
  start: () => sseServer(revision),
})
const stdio = (revision: Revision): ServerKind => ({
  name: `${revision} stdio`,
  revision,
  start: () => pipeServer(revision),
})

/** Every revision over Streamable HTTP, and some over each other transport: times the clients, these are the cells. */
export const SERVERS: readonly ServerKind[] = [
  MODERN_HTTP,
  ...LEGACY.map(streamable),
  ...(['2024-11-05', '2025-11-25'] as const).map(httpSse),
  ...(['2025-06-18', MODERN] as const).map(stdio),
]

/** Every revision over every transport that it can have. */
export const ALL_SERVERS: readonly ServerKind[] = [
  MODERN_HTTP,
  ...LEGACY.map(streamable),
  ...LEGACY.map(httpSse),
  ...REVISIONS.map(stdio),
]

/** Both ends of a conversation through a gateway. */
export interface Cell {
  readonly client: MatrixClient
  readonly server: MatrixServer
  readonly url: string
  /** Another client of the same kind. */
  another(capabilities?: object): Promise<MatrixClient>
}

interface CellOptions {
  readonly capabilities?: object
  readonly limits?: Partial<Limits>
  readonly rules?: Partial<WorkspaceRules>
  readonly prepare?: (server: MatrixServer) => void
}

/** A gateway before one server, which has been tried once. */
export const gatewayBefore = async (
  config: ServerConfig,
  limits: Partial<Limits> = {},
  rules: Partial<WorkspaceRules> = {},
): Promise<Gateway> => {
  const gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200, ...limits },
      servers: new Map([['server', config]]),
      workspaces: new Map([['default', { name: 'default', servers: ['server'], ...defaultRules(1), ...rules }]]),
      warnings: [],
    },
    { log: SILENT },
  )
  await gateway.ready
  return gateway
}

/** A server and the gateway before it, for one client after another. */
interface Station {
  /** Runs the body with clients of that kind, before a server as it was prepared; closes the clients. */
  visit(kind: ClientKind, capabilities: object, body: (cell: Cell) => Promise<void>): Promise<void>
  close(): Promise<void>
}

const startStation = async ({ start }: ServerKind, { limits, rules, prepare }: CellOptions): Promise<Station> => {
  const server = await start()
  prepare?.(server)
  const prepared = { tools: [...server.tools], methods: [...server.methods] }
  const gateway = await gatewayBefore(server.config, limits, rules)
  const reset = (): void => {
    server.tools.clear()
    server.methods.clear()
    for (const [name, tool] of prepared.tools) server.tools.set(name, tool)
    for (const [name, answer] of prepared.methods) server.methods.set(name, answer)
    server.arrivals.length = 0
  }
  return {
    visit: async ({ open }, capabilities, body) => {
      reset()
      const clients: MatrixClient[] = []
      const another = async (declared: object = capabilities): Promise<MatrixClient> => {
        const client = await open(gateway.url(), declared)
        clients.push(client)
        return client
      }
      try {
        await body({ client: await another(), server, url: gateway.url(), another })
      } finally {
        for (const client of clients) await client.close()
      }
    },
    close: async () => {
      await gateway.close()
      await server.close()
    },
  }
}

type Body = (cell: Cell) => Promise<void>

/** Starts a server and a gateway before it, runs the body with a client of each kind in turn, ends everything. */
export const inCells = async (
  clients: readonly ClientKind[],
  server: ServerKind,
  options: CellOptions,
  body: Body,
): Promise<void> => {
  const station = await startStation(server, options)
  try {
    for (const client of clients) await station.visit(client, options.capabilities ?? {}, body)
  } finally {
    await station.close()
  }
}

/** Starts a server and a gateway before it, connects a client, runs the body, ends everything. */
export const inCell = (client: ClientKind, server: ServerKind, options: CellOptions, body: Body): Promise<void> =>
  inCells([client], server, options, body)

/** Runs a body in every cell, or in those a filter lets through; the clients of one server share its gateway. */
export const everyCell = (
  name: string,
  body: Body,
  {
    only = () => true,
    ...options
  }: CellOptions & { readonly only?: (client: Revision, server: Revision) => boolean } = {},
): void => {
  describe(name, () => {
    for (const server of SERVERS) {
      const clients = CLIENTS.filter(({ revision }) => only(revision, server.revision))
      if (clients.length === 0) continue
      describe(`${server.name} server`, () => {
        let station: Station
        beforeAll(async () => {
          station = await startStation(server, options)
        })
        afterAll(() => station?.close())
        test.each(clients)('$name client', client => station.visit(client, options.capabilities ?? {}, body))
      })
    }
  })
}

/** The kind of a revision and, if it matters, of a dialect; the first there is. */
export const clientOf = (revision: Revision, dialect = ''): ClientKind =>
  CLIENTS.find(kind => kind.revision === revision && kind.name.includes(dialect)) as ClientKind
export const serverOf = (revision: Revision, dialect = ''): ServerKind =>
  SERVERS.find(kind => kind.revision === revision && kind.name.includes(dialect)) as ServerKind
