import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isModern } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { openCursor } from './cursor.ts'
import { remainingTtl } from './freshness.ts'
import { listKindOf } from './kinds.ts'
import type { ListSnapshots } from './list-snapshots.ts'
import type { MergedLists, MergedView } from './merged-lists.ts'
import { pageOf } from './pages.ts'
import type { ListKind, MergedList } from './view.ts'

interface Options {
  readonly shelves: MergedLists
  readonly snapshots: ListSnapshots
  readonly isStrict: boolean // a list fails when a server is missing from it
  readonly log: Log
}

/** Answers the four list methods. */
export const createLists = ({ shelves, snapshots, isStrict, log }: Options): Dispatch => {
  const answer = (exchange: Exchange, kind: ListKind, view: MergedView): void => {
    const result =
      isStrict && view.list.missingServers.length > 0
        ? incomplete(view.list.missingServers)
        : page(exchange, kind, view)
    if (exchange.signal.reason) return
    if ('code' in result) return void deliver(exchange.sink, { kind: 'failure', error: result })
    if (result.has('nextCursor')) snapshots.keep(exchange.caller, kind, view)
    void deliver(exchange.sink, { kind: 'result', result })
  }

  const fail = (exchange: Exchange, error: unknown): void => {
    if (!(error instanceof RpcFailure)) log.error({ err: error }, 'a list failed inside the gateway')
    const told = error instanceof RpcFailure ? error.error : rpcError('internal')
    void deliver(exchange.sink, { kind: 'failure', error: told })
  }

  /** A list that has become another since its first page goes on as it was then. */
  const begunBy = ({ caller, params }: Exchange, kind: ListKind): MergedView | undefined => {
    const place = openCursor(params.get('cursor')?.asString() ?? '')
    return place && snapshots.find(caller, kind, place.hash)
  }

  return exchange => {
    const kind = listKindOf(exchange.method)
    if (!kind || exchange.kind !== 'request') return
    const view = begunBy(exchange, kind) ?? shelves.view(exchange.caller, kind)
    if (!(view instanceof Promise)) return answer(exchange, kind, view)
    view.then(made => answer(exchange, kind, made)).catch((error: unknown) => fail(exchange, error))
  }
}

const incomplete = (missing: readonly string[]): RpcError =>
  rpcError(
    'internal',
    `This list is incomplete and this workspace shows none that is: no list from ${missing.join(', ')}`,
    Json.of({ reason: 'incomplete', upstream: missing[0], missing }),
  )

const page = ({ params, caller }: Exchange, kind: ListKind, view: MergedView): Json | RpcError => {
  const at = placeIn(params.get('cursor'), kind, view.list)
  if (typeof at !== 'number') return at
  const result = pageOf(kind, view.list, at)
  if (!result) return rpcError('invalidParams', STALE)
  const told = withMissing(result, view.list.missingServers)
  if (!isModern(caller.revision)) return told
  return told
    .with('resultType', 'complete')
    .with('ttlMs', remainingTtl(view.promisedUntil, view.list.missingServers.length > 0, Date.now()))
    .with('cacheScope', view.isPublic ? 'public' : 'private')
}

const STALE = 'Invalid cursor: the list has changed, or the gateway was started again, since; list again without one'

const placeIn = (cursor: Json | undefined, kind: ListKind, { hash: epoch }: MergedList): number | RpcError => {
  if (!cursor) return 0
  const text = cursor.asString()
  if (text === undefined) return rpcError('invalidParams', '`cursor` must be a string')
  const place = openCursor(text)
  return place && place.kind === kind && place.hash === epoch ? place.page : rpcError('invalidParams', STALE)
}

const withMissing = (result: Json, missing: readonly string[]): Json =>
  missing.length > 0 ? result.with('_meta', Json.of({ [META.unavailable]: missing })) : result
