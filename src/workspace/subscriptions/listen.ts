import { deliver, failWith } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { CacheChange } from '../catalog/catalog.ts'
import { settledWithin } from '../catalog/merged-lists.ts'
import type { Member } from '../member.ts'
import type { LocateResource } from '../routing/route-resources.ts'
import { ClientSubscription, type SubscriptionContext, type WatchedUris } from './listener.ts'

interface Options extends SubscriptionContext {
  readonly members: readonly Member[]
  readonly locate: LocateResource
}

/** Everybody who listens to a workspace. */
export interface Subscriptions {
  readonly dispatch: Dispatch
  news(news: CacheChange): void
  back(server: string): void
  close(): void
}

export const createSubscriptions = (options: Options): Subscriptions => {
  const { members, catalog, lists: shelves, locate } = options
  const listeners = new Set<ClientSubscription>()
  const attended = new Map<string, number>() // sessions that listen, and how often
  let isClosed = false

  /** What a session has for itself goes with the last that listens for it. */
  const attend = (session: string | undefined): (() => void) => {
    if (session === undefined) return () => {}
    attended.set(session, (attended.get(session) ?? 0) + 1)
    return () => {
      const left = (attended.get(session) ?? 1) - 1
      if (left > 0) return void attended.set(session, left)
      attended.delete(session)
      catalog.endSession(session)
    }
  }

  const listen = async (exchange: Exchange, uris: readonly string[]): Promise<void> => {
    const { caller, signal } = exchange
    const rules = shelves.rulesOf(caller)
    signal.onAbort(attend(caller.session))
    const watched = await locateAll(locate, caller, uris, catalog.times.listTimeoutMs)
    if (signal.reason || isClosed) return
    const heard = members.filter(({ server }) => rules.allowsServer(server))
    const listener = new ClientSubscription(exchange, heard, watched, options)
    listeners.add(listener)
    signal.onAbort(() => {
      listeners.delete(listener)
      listener.end(true)
    })
    await listener.begin()
  }

  return {
    dispatch: exchange => {
      const uris = urisIn(exchange)
      if (uris) listen(exchange, uris).catch((thrown: unknown) => failWith(exchange, thrown))
      else void deliver(exchange.sink, { kind: 'failure', error: MALFORMED })
    },
    news: news => {
      for (const listener of listeners) listener.news(news)
    },
    back: server => {
      for (const listener of listeners) listener.back(server)
    },
    close: () => {
      isClosed = true
      for (const listener of listeners) listener.end(false)
      listeners.clear()
    },
  }
}

const MALFORMED = rpcError(
  'invalidParams',
  '`notifications` must be an object, and its `resourceSubscriptions` a list of strings',
)

/** The URIs somebody wants to hear of; undefined if that cannot be read. */
const urisIn = ({ params }: Exchange): readonly string[] | undefined => {
  const notifications = params.get('notifications')
  const list = notifications?.get('resourceSubscriptions')
  if (!notifications?.isObject || (list && list.kind !== 'array')) return undefined
  const uris = (list?.elements() ?? []).map(uri => uri.asString())
  return uris.every(uri => uri !== undefined) ? [...new Set(uris)] : undefined
}

/** Finds the members that have the URIs; what nobody has, nobody is asked to tell of. */
const locateAll = async (
  locate: LocateResource,
  caller: Caller,
  uris: readonly string[],
  ms: number,
): Promise<WatchedUris> => {
  const watched = new Map<Member, Map<string, string>>()
  const find = async (asked: string): Promise<void> => {
    const place = await locate(caller, asked)
    if (!place) return
    const mine = watched.get(place.member) ?? new Map<string, string>()
    watched.set(place.member, mine.set(place.uri, asked))
  }
  await settledWithin(uris.map(find), ms)
  return watched
}
