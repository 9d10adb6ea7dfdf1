import { deliver, failWith } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { CacheChange, Catalog } from '../catalog/catalog.ts'
import type { Member } from '../member.ts'
import type { LocateResource } from '../routing/route-resources.ts'
import { withBoundedUris } from './bounded-uris.ts'
import { ClientSubscription, type SubscriptionContext, type WatchedUris } from './client-subscription.ts'

interface SubscriptionsOptions extends SubscriptionContext {
  readonly members: readonly Member[]
  readonly locate: LocateResource
}

/** All subscriptions of a workspace's clients. */
export interface WorkspaceSubscriptions {
  readonly dispatch: Dispatch // answers `subscriptions/listen`
  onCacheChange(change: CacheChange): void
  onRecovered(server: string): void
  /** The login of a principal at a server came or went; undefined: of every principal. */
  onLoginChanged(server: string, principal: string | undefined): void
  /** The tools of a server have changed, and the server has not announced it. */
  onToolsChanged(server: string): void
  close(): void
}

export const createWorkspaceSubscriptions = (options: SubscriptionsOptions): WorkspaceSubscriptions => {
  const { members, catalog, lists, locate } = options
  const subscriptions = new Set<ClientSubscription>()
  const perSession = new Map<string, number>() // open subscriptions
  let isClosed = false

  /** The lists of a session are dropped with its last subscription. */
  const countSession = (session: string | undefined): (() => void) => {
    if (session === undefined) return () => {}
    perSession.set(session, (perSession.get(session) ?? 0) + 1)
    return () => {
      const left = (perSession.get(session) ?? 1) - 1
      if (left > 0) return void perSession.set(session, left)
      perSession.delete(session)
      catalog.endSession(session)
    }
  }

  const listen = async (exchange: Exchange, uris: readonly string[]): Promise<void> => {
    const { caller, signal } = exchange
    const rules = lists.rulesOf(caller)
    signal.onAbort(countSession(caller.session))
    const watched = await locateAll(catalog, locate, caller, uris)
    if (signal.reason || isClosed) return
    const visible = members.filter(({ server }) => rules.allowsServer(server))
    const subscription = new ClientSubscription(exchange, visible, watched, options)
    subscriptions.add(subscription)
    signal.onAbort(() => {
      subscriptions.delete(subscription)
      subscription.end(true)
    })
    await subscription.begin()
  }

  return {
    dispatch: given => {
      const exchange = withBoundedUris(given)
      const uris = urisIn(exchange)
      if (uris) listen(exchange, uris).catch((thrown: unknown) => failWith(exchange, thrown))
      else void deliver(exchange.sink, { kind: 'failure', error: INVALID })
    },
    onCacheChange: change => {
      for (const subscription of subscriptions) subscription.onCacheChange(change)
    },
    onRecovered: server => {
      for (const subscription of subscriptions) subscription.onRecovered(server)
    },
    onLoginChanged: (server, principal) => {
      for (const subscription of subscriptions)
        if (principal === undefined || subscription.principal === principal) subscription.onRecovered(server)
    },
    onToolsChanged: server => {
      for (const subscription of subscriptions) subscription.onListChanged(server, 'tools')
    },
    close: () => {
      isClosed = true
      for (const subscription of subscriptions) subscription.end(false)
      subscriptions.clear()
    },
  }
}

const INVALID = rpcError(
  'invalidParams',
  '`notifications` must be an object, and its `resourceSubscriptions` a list of strings',
)

/** The URIs to subscribe to; undefined if the params are invalid. */
const urisIn = ({ params }: Exchange): readonly string[] | undefined => {
  const notifications = params.get('notifications')
  const list = notifications?.get('resourceSubscriptions')
  if (!notifications?.isObject || (list && list.kind !== 'array')) return undefined
  const uris = (list?.elements() ?? []).map(uri => uri.asString())
  return uris.every(uri => uri !== undefined) ? [...new Set(uris)] : undefined
}

/** Finds the members that have the URIs; a URI that no member has is left out. */
const locateAll = async (
  catalog: Catalog,
  locate: LocateResource,
  caller: Caller,
  uris: readonly string[],
): Promise<WatchedUris> => {
  const watched = new Map<Member, Map<string, string>>()
  const find = async (asked: string): Promise<void> => {
    const location = await locate(caller, asked)
    if (!location) return
    const ofMember = watched.get(location.member) ?? new Map<string, string>()
    watched.set(location.member, ofMember.set(location.uri, asked))
  }
  await catalog.settle(uris.map(find))
  return watched
}
