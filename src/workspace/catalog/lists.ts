import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isModern } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { openPlace } from './cursor.ts'
import { remaining } from './freshness.ts'
import { kindOf } from './kinds.ts'
import type { ListSnapshots } from './list-snapshots.ts'
import type { MergedLists, View } from './merged-lists.ts'
import { pageOf } from './pages.ts'
import type { Kind, MergedList } from './view.ts'

interface Options {
  readonly shelves: MergedLists
  readonly snapshots: ListSnapshots
  readonly isStrict: boolean // a list fails when a server is missing from it
  readonly log: Log
}

/** Answers the four list methods. */
export const createLists = ({ shelves, snapshots, isStrict, log }: Options): Dispatch => {
  const answer = (exchange: Exchange, kind: Kind, view: View): void => {
    const result =
      isStrict && view.shelf.missing.length > 0 ? incomplete(view.shelf.missing) : page(exchange, kind, view)
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
  const begunBy = ({ caller, params }: Exchange, kind: Kind): View | undefined => {
    const place = openPlace(params.get('cursor')?.asString() ?? '')
    return place && snapshots.find(caller, kind, place.epoch)
  }

  return exchange => {
    const kind = kindOf(exchange.method)
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

const page = ({ params, caller }: Exchange, kind: Kind, view: View): Json | RpcError => {
  const at = placeIn(params.get('cursor'), kind, view.shelf)
  if (typeof at !== 'number') return at
  const result = pageOf(kind, view.shelf, at)
  if (!result) return rpcError('invalidParams', STALE)
  const told = withMissing(result, view.shelf.missing)
  if (!isModern(caller.revision)) return told
  return told
    .with('resultType', 'complete')
    .with('ttlMs', remaining(view.promisedUntil, view.shelf.missing.length > 0, Date.now()))
    .with('cacheScope', view.isPublic ? 'public' : 'private')
}

const STALE = 'Invalid cursor: the list has changed, or the gateway was started again, since; list again without one'

const placeIn = (cursor: Json | undefined, kind: Kind, { epoch }: MergedList): number | RpcError => {
  if (!cursor) return 0
  const text = cursor.asString()
  if (text === undefined) return rpcError('invalidParams', '`cursor` must be a string')
  const place = openPlace(text)
  return place && place.kind === kind && place.epoch === epoch ? place.page : rpcError('invalidParams', STALE)
}

const withMissing = (result: Json, missing: readonly string[]): Json =>
  missing.length > 0 ? result.with('_meta', Json.of({ [META.unavailable]: missing })) : result
