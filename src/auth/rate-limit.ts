import { BurstyRateLimiter, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { RateLimit, RateLimits } from '../config/snapshot.ts'

const WINDOW_S = 1
const BURST_WINDOW_S = 10

/** Counts a request; yields the milliseconds to wait where there were too many. */
export type RateLimiter = (principal: string, workspace: string) => Promise<number | undefined>

/** Counts requests per principal and per workspace, whichever is limited. */
export const createRateLimiter = ({ perPrincipal, perWorkspace }: RateLimits): RateLimiter => {
  const principals = perPrincipal && limiter(perPrincipal)
  const workspaces = perWorkspace && limiter(perWorkspace)
  return async (principal, workspace) =>
    (principals && (await waitOf(principals, principal))) ?? (workspaces && (await waitOf(workspaces, workspace)))
}

/** So many in each second, and a reserve for bursts that is filled up again every ten. */
const limiter = ({ perSecond, burst }: RateLimit): BurstyRateLimiter =>
  new BurstyRateLimiter(
    new RateLimiterMemory({ points: perSecond, duration: WINDOW_S }),
    new RateLimiterMemory({ points: burst, duration: BURST_WINDOW_S }),
  )

const waitOf = (limiter: BurstyRateLimiter, key: string): Promise<number | undefined> =>
  limiter.consume(key).then(
    () => undefined,
    (refused: unknown) => {
      if (refused instanceof RateLimiterRes) return Math.max(1, refused.msBeforeNext)
      throw refused
    },
  )
