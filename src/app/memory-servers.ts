import type { InvokeMemory, MemoryServerSettings } from '../admin/memory-access.ts'
import type { InboundAuth } from '../auth/inbound-auth.ts'
import { runsHere } from '../config/cluster.ts'
import type { ServerConfig, Snapshot } from '../config/snapshot.ts'
import { OperationError } from '../protocol/operation-error.ts'
import { isThreadedServer } from '../servers/thread/upstream.ts'
import type { Runtime } from './runtime.ts'

type MemoryServer = Extract<ServerConfig, { readonly builtin: 'memory' }>

const isMemory = (config: ServerConfig): config is MemoryServer =>
  config.kind === 'builtin' && config.builtin === 'memory'

/** The memory servers of the configuration, for the admin API. Their work is done on their threads. */
export const createMemoryServers = (
  runtime: Pick<Runtime, 'snapshot' | 'builtServer'>,
  { principalWithoutToken, tokens }: Pick<InboundAuth, 'principalWithoutToken' | 'tokens'>,
) => {
  const { builtServer } = runtime
  const current = (): Snapshot => runtime.snapshot
  const whyNot = (config: MemoryServer): string | undefined => {
    if (config.disabled) return 'is disabled in the configuration'
    if (!runsHere(config, current().cluster))
      return `runs on replicas with the label "${config.on}"; open the console of one of them`
    return isThreadedServer(builtServer(config.name)) ? undefined : 'has no data directory; start the gateway with one'
  }
  const settingsOf = (config: MemoryServer): MemoryServerSettings => ({
    name: config.name,
    unavailable: whyNot(config),
    tenantBy: config.tenant,
    group: config.group,
    storage: config.database === undefined ? 'SQLite' : 'PostgreSQL',
    extractionModel: config.extraction?.model,
    embeddingModel: config.embeddings?.model,
    workspaces: [...current().workspaces.values()]
      .filter(({ servers }) => servers.includes(config.name))
      .map(({ name }) => name),
  })
  const invoke = async (server: string, name: string, ...args: readonly unknown[]): Promise<unknown> => {
    const built = builtServer(server)
    if (isThreadedServer(built)) return built.invoke(name, args)
    throw new OperationError('missing', `There is no memory server "${server}" any more`)
  }
  return {
    principalWithoutToken,
    isTokenRequired: () => !tokens.isValid(undefined),
    memoryServers: () => [...current().servers.values()].filter(isMemory).map(settingsOf),
    invokeMemory: invoke as InvokeMemory, // the thread runs the operations of that type
  }
}
