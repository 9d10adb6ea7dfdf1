/** How long the catalog waits for lists, and how long it keeps them. All in milliseconds. */
export interface CacheTimes {
  readonly listWaitMs: number // a list is answered without a server whose first list takes longer
  readonly ownListMs: number // a list that is known from elsewhere is served if the caller's own takes longer
  readonly directListMs: number // the same in a workspace of one server, whose own answer is worth a longer wait
  readonly behindMs: number // a fetch that may start a process follows the answer after this time
  readonly listTimeoutMs: number // how long other requests wait for several servers
  readonly fetchTimeoutMs: number // a fetch that takes longer has failed
  readonly staleIfErrorMs: number // how long a list is served after its server stopped answering
  readonly unwatchedMs: number // freshness of a list without change notifications
  readonly noTtlMs: number // the same, where the server's revision has `ttlMs` and the server sends 0
  readonly watchedMs: number // freshness of a list with change notifications: sessions miss some now and then
  readonly fetchIntervalMs: number // average minimum between two fetches of one list
  readonly coalesceMs: number // changes within this time are one notification
}

export const CACHE_TIMES: CacheTimes = {
  listWaitMs: 12_000,
  ownListMs: 25,
  directListMs: 3_000,
  behindMs: 100,
  listTimeoutMs: 5000,
  fetchTimeoutMs: 60_000,
  staleIfErrorMs: 600_000,
  unwatchedMs: 60_000,
  noTtlMs: 5000,
  watchedMs: 300_000,
  fetchIntervalMs: 1000,
  coalesceMs: 200,
}

/** The caching hints of a fetched value. */
export interface CacheHints {
  readonly fetchedAt: number
  readonly ttlMs: number | undefined // undefined: the server's revision has no `ttlMs`
  readonly isPublic: boolean // the same for every principal
}

/** Until when a value need not be fetched again. A stale value is still served while it is fetched. */
export const freshUntil = ({ fetchedAt, ttlMs }: CacheHints, isWatched: boolean, times: CacheTimes): number => {
  if (ttlMs !== undefined && ttlMs > 0) return fetchedAt + ttlMs
  if (isWatched) return fetchedAt + times.watchedMs
  return fetchedAt + (ttlMs === undefined ? times.unwatchedMs : times.noTtlMs)
}

/** Until when clients may cache a value: only as long as its server promised. */
export const promisedUntil = ({ fetchedAt, ttlMs = 0 }: CacheHints): number => fetchedAt + ttlMs

const INCOMPLETE_MS = 5000 // a missing server may be back soon

/** The `ttlMs` of a response sent now. */
export const remainingTtl = (until: number, isIncomplete: boolean, now: number): number => {
  const left = Math.max(0, Math.floor(until - now))
  return isIncomplete ? Math.min(left, INCOMPLETE_MS) : left
}
