import type { ServerConfig } from '../config/snapshot.ts'
import type { Upstream } from '../protocol/exchange.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { type Log, SILENT } from '../telemetry/log.ts'
import type { ServerCalls } from '../telemetry/server-calls.ts'
import type { Json } from '../wire/json/json.ts'
import { gatewayCaller } from './examine.ts'
import { HealthCheck } from './health-check.ts'
import { createServerGuard } from './server-guard.ts'
import type { HealthState } from './state.ts'
import { createStateLog } from './state-log.ts'
import { ToolNames } from './tool-names.ts'
import { WaitQueue } from './wait-queue.ts'

/** Hears of a server that became another: ready, degraded, down. */
export type StatusListener = (status: ServerStatus) => void

/** How every configured server is. */
export interface Health {
  /** Takes a server in, or another in the place of one of that name; callers reach it by the upstream returned. */
  add(config: ServerConfig, upstream: Upstream): Upstream
  remove(server: string): void
  /** Tries every server that has not been tried yet, all at the same time, each within its own bound. */
  probeAll(): Promise<void>
  statusOf(server: string): ServerStatus
  /** Whether a server is worth asking. */
  isUp(server: string): boolean
  /** A server answers, but not rightly; it counts as degraded until that is taken back by undefined. */
  setListFault(server: string, reason: string | undefined): void
  /** Tells of every change until the returned function is called. */
  onChange(listener: StatusListener): () => void
  close(): void
}

interface Post {
  readonly watch: HealthCheck
  readonly queue: WaitQueue | undefined
  close(): void
  flaw?: string | undefined // what it answers wrongly
}

const LONGEST_QUEUE = 1000

export const createHealth = (identity: Json, log: Log = SILENT, calls?: ServerCalls): Health => {
  const self = gatewayCaller(identity)
  const known = new Map<string, Post>()
  const listeners = new Set<StatusListener>()

  const add = (config: ServerConfig, upstream: Upstream): Upstream => {
    const { name, concurrency } = config
    const first = atFirst(config, Date.now())
    const queue = concurrency === undefined ? undefined : new WaitQueue(concurrency, LONGEST_QUEUE)
    const herald = createStateLog(name, first.kind, log)
    const changed = (state: HealthState): void => {
      herald.changed(state)
      if (watch.rejection) queue?.rejectAll(watch.rejection)
      if (known.get(name) === post) for (const listener of [...listeners]) listener(statusOf(post))
    }
    const isStarted = config.kind === 'process'
    const tools = new ToolNames()
    const watch = new HealthCheck({
      server: name,
      first,
      upstream,
      self,
      isStarted,
      isShared: !(isStarted && config.personal),
      isPerUser: isStarted && config.share !== 'everyone',
      isLookedAfter: isStarted || config.kind === 'remote',
      changed,
      listed: name => tools.add(name),
    })
    const post: Post = {
      watch,
      queue,
      close: () => {
        watch.close()
        herald.close()
      },
    }
    known.get(name)?.close()
    known.set(name, post)
    const count = calls?.of(name)
    const repeats = config.kind === 'remote'
    const gate = createServerGuard({ server: name, upstream, monitor: watch, canRetry: repeats, queue, count, tools })
    return {
      ...gate,
      close: () => {
        post.close()
        return gate.close()
      },
    }
  }

  return {
    add,
    remove: server => {
      known.get(server)?.close()
      known.delete(server)
      calls?.forget(server)
    },
    probeAll: async () => void (await Promise.all([...known.values()].map(({ watch }) => watch.firstProbe()))),
    statusOf: server => {
      const post = known.get(server)
      return post ? statusOf(post) : { name: server, state: 'unavailable', reason: 'not configured' }
    },
    isUp: server => known.get(server)?.watch.isUp ?? false,
    setListFault: (server, reason) => {
      const post = known.get(server)
      if (!post || post.flaw === reason) return
      post.flaw = reason
      for (const listener of [...listeners]) listener(statusOf(post))
    },
    onChange: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => {
      for (const post of known.values()) post.close()
      listeners.clear()
    },
  }
}

const statusOf = ({ watch, queue, flaw }: Post): ServerStatus => ({
  ...withFlaw(watch.status(), flaw),
  figures: { openings: watch.openings, retries: watch.retries, running: queue?.running, waiting: queue?.waiting ?? 0 },
})

const withFlaw = (status: ServerStatus, flaw: string | undefined): ServerStatus =>
  flaw !== undefined && status.state === 'ready' ? { ...status, state: 'degraded', reason: flaw } : status

const atFirst = (config: ServerConfig, since: number): HealthState => {
  if (config.disabled) return { kind: 'disabled', since }
  if (config.kind !== 'unavailable') return { kind: 'connecting', since }
  return { kind: 'unavailable', since, fault: { reason: 'unavailable', message: config.reason } }
}
