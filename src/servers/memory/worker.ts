import { randomUUID } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { backoffMs, LONGEST_TIMER_MS } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Instant, Job, JobKind } from './model.ts'
import type { Lease, MemoryStore, MemoryStores } from './store.ts'

/**
 * Does one job. If it throws, the job is retried with backoff, after a PermanentFailure never. When the signal aborts,
 * the worker is closing: the handler stops early, and the job stays enqueued.
 */
export type JobHandler = (store: MemoryStore, job: Job, lease: Lease, signal: AbortSignal) => Promise<void>

/** The job cannot succeed, however often it is retried. */
export class PermanentFailure extends Error {
  override readonly name = 'PermanentFailure'
}

/** The job cannot run before `at`, through no fault of its own; this is not counted as an attempt. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  readonly at: Instant
  constructor(message: string, at: Instant, options?: ErrorOptions) {
    super(message, options)
    this.at = at
  }
}

export interface WorkerOptions {
  readonly stores: MemoryStores
  readonly handlers: Readonly<Partial<Record<JobKind, JobHandler>>>
  readonly log: Log
  /** Called once per tenant, before its first job. */
  readonly prepare?: ((store: MemoryStore) => Promise<void>) | undefined
  readonly now?: () => Instant
}

/** Does the background work of all tenants, one job of a tenant at a time. */
export interface Worker {
  /** There may be work for this tenant. */
  wake(tenant: string): void
  /** Continues the work that an earlier process left. */
  resume(): Promise<void>
  /** Aborts running jobs and starts no more. */
  close(): Promise<void>
}

const LEASE_MS = 120_000
const RENEW_MS = LEASE_MS / 3
const MOST_ATTEMPTS = 12 // over an hour in all
const BACKOFF = { firstMs: 2_500, longestMs: 40 * 60_000 }
const STORE_RETRY_MS = 30_000 // after a failure of the store itself
const STOP_MS = 1_000 // keeps other workers from retrying while this process stops

/** The reason why jobs end when the worker closes. */
export const stoppedError = (now: Instant): RetryLater =>
  new RetryLater('The program was stopped meanwhile.', now + STOP_MS)

/** The delay after that many attempts, at least one. */
export const retryDelayMs = (attempts: number, random?: number): number => backoffMs(BACKOFF, attempts - 1, random)

export const createWorker = ({ stores, handlers, log, prepare, now = Date.now }: WorkerOptions): Worker => {
  const owner = randomUUID()
  const kinds = Object.keys(handlers) as JobKind[]
  const busy = new Map<string, Promise<void>>()
  const timers = new Map<string, NodeJS.Timeout>()
  const again = new Set<string>() // tenants that were woken while busy
  const prepared = new Set<string>()
  const closing = new AbortController()
  const { signal } = closing

  const recordFailure = async (store: MemoryStore, job: Job, thrown: unknown): Promise<void> => {
    // A job that was aborted has not failed, whatever it threw.
    const error = signal.aborted && !(thrown instanceof PermanentFailure) ? signal.reason : thrown
    const message = error instanceof Error ? error.message : String(error)
    const lease = { job: job.id, owner }
    const fields = { job: job.id, kind: job.kind, group: job.group, error: message }
    if (error instanceof RetryLater) {
      log.debug({ ...fields, until: new Date(error.at).toISOString() }, 'memory job postponed')
      return void (await store.fail(lease, message, error.at, false))
    }
    const isOver = error instanceof PermanentFailure || job.attempts >= MOST_ATTEMPTS
    log.warn({ ...fields, attempts: job.attempts }, 'memory job failed')
    await store.fail(lease, message, isOver ? undefined : now() + retryDelayMs(job.attempts))
  }

  const perform = async (store: MemoryStore, job: Job): Promise<void> => {
    const lease = { job: job.id, owner }
    const renewal = setInterval(() => void store.renew(lease, LEASE_MS).catch(() => {}), RENEW_MS).unref()
    try {
      await handlers[job.kind]?.(store, job, lease, signal)
      await store.finish(lease)
    } catch (error) {
      await recordFailure(store, job, error)
    } finally {
      clearInterval(renewal)
    }
  }

  /** Does one job that is due, or schedules the next look; returns whether there was one. */
  const step = (tenant: string): Promise<boolean> =>
    stores.with(tenant, async store => {
      if (prepare && !prepared.has(tenant)) await prepare(store)
      prepared.add(tenant)
      const job = await store.lease(owner, kinds, LEASE_MS)
      if (job) await perform(store, job)
      else await schedule(tenant, store)
      return job !== undefined
    })

  const schedule = async (tenant: string, store: MemoryStore): Promise<void> => {
    const due = await store.nextDue(kinds)
    wakeIn(tenant, due === undefined ? undefined : Math.min(LONGEST_TIMER_MS, Math.max(0, due - now()) + 10))
  }

  const wakeIn = (tenant: string, delayMs: number | undefined): void => {
    clearTimeout(timers.get(tenant))
    timers.delete(tenant)
    if (delayMs !== undefined && !signal.aborted) timers.set(tenant, setTimeout(() => wake(tenant), delayMs).unref())
  }

  const run = async (tenant: string): Promise<void> => {
    do {
      again.delete(tenant)
      await yieldToEventLoop() // jobs that never wait would block all other callers
    } while (!signal.aborted && ((await step(tenant)) || again.has(tenant)))
  }

  const wake = (tenant: string): void => {
    if (signal.aborted || kinds.length === 0) return
    if (busy.has(tenant)) return void again.add(tenant)
    const work = run(tenant)
      .catch((error: unknown) => {
        log.warn({ err: error, retryInMs: STORE_RETRY_MS }, 'background work on memory stopped')
        wakeIn(tenant, STORE_RETRY_MS)
      })
      .finally(() => {
        busy.delete(tenant)
        if (again.delete(tenant)) wake(tenant)
      })
    busy.set(tenant, work)
  }

  return {
    wake,
    resume: async () => {
      for (const tenant of await stores.tenants()) wake(tenant)
    },
    close: async () => {
      closing.abort(stoppedError(now()))
      for (const timer of timers.values()) clearTimeout(timer)
      await Promise.allSettled(busy.values())
    },
  }
}
