import type { MemoryOperations } from '../protocol/memory-operations.ts'
import { OperationError, type OperationRefusal } from '../protocol/operation-error.ts'
import type { MemoryServerInfo } from './api/memory.ts'
import { type AdminCall, AdminError } from './endpoints.ts'
import { type TenantRules, tenantLabel, visibleTenants } from './memory-tenants.ts'

/** A memory server of the configuration; its memories depend on the caller. */
export type MemoryServerSettings = Omit<MemoryServerInfo, 'tenants' | 'tenant'>

/** Runs an operation on the thread of a memory server. Rejects with an OperationError. */
export type InvokeMemory = <Name extends keyof MemoryOperations>(
  server: string,
  name: Name,
  ...args: Parameters<MemoryOperations[Name]>
) => Promise<ResultOf<Name>>

/** What an operation resolves to. */
type ResultOf<Name extends keyof MemoryOperations> = Awaited<ReturnType<MemoryOperations[Name]>>

export interface MemoryEndpointsOptions {
  readonly memoryServers: () => readonly MemoryServerSettings[]
  readonly invokeMemory: InvokeMemory
  readonly isTokenRequired: () => boolean
  readonly principalWithoutToken: string | undefined // undefined: such callers are anonymous
}

/** An operation on one memory: its first argument, the tenant, is that of the call. */
type OfTenant<Name extends keyof MemoryOperations> =
  Parameters<MemoryOperations[Name]> extends [string, ...infer Rest] ? Rest : never

const STATUSES: Readonly<Record<OperationRefusal, number>> = { invalid: 400, missing: 404, busy: 503, failed: 500 }

/** Finds the memory that a call is about, and checks that the caller may see it. */
export const createMemoryAccess = (options: MemoryEndpointsOptions) => {
  const { memoryServers, invokeMemory, isTokenRequired, principalWithoutToken } = options

  const rulesOf = ({ tenantBy, workspaces }: MemoryServerSettings): TenantRules => ({
    tenantBy,
    workspaces,
    withoutToken: principalWithoutToken,
    isTokenRequired: isTokenRequired(),
  })
  const tenantsOf = async (server: MemoryServerSettings, call: AdminCall): Promise<MemoryServerInfo> => {
    if (server.unavailable !== undefined) return { ...server, tenants: [] }
    const stored = await refusing(() => invokeMemory(server.name, 'tenants'))
    const visible = visibleTenants(call, rulesOf(server), stored)
    const tenants = visible.map(id => ({ id, label: tenantLabel(id), isEmpty: !stored.includes(id) }))
    return { ...server, tenants, tenant: tenants[0]?.id }
  }
  const serverOf = ({ query }: AdminCall): MemoryServerSettings => {
    const servers = memoryServers()
    const name = query.get('server')
    const server = name === null ? servers[0] : servers.find(each => each.name === name)
    if (!server) throw new AdminError(404, noServer(name, servers))
    if (server.unavailable === undefined) return server
    throw new AdminError(503, `The memory server "${server.name}" ${server.unavailable}`)
  }
  const tenantIn = async (call: AdminCall, server: MemoryServerSettings): Promise<string> => {
    const wanted = call.query.get('tenant')
    const known = visibleTenants(call, rulesOf(server), [])
    const [first] = known
    if (wanted === null && first !== undefined) return first
    if (wanted !== null && known.includes(wanted)) return wanted
    const { tenants } = await tenantsOf(server, call)
    if (wanted !== null && tenants.some(({ id }) => id === wanted)) return wanted
    const names = tenants.map(({ id }) => id).join(', ')
    throw new AdminError(404, `There is no memory "${wanted}" that you may see; there are: ${names || 'none'}`)
  }

  return {
    list: (call: AdminCall): Promise<readonly MemoryServerInfo[]> =>
      Promise.all(memoryServers().map(server => tenantsOf(server, call))),
    /** Runs an operation on the memory that `server` and `tenant` of the query name. */
    run: async <Name extends keyof MemoryOperations>(
      call: AdminCall,
      name: Name,
      ...args: OfTenant<Name>
    ): Promise<ResultOf<Name>> => {
      const server = serverOf(call)
      const tenant = await tenantIn(call, server)
      const all = [tenant, ...args] as unknown as Parameters<MemoryOperations[Name]>
      return refusing(() => invokeMemory(server.name, name, ...all))
    },
  }
}

export type MemoryAccess = ReturnType<typeof createMemoryAccess>

const noServer = (name: string | null, servers: readonly MemoryServerSettings[]): string =>
  servers.length === 0
    ? 'No memory server is configured; add {"memory": {"builtin": "memory"}} to "mcpServers"'
    : `There is no memory server "${name}"; there are: ${servers.map(each => each.name).join(', ')}`

const refusing = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw error instanceof OperationError ? new AdminError(STATUSES[error.refusal], error.message) : error
  }
}

/** Parameters of the query that name a memory. */
export const MEMORY_PARAMETERS = {
  server: { type: 'string', description: 'a memory server; default: the first one' },
  tenant: { type: 'string', description: 'whose memory; default: that of the caller' },
} as const

/** Parameters that choose a part of it. */
export const SCOPE_PARAMETERS = {
  ...MEMORY_PARAMETERS,
  group: { type: 'string', description: 'default: all groups' },
  asOf: { type: 'string', description: 'ISO 8601: what was true then' },
} as const

export const scopeOf = ({ query }: AdminCall) => ({
  group: query.get('group') || undefined,
  asOf: query.get('asOf') || undefined,
})

/** A whole number of the query within bounds. */
export const limitIn = ({ query }: AdminCall, fallback: number, most: number): number => {
  const text = query.get('limit')
  if (text === null) return fallback
  if (/^\d{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text)
  throw new AdminError(400, `limit: expected a whole number from 1 to ${most}`)
}
