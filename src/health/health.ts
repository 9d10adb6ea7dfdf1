import type { ServerConfig } from '../config/snapshot.ts'
import { RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Upstream } from '../protocol/exchange.ts'
import type { ServerPing, ServerStatus } from '../protocol/status.ts'
import { type Log, SILENT } from '../telemetry/log.ts'
import type { ServerCalls } from '../telemetry/server-calls.ts'
import type { Json } from '../wire/json/json.ts'
import { createHealthCheck, type HealthCheck } from './health-check.ts'
import { gatewayCaller, type ReadLists } from './probe-server.ts'
import { createServerGuard, type LoginStandIn } from './server-guard.ts'
import { createStateLog } from './state-log.ts'
import { ToolNames } from './tool-names.ts'
import { createWaitQueue, type WaitQueue } from './wait-queue.ts'

type StatusListener = (status: ServerStatus) => void

/** The health of every configured server. */
export interface Health {
  /** Adds a server, or replaces the one of that name; callers use the returned upstream. */
  add(config: ServerConfig, upstream: Upstream, hooks?: ServerHooks): Upstream
  remove(server: string): void
  /** Probes every server that is still connecting, all at once; each probe has its own timeout. */
  probeAll(): Promise<void>
  /** Probes one server at once, unless it is ready; resolves when the probe has ended or takes too long. */
  probeNow(server: string): Promise<void>
  /** Reads the lists of a server again in the background: they have changed. */
  readAgain(server: string): void
  /** Measures how long a server takes to answer, also one that is down; rejects with RpcFailure. */
  ping(server: string): Promise<ServerPing>
  statusOf(server: string): ServerStatus
  isUp(server: string): boolean
  /** The tools of a server as it listed them to the gateway; undefined: they are not known. */
  toolsOf(server: string): readonly Json[] | undefined
  /** Marks a server as degraded because it returns an invalid list; undefined clears the mark. */
  setListFault(server: string, reason: string | undefined): void
  /** Calls the listener on every change until the returned function is called. */
  onChange(listener: StatusListener): () => void
  close(): void
}

/** How a server is read when it is probed, and what answers while a caller must log in. */
interface ServerHooks {
  readonly readLists?: ReadLists | undefined
  readonly standIn?: LoginStandIn | undefined
}

interface HealthEntry {
  readonly check: HealthCheck
  readonly queue: WaitQueue | undefined
  close(): void
  listFault?: string | undefined
}

const MAX_WAITING = 1000

export const createHealth = (identity: Json, log: Log = SILENT, calls?: ServerCalls): Health => {
  const self = gatewayCaller(identity)
  const entries = new Map<string, HealthEntry>()
  const listeners = new Set<StatusListener>()

  const notify = (entry: HealthEntry): void => {
    for (const listener of [...listeners]) listener(statusOf(entry))
  }

  const add = (config: ServerConfig, upstream: Upstream, { readLists, standIn }: ServerHooks = {}): Upstream => {
    const { name, concurrency } = config
    const queue = concurrency === undefined ? undefined : createWaitQueue(concurrency, MAX_WAITING)
    const tools = new ToolNames()
    const check = createHealthCheck({
      config,
      upstream,
      self,
      onChange: state => {
        stateLog.changed(state)
        if (check.rejection) queue?.rejectAll(check.rejection)
        if (entries.get(name) === entry) notify(entry)
      },
      readLists,
      onTool: tool => tools.add(tool),
    })
    const stateLog = createStateLog(name, check.status().state, log)
    const entry: HealthEntry = {
      check,
      queue,
      close: () => {
        check.close()
        stateLog.close()
      },
    }
    entries.get(name)?.close()
    entries.set(name, entry)
    const count = calls?.of(name)
    const canRetry = config.kind === 'remote'
    const guard = createServerGuard({ server: name, upstream, monitor: check, canRetry, queue, count, tools, standIn })
    return {
      ...guard,
      close: () => {
        entry.close()
        return guard.close()
      },
    }
  }

  return {
    add,
    remove: server => {
      entries.get(server)?.close()
      entries.delete(server)
      calls?.forget(server)
    },
    probeAll: async () => void (await Promise.all([...entries.values()].map(({ check }) => check.firstProbe()))),
    probeNow: async server => entries.get(server)?.check.probeNow(),
    readAgain: server => entries.get(server)?.check.readAgain(),
    ping: async server => {
      const entry = entries.get(server)
      if (entry) return entry.check.ping()
      throw new RpcFailure(rpcError('internal', `There is no server "${server}"`))
    },
    statusOf: server => {
      const entry = entries.get(server)
      return entry ? statusOf(entry) : { name: server, state: 'unavailable', reason: 'not configured' }
    },
    isUp: server => entries.get(server)?.check.isUp() ?? false,
    toolsOf: server => entries.get(server)?.check.tools(),
    setListFault: (server, reason) => {
      const entry = entries.get(server)
      if (!entry || entry.listFault === reason) return
      entry.listFault = reason
      notify(entry)
    },
    onChange: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => {
      for (const entry of entries.values()) entry.close()
      listeners.clear()
    },
  }
}

const statusOf = ({ check, queue, listFault }: HealthEntry): ServerStatus => {
  const status = check.status()
  const isFaulty = listFault !== undefined && status.state === 'ready'
  return {
    ...status,
    ...(isFaulty && { state: 'degraded', reason: listFault }),
    figures: { ...check.counts(), running: queue?.running, waiting: queue?.waiting ?? 0 },
  }
}
