import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'

/** A gateway started from a file in a folder of its own. */
export interface Configured {
  readonly origin: string
  readonly gateway: Gateway
  readonly folder: string
  close(): Promise<void>
}

/** With `data`, a folder of that name beside the file is the data directory. */
export const startConfigured = async (config: object, data?: string): Promise<Configured> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-doors-'))
  const file = join(folder, 'mcp.json')
  await writeFile(file, JSON.stringify({ limits: { shutdownMs: 200 }, ...config }))
  const snapshot = await loadConfig({ file, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, {
    log: SILENT,
    version: '1.2.3',
    data: data && join(folder, data),
  })
  return {
    origin: gateway.origin,
    gateway,
    folder,
    close: async () => {
      await gateway.close()
      await rm(folder, { recursive: true })
    },
  }
}
