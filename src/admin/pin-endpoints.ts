import type { ServerConfig } from '../config/snapshot.ts'
import type { PinnedTool, PinStatus, QuarantinedTool } from '../protocol/pins.ts'
import type { ApprovalResult, PinnedServer, Quarantine } from './api/pins.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

export interface PinEndpointsOptions {
  readonly servers: () => ReadonlyMap<string, ServerConfig> // of the configuration
  readonly isLasting: boolean // false: pins end with the gateway
  readonly pins: {
    statusOf(server: string): PinStatus | undefined
    /** Rejects if the store cannot be read. */
    quarantined(): Promise<readonly QuarantinedTool[]>
    /** Approves what is in quarantine, and returns the rest. */
    approve(tools: readonly PinnedTool[]): Promise<readonly PinnedTool[]>
  }
}

const MOST_TOOLS = 10_000
const TEXT = { type: 'string' }
const TOOL = {
  type: 'object',
  properties: { server: TEXT, name: TEXT, hash: TEXT },
  required: ['server', 'name', 'hash'],
}

/** The endpoints that show tools in quarantine, and approve them. */
export const createPinEndpoints = ({ pins, servers, isLasting }: PinEndpointsOptions): readonly AdminEndpoint[] => {
  const list = async (): Promise<Quarantine> => {
    const tools = await pins.quarantined().catch(unavailable)
    const pinned = [...servers().keys()].flatMap((name): PinnedServer[] => {
      const status = pins.statusOf(name)
      return status ? [{ name, ...status }] : []
    })
    return { servers: pinned, tools, isLasting }
  }

  const approve = async (call: AdminCall): Promise<ApprovalResult> => {
    const body = await call.json()
    const tools = (body.get('tools')?.elements() ?? []).map(tool => ({
      server: tool.get('server')?.asString() ?? '',
      name: tool.get('name')?.asString() ?? '',
      hash: tool.get('hash')?.asString() ?? '',
    }))
    if (tools.length > MOST_TOOLS) throw new AdminError(422, `At most ${MOST_TOOLS} tools can be approved at once`)
    const left = await pins.approve(tools).catch(unavailable)
    const [first] = left
    if (first)
      throw new AdminError(
        409,
        `${first.server}/${first.name} is not in quarantine with that definition: it has changed since it was shown, or was approved. Show the quarantine again`,
        { tools: left.map(({ server, name, hash }) => ({ server, name, hash })) },
      )
    return { approved: tools }
  }

  return [
    {
      method: 'GET',
      path: '/admin/quarantine',
      access: 'owner',
      summary: 'Tools of pinned servers that wait for an approval, with what has changed',
      run: list,
    },
    {
      method: 'POST',
      path: '/admin/quarantine/approve',
      access: 'owner',
      summary: 'Approves definitions of tools that are in quarantine; each is named with the hash that was shown',
      body: { type: 'object', properties: { tools: { type: 'array', items: TOOL } }, required: ['tools'] },
      maxBodyBytes: 2 * 1024 * 1024,
      run: approve,
    },
  ]
}

const unavailable = (error: unknown): never => {
  throw new AdminError(503, `The pins cannot be read: ${error instanceof Error ? error.message : String(error)}`)
}
