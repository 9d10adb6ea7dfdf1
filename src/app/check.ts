import { runsHere } from '../config/cluster.ts'
import type { ClusterConfig, ServerConfig, Snapshot } from '../config/snapshot.ts'
import { gatewayCaller, needsLogin, PER_CALLER } from '../health/probe-server.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import { sizeOfTool } from '../protocol/measure-tool.ts'
import { sendRequest } from '../protocol/send-request.ts'
import type { CheckReport, ServerReport } from '../protocol/status.ts'
import { sumOfSizes } from '../protocol/tool-size.ts'
import { within } from '../std/time.ts'
import type { Log } from '../telemetry/log.ts'
import { LogHistory, withHistory } from '../telemetry/log-history.ts'
import { UpstreamFailure } from '../upstreams/failures.ts'
import type { UpstreamLogins } from '../upstreams/login/upstream-logins.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { KnownEras } from '../upstreams/stdio/known-era.ts'
import { Json } from '../wire/json/json.ts'
import { LIST_KINDS, type ListKind } from '../workspace/catalog/list-kinds.ts'
import { previewWorkspace, type ServerLists } from '../workspace/catalog/preview.ts'
import { EMPTY_READING, type ListReading, readList } from '../workspace/catalog/read-list.ts'
import { usableTool } from '../workspace/routing/call-headers.ts'
import { buildServer, transportOf } from './build-server.ts'
import { usesOAuth } from './server-logins.ts'
import { createToolFlags } from './tool-flags.ts'
import { sizedTools } from './tool-sizes.ts'

interface CheckOptions {
  readonly log: Log
  readonly version: string
  readonly data?: string | undefined // the data directory
  readonly timeoutMs?: number | undefined // for all requests to one server
  readonly signal?: AbortSignal | undefined // the result is not wanted any more
  readonly keepStderr?: boolean | undefined // also of servers that are not down
  /** Called for every server as soon as it is checked. */
  readonly met?: (report: ServerReport) => void
}

interface CheckedServer {
  readonly report: ServerReport
  readonly lists?: ServerLists | undefined
}

const TIMEOUT_MS = 30_000 // npx and uvx download a program when it is first started
const PRINTED_LINES = 10

/** Connects to every server of a configuration once, all at the same time, and previews what the workspaces would show. */
export const checkServers = async (
  snapshot: Snapshot,
  { log, version, data, timeoutMs = TIMEOUT_MS, signal, keepStderr = false, met }: CheckOptions,
): Promise<CheckReport> => {
  const host = new ProcessHost(snapshot.limits.concurrentStarts)
  const knownEras = new KnownEras()
  const history = new LogHistory()
  const options = {
    log: withHistory(log, history),
    version,
    host,
    knownEras,
    data,
    sources: () => snapshot.sources,
    ownPort: () => snapshot.listen.port,
  }
  const self = gatewayCaller(Json.of({ name: 'dragoman', version }))
  const about = { self, timeoutMs, cluster: snapshot.cluster, signal }
  const checked = await Promise.all(
    [...snapshot.servers.values()].map(async config => {
      const logins = usesOAuth(config) ? ASKING_FOR_LOGIN : undefined
      const { report, lists } = await checkServer(config, () => buildServer(config, { ...options, logins }), about)
      const lines =
        keepStderr || report.state === 'down'
          ? history.lines(config.name).filter(({ level }) => level === 'stderr')
          : []
      const stderr = lines.slice(-PRINTED_LINES).map(({ text }) => text)
      const shown = stderr.length > 0 ? { ...report, stderr } : report
      met?.(shown)
      return { report: shown, lists }
    }),
  )
  const lists = new Map(checked.flatMap(server => (server.lists ? [[server.report.name, server.lists] as const] : [])))
  return {
    servers: checked.map(({ report }) => report),
    workspaces: [...snapshot.workspaces.values()].map(config => previewWorkspace(config, lists)),
    flags: createToolFlags(
      server => lists.get(server)?.tools,
      () => snapshot.workspaces.values(),
    ).all(),
  }
}

/** No login is used here: a server that asks for one is not examined further. */
const ASKING_FOR_LOGIN: UpstreamLogins = {
  credentials: {
    bearerOf: () => undefined,
    rejected: async (_, { wwwAuthenticate }) =>
      /\bbearer\b/i.test(String(wwwAuthenticate))
        ? { kind: 'login', text: 'needs a login', link: { id: '', url: '', expires: 0 } }
        : { kind: 'unsupported' },
    onChanged: () => () => {},
  },
  isPersonal: false,
  demand: { isKnown: false, record: () => {} },
}

interface ServerCheck {
  readonly self: Caller
  readonly cluster: ClusterConfig | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

const checkServer = async (
  config: ServerConfig,
  build: () => Upstream,
  { self, timeoutMs, cluster, signal }: ServerCheck,
): Promise<CheckedServer> => {
  const base = { name: config.name, transport: transportOf(config) }
  if (config.disabled) return { report: { ...base, state: 'disabled' } }
  if (!runsHere(config, cluster))
    return { report: { ...base, state: 'untried', reason: `runs only on replicas with the label "${config.on}"` } }
  if (config.kind === 'unavailable') return { report: { ...base, state: 'unavailable', reason: config.reason } }
  const upstream = build()
  const begun = performance.now()
  try {
    let pending = 'to the first message'
    const onRequest = (method: string): void => {
      pending = `to ${method}`
    }
    const reading = readLists(upstream, self, { isRemote: config.kind === 'remote', onRequest })
    const given = within<Readings, never>(timeoutMs, reading, () => {
      throw new Error(`no answer ${pending} within ${timeoutMs / 1000} s; --timeout gives it more time`)
    })
    const { revision, readings } = await (signal ? Promise.race([given, aborted(signal)]) : given)
    const lists = itemsOf(readings)
    const figures = {
      tools: lists.tools.length,
      toolSize: sumOfSizes(lists.tools.map(sizeOfTool)),
      toolSizes: sizedTools(lists.tools),
      prompts: lists.prompts.length,
      resources: lists.resources.length + lists.templates.length,
      ms: Math.round(performance.now() - begun),
    }
    return { report: { ...base, ...stateOf(readings), revision, ...figures }, lists }
  } catch (error) {
    if (error instanceof UpstreamFailure && error.reason === 'no_credentials')
      return { report: { ...base, state: 'untried', reason: PER_CALLER } }
    if (error instanceof UpstreamFailure && error.reason === 'login_required')
      return { report: { ...base, state: 'untried', reason: needsLogin(config.name) } }
    const reason = error instanceof Error ? error.message : String(error)
    return { report: { ...base, state: 'down', ms: Math.round(performance.now() - begun), reason } }
  } finally {
    await upstream.close().catch(() => {})
  }
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const fail = (): void => reject(new Error('the check was cancelled'))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })

interface Readings {
  readonly revision: string
  readonly readings: Readonly<Record<ListKind, ListReading>>
}

interface ReadOptions {
  readonly isRemote: boolean
  readonly onRequest: (method: string) => void
}

/** Reads every list of a server as the gateway would. */
const readLists = async (upstream: Upstream, self: Caller, { isRemote, onRequest }: ReadOptions): Promise<Readings> => {
  const peer = await upstream.open(self)
  const release = peer.hold?.()
  try {
    const send = (method: string, params?: Json): Promise<Json> => {
      onRequest(method)
      return sendRequest(peer.dispatch, self, method, params)
    }
    const capabilities = (await send('server/discover')).get('capabilities')
    const read = async (kind: ListKind): Promise<ListReading> => {
      const { method, capability } = LIST_KINDS[kind]
      if (!capabilities?.has(capability)) return EMPTY_READING
      const show = (_: string, item: Json) => (kind === 'tools' ? usableTool(item, isRemote) : { item })
      return readList(kind, params => send(method, params), show)
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
