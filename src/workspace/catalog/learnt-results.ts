import { convertResult } from '../../eras/convert.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { LearntServer } from './learnt-server.ts'
import { LIST_KINDS, listKindOf } from './list-kinds.ts'
import { PAGE_BYTES, PAGE_ITEMS } from './pages.ts'

export const DISCOVER = 'server/discover'

/**
 * What a server would answer to a list request or to `server/discover`, from what the gateway has learnt of it; undefined
 * if that is not known exactly, or if the list is longer than one page: the cursor of a further page would be the server's.
 */
export const learntResult = (learnt: LearntServer, method: string, revision: Revision): Json | undefined => {
  const native = method === DISCOVER ? learnt.discovery : learntPage(learnt, method)
  if (!native) return undefined
  const named = isModern(revision) && !isModern(learnt.revision) ? withServerInfo(native, learnt) : native
  const result = learnt.revision === revision ? named : convertResult(method, named, learnt.revision, revision)
  return result.has('ttlMs') ? result.with('ttlMs', 0) : result // the caller's own answer may differ
}

const learntPage = ({ discovery, lists }: LearntServer, method: string): Json | undefined => {
  const kind = listKindOf(method)
  const list = kind && lists[kind]
  if (!kind || !list?.rest || !discovery.at('capabilities', LIST_KINDS[kind].capability)) return undefined
  const natives = list.items.map(({ native }) => native)
  const bytes = natives.reduce((sum, native) => sum + native.size, 0)
  if (natives.length >= PAGE_ITEMS || bytes >= PAGE_BYTES) return undefined
  return list.rest.with(LIST_KINDS[kind].member, Json.of(natives))
}

/** Modern results name their server, which a legacy server does once, in the handshake. */
const withServerInfo = (result: Json, { discovery }: LearntServer): Json => {
  const info = discovery.at('_meta', META.serverInfo)
  const meta = result.get('_meta') ?? Json.empty
  return !info || meta.has(META.serverInfo) ? result : result.with('_meta', meta.with(META.serverInfo, info))
}

/** Whether two results have the same items in the same order; true for results that are no lists. */
export const haveSameItems = (method: string, a: Json, b: Json): boolean => {
  const kind = listKindOf(method)
  if (!kind) return true
  const [some, others] = [a, b].map(result => result.get(LIST_KINDS[kind].member)?.elements() ?? []) as [Json[], Json[]]
  return some.length === others.length && some.every((item, at) => item.toBytes().equals(others[at]?.toBytes() ?? NONE))
}

const NONE = Buffer.alloc(0)
