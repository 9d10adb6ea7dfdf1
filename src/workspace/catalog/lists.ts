import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { isModern } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { ShownLists } from '../budget/shown-lists.ts'
import { rejectThrown } from '../routing/send.ts'
import type { OnWait } from './catalog.ts'
import { remainingTtl } from './freshness.ts'
import { LIST_KINDS, type ListKind, listKindOf } from './list-kinds.ts'
import type { ListSnapshots } from './list-snapshots.ts'
import type { ShownList } from './merged-list.ts'
import type { ShownView } from './merged-lists.ts'
import type { ListPages } from './pages.ts'

interface ListsOptions {
  readonly lists: ShownLists
  readonly snapshots: ListSnapshots
  readonly pages: ListPages
  readonly isStrict: boolean // a list without all its servers is an error
  readonly log: Log
}

/** Answers the four list methods. */
export const createLists = ({ lists, snapshots, pages, isStrict, log }: ListsOptions): Dispatch => {
  const answer = (exchange: Exchange, kind: ListKind, view: ShownView): void => {
    const { missingServers } = view.list
    const result =
      isStrict && missingServers.length > 0 ? incomplete(missingServers) : page(exchange, kind, view, pages)
    if (exchange.signal.reason) return
    if ('code' in result) return void deliver(exchange.sink, { kind: 'failure', error: result })
    if (result.has('nextCursor')) snapshots.keep(exchange.caller, kind, view)
    void deliver(exchange.sink, { kind: 'result', result })
  }

  /** A client that pages through a list gets all pages of the list as it was at the first page. */
  const snapshotFor = ({ caller, params }: Exchange, kind: ListKind): ShownView | undefined => {
    const cursor = pages.openCursor(params.get('cursor')?.asString() ?? '')
    return cursor && snapshots.find(caller, kind, cursor.hash)
  }

  const viewFor = (exchange: Exchange, kind: ListKind): ShownView | Promise<ShownView> => {
    const isWhole = exchange.params.at('_meta', META.allTools)?.asBoolean() === true
    return lists.view(exchange.caller, kind, isWhole, progressOf(exchange))
  }

  return exchange => {
    const kind = listKindOf(exchange.method)
    if (!kind || exchange.kind !== 'request') return
    const view = snapshotFor(exchange, kind) ?? viewFor(exchange, kind)
    if (!(view instanceof Promise)) return answer(exchange, kind, view)
    view.then(made => answer(exchange, kind, made)).catch((error: unknown) => rejectThrown(exchange, error, log))
  }
}

/** Reports the servers a list waits for to a client that asked for progress. */
const progressOf = ({ params, sink, signal }: Exchange): OnWait | undefined => {
  const progressToken = params.at('_meta', 'progressToken')
  if (!progressToken) return undefined
  return ({ waiting, total }) => {
    if (signal.reason) return
    const message = `Waiting for ${waiting.map(server => JSON.stringify(server)).join(', ')} to start`
    const progress = Json.of({ progressToken, progress: total - waiting.length, total, message })
    void deliver(sink, { kind: 'notice', method: NOTIFICATIONS.progress, params: progress })
  }
}

const incomplete = (missing: readonly string[]): RpcError =>
  rpcError(
    'internal',
    `The list is incomplete: no list from ${missing.join(', ')}. This workspace is strict and shows only complete lists`,
    Json.of({ reason: 'incomplete', upstream: missing[0], missing }),
  )

const page = (
  { params, caller }: Exchange,
  kind: ListKind,
  { list, promisedUntil, isPublic }: ShownView,
  pages: ListPages,
): Json | RpcError => {
  const { missingServers } = list
  const at = pageAt(params.get('cursor'), kind, list, pages)
  if (typeof at !== 'number') return at
  const result = pages.pageOf(kind, list, at)
  if (!result) return rpcError('invalidParams', INVALID_CURSOR)
  const isIncomplete = missingServers.length > 0
  const wantsServers = params.at('_meta', META.servers)?.asBoolean() === true
  const leftOut = params.at('_meta', META.allTools)?.asBoolean() === false ? list.leftOut : undefined
  const meta = {
    ...(isIncomplete && { [META.unavailable]: missingServers }),
    ...(wantsServers && { [META.servers]: serversOf(result, kind, list) }),
    ...(leftOut !== undefined && { [META.allTools]: leftOut }),
  }
  const marked = Object.keys(meta).length > 0 ? result.with('_meta', Json.of(meta)) : result
  if (!isModern(caller.revision)) return marked
  return marked
    .with('resultType', 'complete')
    .with('ttlMs', remainingTtl(promisedUntil, isIncomplete, Date.now()))
    .with('cacheScope', isPublic ? 'public' : 'private')
}

/** The server of each item of a page: names do not always say it, and URIs never do. */
const serversOf = (result: Json, kind: ListKind, { items }: ShownList): string[] => {
  const { member, key } = LIST_KINDS[kind]
  const servers = new Map(items.map(({ exposed, member }) => [exposed, member?.server ?? '']))
  const shown = result.get(member)?.elements() ?? []
  return shown.map(item => servers.get(item.get(key)?.asString() ?? '') ?? '')
}

const INVALID_CURSOR =
  'Invalid cursor: the list has changed since, or the cursor is of another gateway; list again without a cursor'

const pageAt = (cursor: Json | undefined, kind: ListKind, { hash }: ShownList, pages: ListPages): number | RpcError => {
  if (!cursor) return 0
  const text = cursor.asString()
  if (text === undefined) return rpcError('invalidParams', '`cursor` must be a string')
  const opened = pages.openCursor(text)
  const isValid = opened && opened.kind === kind && opened.hash === hash
  return isValid ? opened.page : rpcError('invalidParams', INVALID_CURSOR)
}
