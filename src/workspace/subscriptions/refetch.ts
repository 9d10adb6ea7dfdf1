import type { Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { CacheEntry } from '../catalog/cache-entry.ts'
import type { CachedList, Catalog } from '../catalog/catalog.ts'
import type { MemberList } from '../catalog/member-list.ts'
import type { ListKind } from '../catalog/view.ts'

/** Asks again for lists that were said to have changed: soon, but not more often than a list may be asked for. */
export interface Refetcher {
  /** `signal` says how long there is somebody in whose name to ask. */
  schedule(held: CachedList, kind: ListKind, caller: Caller, signal: Signal): void
  close(): void
}

interface Pending {
  readonly callers: Map<Signal, Caller>
  timer: NodeJS.Timeout | undefined
}

export const createRefetcher = (catalog: Catalog): Refetcher => {
  const pending = new Map<CacheEntry<MemberList>, Pending>()

  const ask = (held: CachedList, kind: ListKind): void => {
    const { entry: holding } = held
    const waiting = pending.get(holding)
    pending.delete(holding)
    const live = [...(waiting?.callers ?? [])].find(([signal]) => !signal.reason)
    if (live && holding.isStale && held.member.isUp()) void catalog.refresh(held, live[1], kind)
  }

  /** What is under way may have been asked before the change. */
  const soon = (held: CachedList, kind: ListKind, waiting: Pending): void => {
    const { entry: holding } = held
    const flight = holding.pendingFetch
    if (flight) return void flight.then(() => pending.get(holding) === waiting && soon(held, kind, waiting))
    const wait = holding.nextFetchAt - Date.now()
    if (wait <= 0) return ask(held, kind)
    waiting.timer = setTimeout(() => ask(held, kind), wait)
    waiting.timer.unref()
  }

  return {
    schedule: (held, kind, caller, signal) => {
      const waiting = pending.get(held.entry)
      if (waiting) return void waiting.callers.set(signal, caller)
      const created: Pending = { callers: new Map([[signal, caller]]), timer: undefined }
      pending.set(held.entry, created)
      soon(held, kind, created)
    },
    close: () => {
      for (const { timer } of pending.values()) clearTimeout(timer)
      pending.clear()
    },
  }
}
