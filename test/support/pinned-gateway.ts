import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startGateway } from '../../src/app/gateway.ts'
import { loadConfig } from '../../src/config/load.ts'
import { MemoryCluster } from '../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../src/stores/state/secret.ts'
import type { StateStore } from '../../src/stores/state/state-store.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'

const SERVER = fileURLToPath(new URL('./servers/file-tools.mjs', import.meta.url))

/** A tool of a server whose tools are in a file. */
export const toolOf = (
  name: string,
  description = `Does ${name}.`,
  properties: object = { text: { type: 'string' } },
) => ({
  name,
  description,
  inputSchema: { type: 'object', properties },
})

interface ToolFile {
  readonly tools: readonly object[]
  readonly sampling?: readonly object[] // for clients with that capability
  readonly pageSize?: number
  readonly silent?: boolean // changes are not announced
}

interface PinnedGatewayOptions {
  readonly config?: ((entry: object) => object) | undefined // the configuration with that entry; by default one workspace of one server
  readonly store?: StateStore
  readonly log?: Log
  readonly data?: string
}

/** A folder with the tools of a server, and gateways in this process that pin them. */
export const createPinnedTools = async (first: ToolFile) => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-pins-'))
  const file = join(folder, 'tools.json')
  const setTools = (next: ToolFile): Promise<void> => writeFile(file, JSON.stringify(next))
  await setTools(first)
  const keys = randomKeys()
  const stores = new MemoryCluster()
  const entry = { command: process.execPath, args: [SERVER, file], pin: true }

  const start = async ({ config, store = stores.join(), log = SILENT, data }: PinnedGatewayOptions = {}) => {
    const value = config?.(entry) ?? { mcpServers: { files: entry } }
    const snapshot = await loadConfig({ value, env: {}, flags: { port: 0 } })
    const limits = { ...snapshot.limits, shutdownMs: 200 }
    const gateway = await startGateway({ ...snapshot, limits }, { log, data, state: { store, keys } })
    await gateway.ready
    const admin = async (path: string, body?: object) => {
      const response = await fetch(gateway.origin + path, {
        method: body ? 'POST' : 'GET',
        headers: { authorization: `Bearer ${gateway.localSecret}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    return { gateway, url: gateway.url(), admin, store }
  }
  return { folder, setTools, start, stores, close: () => rm(folder, { recursive: true, force: true }) }
}
