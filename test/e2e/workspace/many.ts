import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type ServerConfig,
  type WorkspaceConfig,
} from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import type { MatrixServer } from '../../matrix/server.ts'

interface Opening {
  open(url: string, capabilities: object): Promise<MatrixClient>
}

/** A gateway before several servers, all in the workspace `default`, and everything that has to be closed after. */
export interface Many {
  readonly gateway: Gateway
  readonly servers: Readonly<Record<string, MatrixServer>>
  client(kind: Opening, capabilities?: object): Promise<MatrixClient>
}

interface Options {
  readonly rules?: Partial<WorkspaceConfig>
  readonly configs?: readonly ServerConfig[] // servers besides those made by hand
  readonly data?: string // a data directory, with tokens in it
  readonly insecure?: boolean // nobody is known
  readonly isHasty?: boolean // nobody waits until every server has been tried
}

/** Runs the body before servers made by hand, by name in the order of the workspace. */
export const amongMany = async (
  starts: Readonly<Record<string, () => Promise<MatrixServer>>>,
  { rules = {}, configs = [], data, insecure, isHasty = false }: Options,
  body: (many: Many) => Promise<void>,
): Promise<void> => {
  const made = await Promise.all(Object.entries(starts).map(async ([name, start]) => [name, await start()] as const))
  const all = [...made.map(([name, { config }]) => ({ ...config, name })), ...configs]
  const names = all.map(({ name }) => name)
  const gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
      servers: new Map(all.map(config => [config.name, config])),
      workspaces: new Map([['default', { name: 'default', servers: names, ...defaultRules(names.length), ...rules }]]),
      policies: new Map(),
      warnings: [],
    },
    { log: SILENT, data, insecure },
  )
  if (!isHasty) await gateway.ready
  for (const [, { arrivals }] of made) arrivals.length = 0
  const clients: MatrixClient[] = []
  const client = async ({ open }: Opening, capabilities: object = {}): Promise<MatrixClient> => {
    const opened = await open(gateway.url(), capabilities)
    clients.push(opened)
    return opened
  }
  try {
    await body({ gateway, servers: Object.fromEntries(made), client })
  } finally {
    for (const opened of clients) await opened.close()
    await gateway.close()
    for (const [, server] of made) await server.close()
  }
}

/** The names of what a list holds. */
export const namesIn = (result: Record<string, unknown> | undefined, member: string): unknown[] =>
  ((result?.[member] ?? []) as { name?: string; uri?: string }[]).map(({ name, uri }) => uri ?? name)
