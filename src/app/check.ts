import type { ServerConfig, Snapshot } from '../config/snapshot.ts'
import { gatewayCaller, PER_CALLER } from '../health/probe-server.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import type { Inspection, ServerReport } from '../protocol/inspection.ts'
import { ask } from '../protocol/listing.ts'
import type { Log } from '../telemetry/log.ts'
import { UpstreamFailure } from '../upstreams/failures.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { KnownEras } from '../upstreams/stdio/known-era.ts'
import { Json } from '../wire/json/json.ts'
import { LIST_KINDS } from '../workspace/catalog/kinds.ts'
import { previewWorkspace, type ServerLists } from '../workspace/catalog/preview.ts'
import { type ListReading, readList } from '../workspace/catalog/read-list.ts'
import type { ListKind } from '../workspace/catalog/view.ts'
import { usableTool } from '../workspace/routing/param-check.ts'
import { buildServer } from './runtime.ts'

interface Options {
  readonly log: Log
  readonly version: string
  readonly data?: string | undefined // the data directory
  /** Hears of every server as soon as it is known how it is. */
  readonly met?: (report: ServerReport) => void
}

interface Meeting {
  readonly report: ServerReport
  readonly offering?: ServerLists | undefined
}

const PATIENCE_MS = 15_000

/** Meets every server of a configuration once, all at the same time, and says what the workspaces would show. */
export const checkServers = async (snapshot: Snapshot, { log, version, data, met }: Options): Promise<Inspection> => {
  const host = new ProcessHost(snapshot.limits.concurrentStarts)
  const knownEras = new KnownEras()
  const building = {
    log,
    version,
    host,
    knownEras,
    data,
    sources: () => snapshot.sources,
    ownPort: () => snapshot.listen.port,
  }
  const self = gatewayCaller(Json.of({ name: 'dragoman', version }))
  const meetings = await Promise.all(
    [...snapshot.servers.values()].map(async config => {
      const meeting = await meet(config, () => buildServer(config, building), self)
      met?.(meeting.report)
      return meeting
    }),
  )
  const offerings = new Map(
    meetings.flatMap(({ report, offering }) => (offering ? [[report.name, offering] as const] : [])),
  )
  return {
    servers: meetings.map(({ report }) => report),
    workspaces: [...snapshot.workspaces.values()].map(config => previewWorkspace(config, offerings)),
  }
}

const meet = async (config: ServerConfig, build: () => Upstream, self: Caller): Promise<Meeting> => {
  const base = { name: config.name, transport: transportOf(config) }
  if (config.disabled) return { report: { ...base, state: 'disabled' } }
  if (config.kind === 'unavailable') return { report: { ...base, state: 'unavailable', reason: config.reason } }
  const upstream = build()
  const begun = performance.now()
  try {
    const { revision, lists } = await inTime(look(upstream, self, config.kind === 'remote'))
    const offering = offeringOf(lists)
    const figures = {
      tools: offering.tools.length,
      prompts: offering.prompts.length,
      resources: offering.resources.length + offering.templates.length,
      ms: Math.round(performance.now() - begun),
    }
    return { report: { ...base, ...soundness(lists), revision, ...figures }, offering }
  } catch (error) {
    if (error instanceof UpstreamFailure && error.reason === 'no_credentials')
      return { report: { ...base, state: 'untried', reason: PER_CALLER } }
    const reason = error instanceof Error ? error.message : String(error)
    return { report: { ...base, state: 'down', ms: Math.round(performance.now() - begun), reason } }
  } finally {
    await upstream.close().catch(() => {}) // it was looked at, and that was all
  }
}

type Lists = Readonly<Record<ListKind, ListReading>>

const NONE: ListReading = { items: [], faults: [], ttlMs: undefined, isPublic: false, isComplete: true }

/** Reads every list of a server as the gateway would. */
const look = async (
  upstream: Upstream,
  self: Caller,
  isRemote: boolean,
): Promise<{ revision: string; lists: Lists }> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.()
  try {
    const capabilities = (await ask(peer.dispatch, self, 'server/discover')).get('capabilities')
    const list = async (kind: ListKind): Promise<ListReading> => {
      const { method, capability } = LIST_KINDS[kind]
      if (!capabilities?.has(capability)) return NONE
      const show = (_: string, own: Json) => (kind === 'tools' ? usableTool(own, isRemote) : { item: own })
      return readList(kind, params => ask(peer.dispatch, self, method, params), show)
    }
    const lists = {
      tools: await list('tools'),
      prompts: await list('prompts'),
      resources: await list('resources'),
      templates: await list('templates').catch(() => NONE), // not all have it
    }
    return { revision: peer.revision, lists }
  } finally {
    release?.()
  }
}

const offeringOf = ({ tools, prompts, resources, templates }: Lists): ServerLists => {
  const itemsOf = ({ items }: ListReading): readonly Json[] => items.map(({ shown: json }) => json)
  return {
    tools: itemsOf(tools),
    prompts: itemsOf(prompts),
    resources: itemsOf(resources),
    templates: itemsOf(templates),
  }
}

/** A server that cannot be shown as a whole is degraded; smaller flaws are told. */
const soundness = (lists: Lists): Pick<ServerReport, 'state' | 'reason' | 'flaws'> => {
  const all = Object.entries(lists).map(([kind, { faults: flaws, isComplete: isWhole }]) => ({ kind, flaws, isWhole }))
  const flaws = all.flatMap(list => list.flaws.map(flaw => `its list of ${list.kind}: ${flaw}`))
  if (flaws.length === 0) return { state: 'ready' }
  return all.every(({ isWhole }) => isWhole)
    ? { state: 'ready', flaws }
    : { state: 'degraded', reason: flaws[0], flaws }
}

const transportOf = (config: ServerConfig): string => {
  if (config.kind === 'remote') return config.type === 'sse' ? 'sse' : 'http'
  return { process: 'stdio', builtin: 'built-in', embedded: 'embedded', unavailable: '-' }[config.kind]
}

const inTime = <T>(work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = new Error(`no answer within ${PATIENCE_MS / 1000} s`)
    const timer = setTimeout(() => reject(late), PATIENCE_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
