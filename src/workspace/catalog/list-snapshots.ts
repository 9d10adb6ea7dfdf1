import type { Caller } from '../../protocol/exchange.ts'
import { type MergedView, policyKey } from './merged-lists.ts'
import { callerKey } from './provenance.ts'
import type { ListKind } from './view.ts'

const KEEP_MS = 60_000 // since the last page was asked for
const MOST_EACH = 8
const MOST_BYTES_EACH = 32 * 1024 * 1024
const MOST = 256
const MOST_BYTES = 128 * 1024 * 1024

interface Kept {
  readonly principal: string
  readonly view: MergedView
  readonly until: number
}

/** Lists that clients have begun to page through, as they were at the first page. */
export interface ListSnapshots {
  /** Equal for workspaces that show the same servers in the same way: only those may share snapshots. */
  readonly rulesKey: string
  keep(caller: Caller, kind: ListKind, view: MergedView): void
  find(caller: Caller, kind: ListKind, epoch: string): MergedView | undefined
}

/** Keeps begun lists for a minute, so many and so much of each principal; the principal's own oldest leave first. */
export const createListSnapshots = (rules: string): ListSnapshots => {
  const snapshots = new Map<string, Kept>() // the one used last is the last
  let timer: NodeJS.Timeout | undefined

  const keyOf = (caller: Caller, kind: ListKind, epoch: string): string =>
    JSON.stringify([callerKey(caller), caller.revision, policyKey(caller.policy), kind, epoch])

  /** Removes the oldest until what is left of them, by principal or of all, is within its bounds. */
  const trim = (isMeant: (kept: Kept) => boolean, most: number, mostBytes: number): void => {
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
    if (snapshots.size === 0) return
    timer = setTimeout(expire, KEEP_MS)
    timer.unref()
  }

  const put = (key: string, principal: string, view: MergedView): void => {
    snapshots.delete(key)
    snapshots.set(key, { principal, view, until: Date.now() + KEEP_MS })
    if (!timer) expire()
  }

  return {
    rulesKey: rules,
    keep: (caller, kind, view) => {
      const principal = callerKey(caller) ?? ''
      put(keyOf(caller, kind, view.list.hash), principal, view)
      trim(kept => kept.principal === principal, MOST_EACH, MOST_BYTES_EACH)
      trim(() => true, MOST, MOST_BYTES)
    },
    find: (caller, kind, epoch) => {
      const key = keyOf(caller, kind, epoch)
      const kept = snapshots.get(key)
      if (!kept || kept.until <= Date.now()) return undefined
      put(key, kept.principal, kept.view)
      return kept.view
    },
  }
}
