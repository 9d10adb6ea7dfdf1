import type { Caller } from '../../protocol/exchange.ts'
import type { ListKind } from './list-kinds.ts'
import { policyKey, type ShownView } from './merged-lists.ts'
import { callerKey } from './provenance.ts'

const KEEP_MS = 60_000 // after the last page was requested
const MOST_EACH = 8
const MOST_BYTES_EACH = 32 * 1024 * 1024
const MOST = 256
const MOST_BYTES = 128 * 1024 * 1024

interface KeptView {
  readonly principal: string
  readonly view: ShownView
  readonly until: number
}

/** Lists that clients have begun to page through, as they were at the first page. */
export interface ListSnapshots {
  /** Equal for workspaces that show the same servers in the same way: only those may share snapshots. */
  readonly rulesKey: string
  keep(caller: Caller, kind: ListKind, view: ShownView): void
  find(caller: Caller, kind: ListKind, hash: string): ShownView | undefined
}

/** Keeps snapshots for a minute, within limits for each principal and in all; the oldest are evicted first. */
export const createListSnapshots = (rulesKey: string): ListSnapshots => {
  const snapshots = new Map<string, KeptView>() // the latest used last
  let timer: NodeJS.Timeout | undefined

  const keyOf = (caller: Caller, kind: ListKind, hash: string): string =>
    JSON.stringify([callerKey(caller), caller.revision, policyKey(caller.policy), kind, hash])

  const evict = (isMeant: (kept: KeptView) => boolean, most: number, mostBytes: number): void => {
    const meant = [...snapshots].filter(([, kept]) => isMeant(kept))
    let [count, bytes] = [meant.length, meant.reduce((sum, [, { view }]) => sum + view.list.bytes, 0)]
    for (const [key, { view }] of meant) {
      if (count <= most && bytes <= mostBytes) return
      snapshots.delete(key)
      count--
      bytes -= view.list.bytes
    }
  }

  const expire = (): void => {
    timer = undefined
    const now = Date.now()
    for (const [key, { until }] of snapshots) if (until <= now) snapshots.delete(key)
    if (snapshots.size > 0) timer = setTimeout(expire, KEEP_MS).unref()
  }

  const put = (key: string, principal: string, view: ShownView): void => {
    snapshots.delete(key)
    snapshots.set(key, { principal, view, until: Date.now() + KEEP_MS })
    if (!timer) expire()
  }

  return {
    rulesKey,
    keep: (caller, kind, view) => {
      const principal = callerKey(caller) ?? ''
      put(keyOf(caller, kind, view.list.hash), principal, view)
      evict(kept => kept.principal === principal, MOST_EACH, MOST_BYTES_EACH)
      evict(() => true, MOST, MOST_BYTES)
    },
    find: (caller, kind, hash) => {
      const key = keyOf(caller, kind, hash)
      const kept = snapshots.get(key)
      if (!kept || kept.until <= Date.now()) return undefined
      put(key, kept.principal, kept.view)
      return kept.view
    },
  }
}
