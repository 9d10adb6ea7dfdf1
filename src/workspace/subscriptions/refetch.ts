import type { Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { CacheEntry } from '../catalog/cache-entry.ts'
import { type CachedList, type Catalog, wouldStart } from '../catalog/catalog.ts'
import type { ListKind } from '../catalog/list-kinds.ts'
import type { MemberList } from '../catalog/member-list.ts'

/** Fetches lists again after a change notification, as soon as their rate limit allows. */
export interface Refetcher {
  /** Fetches in the name of the caller, unless `signal` is aborted by then. */
  schedule(cached: CachedList, kind: ListKind, caller: Caller, signal: Signal): void
  close(): void
}

interface PendingRefetch {
  readonly callers: Map<Signal, Caller>
  timer: NodeJS.Timeout | undefined
}

export const createRefetcher = (catalog: Catalog): Refetcher => {
  const pending = new Map<CacheEntry<MemberList>, PendingRefetch>()

  const fetch = (cached: CachedList, kind: ListKind): void => {
    const { entry } = cached
    const refetch = pending.get(entry)
    pending.delete(entry)
    const active = [...(refetch?.callers ?? [])].find(([signal]) => !signal.reason)
    if (!active || !entry.isStale || !cached.member.isUp()) return
    // A process that does not run changes no list: the next call starts one, whose lists are fetched then.
    if (entry.value === undefined || !wouldStart(cached.member, active[1]))
      void catalog.refresh(cached, active[1], kind)
  }

  /** A fetch that is pending may have started before the change: another one must follow it. */
  const fetchSoon = (cached: CachedList, kind: ListKind, refetch: PendingRefetch): void => {
    const { entry } = cached
    if (entry.pendingFetch)
      return void entry.pendingFetch.then(() => pending.get(entry) === refetch && fetchSoon(cached, kind, refetch))
    const waitMs = entry.nextFetchAt - Date.now()
    if (waitMs <= 0) return fetch(cached, kind)
    refetch.timer = setTimeout(() => fetch(cached, kind), waitMs).unref()
  }

  return {
    schedule: (cached, kind, caller, signal) => {
      const known = pending.get(cached.entry)
      if (known) return void known.callers.set(signal, caller)
      const refetch: PendingRefetch = { callers: new Map([[signal, caller]]), timer: undefined }
      pending.set(cached.entry, refetch)
      fetchSoon(cached, kind, refetch)
    },
    close: () => {
      for (const { timer } of pending.values()) clearTimeout(timer)
      pending.clear()
    },
  }
}
