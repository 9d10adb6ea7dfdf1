import type { RateLimits } from '../config/snapshot.ts'
import { SingleFlight } from '../std/single-flight.ts'
import { within } from '../std/time.ts'
import type { Log } from '../telemetry/log.ts'
import { RateWindow, type UnreportedCount, WINDOW_MS } from './rate-window.ts'

/** How replicas share their counts. */
interface RateSharing {
  /** The number of live replicas, this one too. */
  readonly replicas: () => number
  /** Adds to the counters of a window, given by its start in milliseconds, and returns their sums over all replicas. */
  readonly count: (window: number, spent: ReadonlyMap<string, number>) => Promise<ReadonlyMap<string, number>>
  readonly log: Log
}

/** Counts a request; returns the milliseconds to wait if there were too many. */
export type LimitRate = (owner: string, workspace: string) => undefined | number | Promise<undefined | number>

interface RateLimiter {
  readonly take: LimitRate
  readonly size: number // keys it has counts for
  close(): void
}

const EXCHANGE_MS = 100
const TIMEOUT_MS = 500 // for an exchange that requests wait for
const ALONE_MS = 5000 // for which replicas count for themselves after an exchange has failed

/**
 * Limits the requests of each owner and of each workspace. Replicas exchange their counts ten times a second, and before
 * one of them admits more than a tenth of a limit that the others do not know of. So all together admit at most
 * (replicas - 1) tenths too many. While the counts cannot be exchanged, each replica applies the whole limit.
 */
export const createRateLimiter = ({ perPrincipal, perWorkspace }: RateLimits, sharing?: RateSharing): RateLimiter => {
  const owners = perPrincipal && new RateWindow(perPrincipal, sharing?.replicas)
  const workspaces = perWorkspace && new RateWindow(perWorkspace, sharing?.replicas)
  const windows = Object.entries({ owner: owners, workspace: workspaces })
  const exchanging = new SingleFlight()
  let aloneUntil = 0

  const exchange = async ({ count, log }: RateSharing): Promise<void> => {
    const now = Date.now()
    const window = now - (now % WINDOW_MS)
    const counts = new Map<string, UnreportedCount>()
    for (const [name, limited] of windows)
      for (const [key, unreported] of limited?.unreported(window) ?? []) counts.set(`${name} ${key}`, unreported)
    if (counts.size === 0) return
    const fail = (reason: unknown): ReadonlyMap<string, number> => {
      if (now >= aloneUntil) log.warn({ reason }, 'rates could not be exchanged: this replica counts for itself')
      aloneUntil = now + ALONE_MS
      return new Map()
    }
    const spent = new Map([...counts].map(([key, { by }]) => [key, by]))
    const sums = await within(TIMEOUT_MS, count(window, spent), () => fail('timeout')).catch(fail)
    for (const [key, { settle }] of counts) settle(sums.get(key))
  }

  const timer = sharing
    ? setInterval(() => {
        if (sharing.replicas() > 1) void exchanging.run(() => exchange(sharing))
      }, EXCHANGE_MS).unref()
    : undefined

  const takeOf = (limited: RateWindow, key: string): undefined | number | Promise<undefined | number> => {
    const now = Date.now()
    const decision = limited.take(key, now, sharing !== undefined && now >= aloneUntil)
    if (decision === 'admitted') return undefined
    if (decision !== 'exchange' || !sharing) return decision as number
    return exchanging.run(() => exchange(sharing)).then(() => takeOf(limited, key))
  }

  const take: LimitRate = (owner, workspace) => {
    const own = owners && takeOf(owners, owner)
    if (!workspaces || typeof own === 'number') return own
    return own ? own.then(waitMs => waitMs ?? takeOf(workspaces, workspace)) : takeOf(workspaces, workspace)
  }

  return {
    take,
    get size() {
      return (owners?.size ?? 0) + (workspaces?.size ?? 0)
    },
    close: () => clearInterval(timer),
  }
}
