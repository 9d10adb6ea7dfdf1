import { randomUUID } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import { LONGEST_TIMER_MS } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Instant, Job, JobKind } from './model.ts'
import type { Lease, MemoryStore, MemoryStores } from './store.ts'

/**
 * Does one job. What it throws makes the job wait and be tried again; a Hopeless gives it up at once. When the signal is
 * aborted the worker closes: whatever takes long is to be broken off, and the job waits for the next to take it up.
 */
export type Handle = (store: MemoryStore, job: Job, lease: Lease, signal: AbortSignal) => Promise<void>

/** Work that no further attempt can bring about. */
export class Hopeless extends Error {
  override readonly name = 'Hopeless'
}

/** Work whose time has not come, through no fault of its own: it waits as long as it must, and that is no attempt. */
export class Later extends Error {
  override readonly name = 'Later'
  readonly at: Instant
  constructor(message: string, at: Instant, options?: ErrorOptions) {
    super(message, options)
    this.at = at
  }
}

export interface WorkerOptions {
  readonly stores: MemoryStores
  readonly handlers: Readonly<Partial<Record<JobKind, Handle>>>
  readonly log: Log
  /** Looks at a tenant's memory once, before its first job. */
  readonly prepare?: ((store: MemoryStore) => Promise<void>) | undefined
  readonly now?: () => number
}

/** Does the background work of every tenant, one job of a tenant at a time. */
export interface Worker {
  /** There may be something to do for this tenant. */
  wake(tenant: string): void
  /** Takes up what was left from before. */
  resume(): Promise<void>
  /** Breaks off what runs and begins nothing more. */
  close(): Promise<void>
}

const LEASE_MS = 120_000
const RENEW_MS = LEASE_MS / 3
const MOST_ATTEMPTS = 12 // over an hour in all
const FIRST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 30 * 60_000
const STOPPED_MS = 30_000 // after a failure of the store itself
const STOP_MS = 1_000 // so that nobody tries again and again until everything has stopped

/** What becomes of work that the end of the program broke off. */
export const stoppedAt = (now: Instant): Later => new Later('The program was stopped meanwhile.', now + STOP_MS)

/** How long a job waits after so many attempts; some chance keeps many from coming back together. */
export const waitAfter = (attempts: number, chance = Math.random()): number =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1)) * (0.75 + chance / 2)

export const createWorker = ({ stores, handlers, log, prepare, now = Date.now }: WorkerOptions): Worker => {
  const owner = randomUUID()
  const kinds = Object.keys(handlers) as JobKind[]
  const busy = new Map<string, Promise<void>>()
  const timers = new Map<string, NodeJS.Timeout>()
  const again = new Set<string>()
  const prepared = new Set<string>()
  const closing = new AbortController()
  const { signal } = closing

  const settle = async (store: MemoryStore, job: Job, thrown: unknown): Promise<void> => {
    // Whatever it looks like, work that was broken off has not failed.
    const error = signal.aborted && !(thrown instanceof Hopeless) ? signal.reason : thrown
    const message = error instanceof Error ? error.message : String(error)
    const lease = { job: job.id, owner }
    const fields = { job: job.id, kind: job.kind, group: job.group, error: message }
    if (error instanceof Later) {
      log.debug({ ...fields, until: new Date(error.at).toISOString() }, 'a memory job waits')
      return void (await store.fail(lease, message, error.at, false))
    }
    const isOver = error instanceof Hopeless || job.attempts >= MOST_ATTEMPTS
    log.warn({ ...fields, attempts: job.attempts }, 'a memory job failed')
    await store.fail(lease, message, isOver ? undefined : now() + waitAfter(job.attempts))
  }

  const perform = async (store: MemoryStore, job: Job): Promise<void> => {
    const lease = { job: job.id, owner }
    const renewal = setInterval(() => void store.renew(lease, LEASE_MS).catch(() => {}), RENEW_MS).unref()
    try {
      await handlers[job.kind]?.(store, job, lease, signal)
      await store.finish(lease)
    } catch (error) {
      await settle(store, job, error)
    } finally {
      clearInterval(renewal)
    }
  }

  /** One job, if one is due; otherwise when to look again. */
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

  const wakeIn = (tenant: string, wait: number | undefined): void => {
    clearTimeout(timers.get(tenant))
    timers.delete(tenant)
    if (wait !== undefined && !signal.aborted) timers.set(tenant, setTimeout(() => wake(tenant), wait).unref())
  }

  const run = async (tenant: string): Promise<void> => {
    do {
      again.delete(tenant)
      await breathe() // Jobs that wait for nothing would keep everybody else waiting.
    } while (!signal.aborted && ((await step(tenant)) || again.has(tenant)))
  }

  const wake = (tenant: string): void => {
    if (signal.aborted || kinds.length === 0) return
    if (busy.has(tenant)) return void again.add(tenant)
    const work = run(tenant)
      .catch((error: unknown) => {
        log.warn({ err: error }, 'background work on memory stopped; it is taken up again in a while')
        wakeIn(tenant, STOPPED_MS)
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
      closing.abort(stoppedAt(now()))
      for (const timer of timers.values()) clearTimeout(timer)
      await Promise.allSettled(busy.values())
    },
  }
}
