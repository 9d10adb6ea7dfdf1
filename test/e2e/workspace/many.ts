import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type Limits,
  type ServerConfig,
  type WorkspaceConfig,
} from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import type { ClientKind } from '../../matrix/cells.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import type { MatrixServer } from '../../matrix/server.ts'

interface Opening {
  open(url: string, capabilities: object): Promise<MatrixClient>
}

/** A gateway before several servers, all in the workspace `default`, and everything that has to be closed after. */
export interface Many {
  /** Starts at the first use, so that the servers can be prepared: the gateway reads their lists when it starts. */
  gateway(): Promise<Gateway>
  readonly servers: Readonly<Record<string, MatrixServer>>
  client(kind: Opening, capabilities?: object): Promise<MatrixClient>
  /** A client that connects with its first message, when the servers have been prepared. */
  lateClient(kind: ClientKind, capabilities?: object): MatrixClient
}

interface Options {
  readonly rules?: Partial<WorkspaceConfig>
  readonly configs?: readonly ServerConfig[] // servers besides those made by hand
  readonly data?: string // a data directory, with tokens in it
  readonly insecure?: boolean // nobody is known
  readonly isHasty?: boolean // nobody waits until every server has been tried
  readonly limits?: Partial<Limits>
}

/** Runs the body before servers made by hand, by name in the order of the workspace. */
export const amongMany = async (
  starts: Readonly<Record<string, () => Promise<MatrixServer>>>,
  { rules = {}, configs = [], data, insecure, isHasty = false, limits = {} }: Options,
  body: (many: Many) => Promise<void>,
): Promise<void> => {
  const made = await Promise.all(Object.entries(starts).map(async ([name, start]) => [name, await start()] as const))
  const all = [...made.map(([name, { config }]) => ({ ...config, name })), ...configs]
  const names = all.map(({ name }) => name)
  const start = async (): Promise<Gateway> => {
    const gateway = await startGateway(
      {
        listen: { ...DEFAULT_LISTEN, port: 0 },
        limits: { ...DEFAULT_LIMITS, shutdownMs: 200, ...limits },
        servers: new Map(all.map(config => [config.name, config])),
        workspaces: new Map([
          ['default', { name: 'default', servers: names, ...defaultRules(names.length), ...rules }],
        ]),
        policies: new Map(),
        warnings: [],
      },
      { log: SILENT, data, insecure },
    )
    if (!isHasty) await gateway.ready
    for (const [, { arrivals }] of made) arrivals.length = 0
    return gateway
  }
  let starting: Promise<Gateway> | undefined
  const gateway = (): Promise<Gateway> => (starting ??= start())
  const clients: MatrixClient[] = []
  const client = async ({ open }: Opening, capabilities: object = {}): Promise<MatrixClient> => {
    const opened = await open((await gateway()).url(), capabilities)
    clients.push(opened)
    return opened
  }
  const lateClient = (kind: ClientKind, capabilities?: object): MatrixClient => {
    let opening: Promise<MatrixClient> | undefined
    let open: MatrixClient | undefined
    const opened = async (): Promise<MatrixClient> => {
      opening ??= client(kind, capabilities)
      open = await opening
      return open
    }
    return {
      revision: kind.revision,
      get received() {
        return open?.received ?? []
      },
      get texts() {
        return open?.texts ?? []
      },
      call: async (...args) => (await opened()).call(...args),
      notify: async (...args) => (await opened()).notify(...args),
      heard: async (...args) => (await opened()).heard(...args),
      listen: async (...args) => (await opened()).listen(...args),
      close: async () => (await opening)?.close(),
    }
  }
  try {
    await body({ lateClient, gateway, servers: Object.fromEntries(made), client })
  } finally {
    for (const opened of clients) await opened.close()
    await (await starting)?.close()
    for (const [, server] of made) await server.close()
  }
}

/** The names of what a list holds. */
export const namesIn = (result: Record<string, unknown> | undefined, member: string): unknown[] =>
  ((result?.[member] ?? []) as { name?: string; uri?: string }[]).map(({ name, uri }) => uri ?? name)
