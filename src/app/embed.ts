import type { z } from 'zod'
import { ensureDataDirectory } from '../config/data-dir.ts'
import { loadConfig } from '../config/load.ts'
import type { fileSchema } from '../config/schema.ts'
import type { WorkspaceStatus } from '../protocol/status.ts'
import type { DefinedServer } from '../servers/define/define.ts'
import { readVersion } from '../std/package.ts'
import { type Log, SILENT } from '../telemetry/log.ts'
import { startGateway } from './gateway.ts'

/** The configuration as the file has it; docs/configuration.md explains every key. */
export type GatewayConfig = z.input<typeof fileSchema>

/** How a program starts a gateway of its own. */
export interface GatewayOptions {
  /** The configuration, or the path of its file. Default: only `servers`; without those, as `dragoman serve`. */
  readonly config?: GatewayConfig | string
  /** Servers that run in this process, by name. The gateway closes them when it closes. */
  readonly servers?: Readonly<Record<string, DefinedServer>>
  /** Default: `listen.host` of the configuration, else 127.0.0.1. */
  readonly host?: string
  /** Default: `listen.port` of the configuration, else 8765. 0: any free port. */
  readonly port?: number
  /** The directory for tokens and the built-in memory; created if missing. Without it, neither is available. */
  readonly dataDir?: string
  /** Admits callers without a token on addresses other than loopback. */
  readonly insecure?: boolean
  /** Default: nothing is logged. A pino logger fits. */
  readonly log?: Log
}

/** A gateway that accepts connections. */
export interface EmbeddedGateway {
  /** The URL of the workspace "default". */
  readonly url: string
  /** Every workspace with its URL and the state of its servers. */
  status(): readonly WorkspaceStatus[]
  /** Lets calls in flight finish for at most `limits.shutdownMs`, then closes every connection. */
  close(): Promise<void>
}

/** Starts a gateway inside another program; rejects with a ConfigError that lists all errors of the configuration. */
export const embedGateway = async (options: GatewayOptions = {}): Promise<EmbeddedGateway> => {
  const { config, servers: embedded, host, port, dataDir, insecure, log = SILENT } = options
  const source = typeof config === 'string' ? { file: config } : { value: config }
  const snapshot = await loadConfig({ ...source, embedded, env: process.env, flags: { host, port } })
  for (const warning of snapshot.warnings) log.warn({}, warning)
  if (dataDir !== undefined) await ensureDataDirectory(dataDir)
  const { url, status, close } = await startGateway(snapshot, { log, data: dataDir, insecure, version: readVersion() })
  return { url: url(), status, close }
}
