/** How long things are waited for and kept. */
export interface CacheTimes {
  readonly listTimeoutMs: number // for a server nothing is known of yet, before a list is answered without it
  readonly fetchTimeoutMs: number // for a list that somebody may still be told about
  readonly staleIfErrorMs: number // a list whose server does not answer any more
  readonly unwatchedMs: number // a list whose changes nobody announces
  readonly noTtlMs: number // the same, of a server that says at every request how long it holds
  readonly watchedMs: number // a list whose changes are announced: sessions miss something now and then
  readonly fetchIntervalMs: number // between two askings for the same list
  readonly coalesceMs: number // for equal announcements
}

export const CACHE_TIMES: CacheTimes = {
  listTimeoutMs: 5000,
  fetchTimeoutMs: 60_000,
  staleIfErrorMs: 600_000,
  unwatchedMs: 60_000,
  noTtlMs: 5000,
  watchedMs: 300_000,
  fetchIntervalMs: 1000,
  coalesceMs: 200,
}

/** What is known of how long a list holds. */
export interface CacheHints {
  readonly fetchedAt: number
  readonly ttlMs: number | undefined // what the server said; undefined: its revision has no word for it
  readonly isPublic: boolean // the same for every principal
}

/** Until when a list needs no asking again; it is served beyond, while it is asked for. */
export const freshUntil = ({ fetchedAt, ttlMs }: CacheHints, isHeard: boolean, times: CacheTimes): number => {
  if (ttlMs !== undefined && ttlMs > 0) return fetchedAt + ttlMs
  if (isHeard) return fetchedAt + times.watchedMs
  return fetchedAt + (ttlMs === undefined ? times.unwatchedMs : times.noTtlMs)
}

/** Until when callers may keep it: only what its server promised. */
export const promisedUntil = ({ fetchedAt, ttlMs = 0 }: CacheHints): number => fetchedAt + ttlMs

const LACKING_MS = 5000 // somebody who is missing may be back soon

/** The `ttlMs` of an answer made now. */
export const remainingTtl = (until: number, isLacking: boolean, now: number): number => {
  const left = Math.max(0, Math.floor(until - now))
  return isLacking ? Math.min(left, LACKING_MS) : left
}
