import type { ServerConfig, Snapshot } from '../config/snapshot.ts'
import { gatewayCaller, PER_CALLER } from '../health/probe-server.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import { sendRequest } from '../protocol/send-request.ts'
import type { CheckReport, ServerReport } from '../protocol/status.ts'
import { within } from '../std/time.ts'
import type { Log } from '../telemetry/log.ts'
import { UpstreamFailure } from '../upstreams/failures.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { KnownEras } from '../upstreams/stdio/known-era.ts'
import { Json } from '../wire/json/json.ts'
import { LIST_KINDS, type ListKind } from '../workspace/catalog/list-kinds.ts'
import { previewWorkspace, type ServerLists } from '../workspace/catalog/preview.ts'
import { EMPTY_READING, type ListReading, readList } from '../workspace/catalog/read-list.ts'
import { usableTool } from '../workspace/routing/call-headers.ts'
import { buildServer } from './build-server.ts'

interface CheckOptions {
  readonly log: Log
  readonly version: string
  readonly data?: string | undefined // the data directory
  /** Called for every server as soon as it is checked. */
  readonly met?: (report: ServerReport) => void
}

interface CheckedServer {
  readonly report: ServerReport
  readonly lists?: ServerLists | undefined
}

const TIMEOUT_MS = 15_000

/** Connects to every server of a configuration once, all at the same time, and previews what the workspaces would show. */
export const checkServers = async (
  snapshot: Snapshot,
  { log, version, data, met }: CheckOptions,
): Promise<CheckReport> => {
  const host = new ProcessHost(snapshot.limits.concurrentStarts)
  const knownEras = new KnownEras()
  const options = {
    log,
    version,
    host,
    knownEras,
    data,
    sources: () => snapshot.sources,
    ownPort: () => snapshot.listen.port,
  }
  const self = gatewayCaller(Json.of({ name: 'dragoman', version }))
  const checked = await Promise.all(
    [...snapshot.servers.values()].map(async config => {
      const server = await checkServer(config, () => buildServer(config, options), self)
      met?.(server.report)
      return server
    }),
  )
  const lists = new Map(checked.flatMap(server => (server.lists ? [[server.report.name, server.lists] as const] : [])))
  return {
    servers: checked.map(({ report }) => report),
    workspaces: [...snapshot.workspaces.values()].map(config => previewWorkspace(config, lists)),
  }
}

const checkServer = async (config: ServerConfig, build: () => Upstream, self: Caller): Promise<CheckedServer> => {
  const base = { name: config.name, transport: transportOf(config) }
  if (config.disabled) return { report: { ...base, state: 'disabled' } }
  if (config.kind === 'unavailable') return { report: { ...base, state: 'unavailable', reason: config.reason } }
  const upstream = build()
  const begun = performance.now()
  try {
    const reading = readLists(upstream, self, config.kind === 'remote')
    const { revision, readings } = await within<Readings, never>(TIMEOUT_MS, reading, () => {
      throw new Error(`no answer within ${TIMEOUT_MS / 1000} s`)
    })
    const lists = itemsOf(readings)
    const figures = {
      tools: lists.tools.length,
      prompts: lists.prompts.length,
      resources: lists.resources.length + lists.templates.length,
      ms: Math.round(performance.now() - begun),
    }
    return { report: { ...base, ...stateOf(readings), revision, ...figures }, lists }
  } catch (error) {
    if (error instanceof UpstreamFailure && error.reason === 'no_credentials')
      return { report: { ...base, state: 'untried', reason: PER_CALLER } }
    const reason = error instanceof Error ? error.message : String(error)
    return { report: { ...base, state: 'down', ms: Math.round(performance.now() - begun), reason } }
  } finally {
    await upstream.close().catch(() => {})
  }
}

interface Readings {
  readonly revision: string
  readonly readings: Readonly<Record<ListKind, ListReading>>
}

/** Reads every list of a server as the gateway would. */
const readLists = async (upstream: Upstream, self: Caller, isRemote: boolean): Promise<Readings> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.()
  try {
    const capabilities = (await sendRequest(peer.dispatch, self, 'server/discover')).get('capabilities')
    const read = async (kind: ListKind): Promise<ListReading> => {
      const { method, capability } = LIST_KINDS[kind]
      if (!capabilities?.has(capability)) return EMPTY_READING
      const show = (_: string, item: Json) => (kind === 'tools' ? usableTool(item, isRemote) : { item })
      return readList(kind, params => sendRequest(peer.dispatch, self, method, params), show)
    }
    const readings = {
      tools: await read('tools'),
      prompts: await read('prompts'),
      resources: await read('resources'),
      templates: await read('templates').catch(() => EMPTY_READING), // servers with resources may lack templates
    }
    return { revision: peer.revision, readings }
  } finally {
    release?.()
  }
}

const itemsOf = ({ tools, prompts, resources, templates }: Readings['readings']): ServerLists => {
  const shown = ({ items }: ListReading): readonly Json[] => items.map(item => item.shown)
  return { tools: shown(tools), prompts: shown(prompts), resources: shown(resources), templates: shown(templates) }
}

/** A server whose list is cut off is degraded; lesser faults are only reported. */
const stateOf = (readings: Readings['readings']): Pick<ServerReport, 'state' | 'reason' | 'flaws'> => {
  const all = Object.entries(readings)
  const flaws = all.flatMap(([kind, { faults }]) => faults.map(fault => `its list of ${kind}: ${fault}`))
  if (flaws.length === 0) return { state: 'ready' }
  const isComplete = all.every(([, reading]) => reading.isComplete)
  return isComplete ? { state: 'ready', flaws } : { state: 'degraded', reason: flaws[0], flaws }
}

const transportOf = (config: ServerConfig): string => {
  if (config.kind === 'remote') return config.type === 'sse' ? 'sse' : 'http'
  return { process: 'stdio', builtin: 'built-in', embedded: 'embedded', unavailable: '-' }[config.kind]
}
