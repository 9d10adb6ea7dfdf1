import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { CHANGING_LISTS, type ChangingList, LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { isModern } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { cacheOwnerOf } from '../catalog/cache-scopes.ts'
import type { CacheChange, Catalog } from '../catalog/catalog.ts'
import { type MergedLists, settledWithin } from '../catalog/merged-lists.ts'
import type { ListKind } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { withServerName } from '../routing/member-questions.ts'
import { aliasesOf } from '../routing/route-frames.ts'
import { rewriteUris } from '../routing/uris.ts'
import { ListChangedNotifier } from './list-changed.ts'
import type { Refetcher } from './refetch.ts'
import { UpstreamSubscription } from './upstream-subscription.ts'

const UPDATED = 'notifications/resources/updated'

const RECOVERING_MS = 5000

/** The lists each announcement is about. */
const LISTS: Readonly<Record<ChangingList, readonly ListKind[]>> = {
  tools: ['tools'],
  prompts: ['prompts'],
  resources: ['resources', 'templates'],
}

const keyOf = ({ server }: Member, list: ChangingList): string => `${server} ${list}`

/** What a listener needs of its workspace. */
export interface SubscriptionContext {
  readonly catalog: Catalog
  readonly lists: MergedLists
  readonly refetcher: Refetcher
  readonly isAggregate: boolean
}

/** Which URIs a listener wants to hear of at a member: what they are called there, and what the listener calls them. */
export type WatchedUris = ReadonlyMap<Member, ReadonlyMap<string, string>>

/** One `subscriptions/listen` of a caller, or the standing exchange of its session, fed by every member. */
export class ClientSubscription {
  readonly #exchange: Exchange
  readonly #around: SubscriptionContext
  readonly #wanted: ReadonlySet<ChangingList>
  readonly #watched: WatchedUris
  readonly #accepted = new Set<string>() // URIs the listener was promised to hear of
  readonly #heard = new Map<UpstreamSubscription, readonly ChangingList[]>()
  readonly #lapsed = new Set<string>() // lists of members that may have changed while nobody listened
  readonly #recoveries = new Map<string, number>() // when a member's list was last told of for that
  readonly #teller: ListChangedNotifier
  readonly #feeds: readonly UpstreamSubscription[]
  #isPromised = false
  #isOver = false

  constructor(exchange: Exchange, members: readonly Member[], watched: WatchedUris, around: SubscriptionContext) {
    this.#exchange = exchange
    this.#around = around
    this.#watched = watched
    const notifications = exchange.params.get('notifications') ?? Json.empty
    this.#wanted = new Set(
      CHANGING_LISTS.filter(list => notifications.get(LIST_CHANGES[list].flag)?.asBoolean() === true),
    )
    this.#feeds = members.flatMap(member => this.#feedFor(member, notifications) ?? [])
    this.#teller = new ListChangedNotifier({
      sink: exchange.sink,
      wanted: this.#wanted,
      coalesceMs: around.catalog.times.coalesceMs,
      stateOf: list => LISTS[list].map(kind => around.lists.cached(exchange.caller, kind)?.hash ?? '').join(),
    })
  }

  /** Listens to everybody, and says so as soon as all have answered or their time is up. */
  async begin(): Promise<void> {
    for (const feed of this.#feeds) feed.start()
    const { catalog } = this.#around
    const awaited = this.#feeds.filter(({ member }) =>
      catalog.slowServers.isWorthWaiting(member, this.#exchange.caller),
    )
    await settledWithin(
      awaited.map(feed => feed.settled),
      catalog.times.listTimeoutMs,
    )
    if (this.#isOver) return
    this.#isPromised = true
    const uris = this.#exchange.params.at('notifications', 'resourceSubscriptions')
    const flags = [...this.#wanted].map(list => [LIST_CHANGES[list].flag, true] as const)
    const notifications = { ...Object.fromEntries(flags), ...(uris && { resourceSubscriptions: [...this.#accepted] }) }
    void deliver(this.#exchange.sink, {
      kind: 'notice',
      method: NOTIFICATIONS.acknowledged,
      params: Json.of({ notifications }),
    })
  }

  /** Something held is another; it is told if what this listener is shown became another by that. */
  news({ kind, scope: concern }: CacheChange): void {
    const { caller } = this.#exchange
    if (concern.kind === 'owner' && concern.owner !== cacheOwnerOf(caller)) return
    if (concern.kind === 'session' && concern.session !== caller.session) return
    for (const list of CHANGING_LISTS) if (LISTS[list].includes(kind)) this.#teller.schedule(list, false)
  }

  /** A member was away. Not every way of listening says when it listens again, so its lists are told of here. */
  back(server: string): void {
    for (const feed of this.#feeds) {
      if (feed.member.server !== server) continue
      feed.wake()
      for (const list of this.#wanted)
        if (LISTS[list].some(kind => this.#isShown(feed.member, kind))) this.#recovered(feed.member, list)
        else this.#ask(feed.member, list)
    }
  }

  /** Whether the listener may have been shown something of that list, or missed it. */
  #isShown(member: Member, kind: ListKind): boolean {
    const { value, wasOmitted: wasMissed } = this.#around.catalog.cachedList(member, this.#exchange.caller, kind).entry
    return value ? value.items.length > 0 : wasMissed
  }

  /** Says goodbye, unless the caller has left. */
  end(isLeft: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#teller.end()
    for (const feed of this.#feeds) feed.end(this.#exchange.signal.reason ?? { kind: 'closing' })
    if (!isLeft) void deliver(this.#exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
  }

  #feedFor(member: Member, notifications: Json): UpstreamSubscription | undefined {
    const uris = this.#watched.get(member)
    if (this.#wanted.size === 0 && !uris) return undefined
    const asked = uris
      ? notifications.with('resourceSubscriptions', [...uris.keys()])
      : notifications.without('resourceSubscriptions')
    const exchange = { ...this.#exchange, params: this.#exchange.params.with('notifications', asked) }
    const feed: UpstreamSubscription = new UpstreamSubscription(member, exchange, {
      listening: (honoured, wasLost) => this.#listening(feed, honoured, wasLost),
      lost: () => this.#count(feed, []),
      heard: frame => this.#hear(member, frame),
    })
    return feed
  }

  #listening(feed: UpstreamSubscription, params: Json, wasLost: boolean): void {
    const { member } = feed
    const honoured = params.get('notifications') ?? Json.empty
    const lists = CHANGING_LISTS.filter(list => honoured.get(LIST_CHANGES[list].flag)?.asBoolean() === true)
    const isNew = !this.#heard.has(feed)
    if (isNew) for (const list of lists) if (this.#wasUnheard(member, list)) this.#lapsed.add(keyOf(member, list))
    this.#count(feed, lists)
    for (const uri of honoured.get('resourceSubscriptions')?.elements() ?? []) {
      const asked = this.#watched.get(member)?.get(uri.asString() ?? '')
      if (asked !== undefined && !this.#isPromised) this.#accepted.add(asked)
    }
    for (const list of lists) {
      if (wasLost) this.#recovered(member, list)
      else if (isNew && this.#hasLapsed(member, list)) this.#resume(member, list)
    }
  }

  #hasLapsed(member: Member, list: ChangingList): boolean {
    const { catalog } = this.#around
    return LISTS[list].some(kind => catalog.cachedList(member, this.#exchange.caller, kind).entry.hasLostListeners)
  }

  /** What is held was asked for while nobody listened: whether it changed since, nobody knows. */
  #wasUnheard(member: Member, list: ChangingList): boolean {
    const { catalog } = this.#around
    return LISTS[list].some(kind => {
      const { entry: holding } = catalog.cachedList(member, this.#exchange.caller, kind)
      return holding.value !== undefined && holding.listenerCount === 0
    })
  }

  #resume(member: Member, list: ChangingList): void {
    this.#lapsed.add(keyOf(member, list))
    this.#ask(member, list)
  }

  #count(feed: UpstreamSubscription, lists: readonly ChangingList[]): void {
    const { catalog } = this.#around
    const { caller } = this.#exchange
    for (const list of this.#heard.get(feed) ?? [])
      for (const kind of LISTS[list]) catalog.countListener(feed.member, caller, kind, -1)
    for (const list of lists) for (const kind of LISTS[list]) catalog.countListener(feed.member, caller, kind, 1)
    this.#heard.set(feed, lists)
  }

  #hear(member: Member, frame: Frame): void | Promise<void> {
    const { sink } = this.#exchange
    if (frame.kind === 'question') return sink(this.#around.isAggregate ? withServerName(frame, member.server) : frame)
    if (frame.kind !== 'notice') return
    const list = CHANGING_LISTS.find(announced => LIST_CHANGES[announced].method === frame.method)
    if (list) return this.#changed(member, list)
    if (frame.method !== UPDATED) return sink(frame)
    if (!this.#isVisible(member, frame.params.get('uri')?.asString() ?? '')) return
    const params = this.#named(member, frame.params)
    if (this.#isAwaited(params.get('uri')?.asString() ?? '')) return sink({ ...frame, params })
  }

  /** After a change that nobody heard of, one that leads back to what is held is a change too. */
  #changed(member: Member, list: ChangingList): void {
    this.#ask(member, list)
    if (!this.#lapsed.delete(keyOf(member, list))) return
    const { catalog, lists: shelves } = this.#around
    const { caller } = this.#exchange
    const held = LISTS[list].map(kind => catalog.cachedList(member, caller, kind).entry)
    // Whoever hears of it may list at once, and should not be shown what was held before.
    void settledWithin(
      held.flatMap(({ pendingFetch: flight }) => flight ?? []),
      catalog.times.listTimeoutMs,
    ).then(() => {
      const isKnown = held.every(({ failure }) => failure === undefined)
      this.#teller.schedule(list, isKnown && shelves.rulesOf(caller).isOpen)
    })
  }

  /** Asks a member again for what may have changed. Only a session of its own can have another list than its principal. */
  #ask(member: Member, list: ChangingList): void {
    const { catalog, refetcher: follower } = this.#around
    const { caller, signal } = this.#exchange
    const revision = catalog.introduction(member, caller).value?.revision
    const isOwn = caller.session !== undefined && revision !== undefined && !isModern(revision)
    for (const kind of LISTS[list])
      follower.schedule(catalog.markStale(member, caller, kind, isOwn), kind, caller, signal)
  }

  /** Told once, although the feed and the watch over the member may both find it out. */
  #recovered(member: Member, list: ChangingList): void {
    const { catalog } = this.#around
    const { caller } = this.#exchange
    const [key, now] = [keyOf(member, list), Date.now()]
    const isNew = now - (this.#recoveries.get(key) ?? Number.NEGATIVE_INFINITY) > RECOVERING_MS
    if (isNew) this.#recoveries.set(key, now)
    this.#ask(member, list)
    const flights = LISTS[list].flatMap(kind => catalog.cachedList(member, caller, kind).entry.pendingFetch ?? [])
    void settledWithin(flights, catalog.times.listTimeoutMs).then(() => this.#teller.schedule(list, isNew))
  }

  /** A session may have subscribed before it was hidden, or to a folder that holds it. */
  #isVisible({ server }: Member, uri: string): boolean {
    return this.#around.lists.rulesOf(this.#exchange.caller).allows('resources', server, uri)
  }

  #named(member: Member, params: Json): Json {
    const own = this.#watched.get(member)
    const shelf = this.#around.lists.cached(this.#exchange.caller, 'resources')
    const aliases = shelf && aliasesOf(shelf).get(member.server)
    return rewriteUris(UPDATED, params, uri => own?.get(uri) ?? aliases?.get(uri))
  }

  /** Sessions subscribe by requests of their own; their server knows what to tell them. */
  #isAwaited(uri: string): boolean {
    if (!isModern(this.#exchange.caller.revision)) return true
    return [...this.#accepted].some(
      watched => uri === watched || uri.startsWith(watched.endsWith('/') ? watched : `${watched}/`),
    )
  }
}
