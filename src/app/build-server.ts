import { join } from 'node:path'
import { runsHere } from '../config/cluster.ts'
import type { BuiltinServer, ClusterConfig, ServerConfig, Snapshot } from '../config/snapshot.ts'
import { tapUpstream } from '../observe/recorder/tap-upstream.ts'
import { RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Upstream } from '../protocol/exchange.ts'
import type { MemoryOptions } from '../servers/memory/start.ts'
import { startInThread } from '../servers/thread/upstream.ts'
import { moduleUrl } from '../std/package.ts'
import type { Log } from '../telemetry/log.ts'
import { connectProcess } from '../upstreams/connect-process.ts'
import { connectRemote } from '../upstreams/connect-remote.ts'
import type { UpstreamLogins } from '../upstreams/login/upstream-logins.ts'
import type { ProcessHost } from '../upstreams/process/process-host.ts'
import type { ServerSessionRecords } from '../upstreams/session/server-session-records.ts'
import type { KnownEras } from '../upstreams/stdio/known-era.ts'
import { Json } from '../wire/json/json.ts'
import { connectOpenapi } from './connect-openapi.ts'
import { loadWhenOpened } from './load-when-opened.ts'

interface BuildOptions {
  readonly log: Log
  readonly version: string
  readonly host: ProcessHost
  readonly knownEras: KnownEras
  readonly data: string | undefined // the data directory
  readonly sessionsPerPrincipal?: number // at each server, for callers without a session
  readonly records?: ServerSessionRecords | undefined // of sessions with servers; undefined: they end with the process
  readonly sources: () => Snapshot['sources'] // the files of the current configuration
  readonly ownPort: () => number | undefined // where the gateway listens
  readonly client?: ClientOptions | undefined // of a program that is itself the client
  readonly logins?: UpstreamLogins | undefined // at a remote server; undefined: it is called without OAuth
  readonly placement?: Placement | undefined // undefined: every server runs here
}

/** Which servers run here, and how the others are reached. */
interface Placement {
  readonly cluster: ClusterConfig | undefined // of this replica
  readonly connect?: ((config: ServerConfig & { readonly on: string }) => Upstream) | undefined // undefined: no other replicas
}

/** How a server is reached, as operators see it. */
export const transportOf = (config: ServerConfig): string => {
  if (config.kind === 'remote') return config.type === 'sse' ? 'sse' : 'http'
  return { openapi: 'openapi', process: 'stdio', builtin: 'built-in', embedded: 'embedded', unavailable: '-' }[
    config.kind
  ]
}

const PROBE_MS = 3000 // for a process to answer `server/discover`; many legacy servers never do

/** How a client of its own connects. */
interface ClientOptions {
  readonly timeoutMs: number // to connect, and for each answer of the handshake
  readonly offersCallerRevision: boolean // a handshake offers the caller's revision instead of the newest legacy one
}

/** The upstream of a configured server; it opens no connection yet. */
export const buildServer = (config: ServerConfig, options: BuildOptions): Upstream => {
  const { log, version, host, knownEras, ownPort, sessionsPerPrincipal, records, client, placement, logins } = options
  const offersCallerRevision = client?.offersCallerRevision ?? false
  if (config.disabled) return unavailable(config.name, 'is disabled in the configuration')
  const { on } = config
  if (on !== undefined && placement && !runsHere(config, placement.cluster))
    return placement.connect?.({ ...config, on }) ?? unavailable(config.name, onlyThere(on))
  switch (config.kind) {
    case 'remote':
      return connectRemote(config, {
        log,
        identity: { name: 'dragoman', version },
        ownPort,
        sessionsPerPrincipal,
        records,
        logins,
        offersCallerRevision,
        ...(client && { connectMs: client.timeoutMs, answerMs: client.timeoutMs }),
      })
    case 'openapi':
      return tapUpstream(
        config.name,
        connectOpenapi(config, {
          log: log.child({ server: config.name }),
          version,
          ownPort,
          logins,
          connectMs: client?.timeoutMs,
        }),
      )
    case 'process':
      return connectProcess(config, {
        log: log.child({ server: config.name }),
        identity: { name: 'dragoman', version },
        host,
        knownEras,
        sessionsPerPrincipal,
        offersCallerRevision,
        ...(client && { startMs: client.timeoutMs, probeMs: Math.min(PROBE_MS, client.timeoutMs) }),
      })
    case 'builtin':
      return tapUpstream(config.name, buildBuiltin(config, { ...options, log: log.child({ server: config.name }) }))
    case 'embedded':
      return tapUpstream(config.name, config.upstream)
    case 'unavailable':
      return unavailable(config.name, `cannot be served: ${config.reason}`)
  }
}

const buildBuiltin = (
  config: BuiltinServer & { readonly name: string },
  { log, version, data, sources }: Omit<BuildOptions, 'host' | 'knownEras' | 'ownPort'>,
): Upstream => {
  switch (config.builtin) {
    case 'demo':
      return loadWhenOpened(config.name, async () => (await import('../servers/demo/demo.ts')).demo(version))
    case 'files': {
      const protectedPaths = (): readonly string[] => [...(data ? [data] : []), ...(sources() ?? [])]
      return loadWhenOpened(config.name, async () =>
        (await import('../servers/files/files.ts')).files({ ...config, version, protectedPaths }),
      )
    }
    case 'memory':
      if (data === undefined) return unavailable(config.name, 'needs a data directory; give --data DIR')
      // Only the thread loads the memory server's modules.
      return startInThread({
        name: 'memory',
        entry: moduleUrl('servers/memory/thread-entry'),
        data: { ...config, folder: join(data, 'memory'), version } satisfies Omit<MemoryOptions, 'log'>,
        log,
      })
  }
}

const onlyThere = (label: string): string =>
  `runs only on replicas with the label "${label}", and there are no other replicas: add the label to "cluster", or let replicas share a "store"`

const unavailable = (server: string, why: string): Upstream => {
  const data = Json.of({ reason: 'unavailable', upstream: server })
  return {
    open: () => Promise.reject(new RpcFailure(rpcError('internal', `Server "${server}" ${why}`, data))),
    close: () => Promise.resolve(),
  }
}
