import { areSameUser, ServedUsers } from '../../protocol/callers.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { isCall, isLogSeverity, LOG_SEVERITIES, type LogSeverity } from '../../protocol/methods.ts'
import { isPartOf, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { SubscribeRequests } from './subscribe-requests.ts'

/** One client session on a session with a server that several share. */
export interface Sharer {
  readonly uris: Set<string> // of the resources it is subscribed to
  level: LogSeverity | undefined // as it has set it
  hasSameRoots: boolean // as those that the server was given
  isServed: boolean // it has called the server or was asked something, so the server may hold state of it
}

const MOST = 1000 // beyond that, sharers without subscriptions are forgotten
const DEFAULT_LEVEL: LogSeverity = 'info' // of a client that has set none, once another has

const MODERN = '' // the callers without a session are one sharer: the bridge tells them apart

/** Equal for the requests of one sharer. */
export const sharerOf = ({ session = MODERN }: Caller): string => session

/** The clients that share one session with a server: which of them is subscribed to what, and logs how much. */
export class Sharers {
  readonly #byKey = new Map<string, Sharer>()
  readonly #users = new ServedUsers()
  readonly #subscribing: SubscribeRequests
  #latest: string | undefined

  /** `unsubscribe` undoes at the server what no client wants any more. */
  constructor(options: {
    readonly send: (exchange: Exchange) => void
    readonly unsubscribe: (uri: string) => void
  }) {
    const { send, unsubscribe } = options
    const abandoned = (uri: string): void => {
      if (!this.isSubscribed(uri)) unsubscribe(uri)
    }
    this.#subscribing = new SubscribeRequests({ send, abandoned })
  }

  /** The sharer that has sent the latest request. */
  get latest(): string | undefined {
    return this.#latest
  }

  get areSeveral(): boolean {
    return this.#byKey.size > 1
  }

  get areSeveralUsers(): boolean {
    return this.#users.areSeveral
  }

  get hasSubscriptions(): boolean {
    return this.#some(({ uris }) => uris.size > 0)
  }

  isServed(caller: Caller): boolean {
    return this.#byKey.get(sharerOf(caller))?.isServed === true
  }

  /** The server knows something of that client from now on. */
  serve(caller: Caller): void {
    this.join(caller).isServed = true
  }

  hasSameRoots(caller: Caller): boolean {
    const { isServed, hasSameRoots } = this.join(caller)
    return isServed || hasSameRoots
  }

  setSameRoots(caller: Caller): void {
    this.join(caller).hasSameRoots = true
  }

  join(caller: Caller): Sharer {
    const key = sharerOf(caller)
    const known = this.#byKey.get(key)
    this.#users.add(caller)
    if (known) return known
    const sharer: Sharer = { uris: new Set(), level: undefined, hasSameRoots: false, isServed: false }
    if (this.#byKey.size >= MOST) this.#forgetOne()
    this.#byKey.set(key, sharer)
    return sharer
  }

  /** Ends its membership; the subscriptions and the level are left to the caller to undo. */
  leave(key: string): Sharer | undefined {
    const sharer = this.#byKey.get(key)
    this.#byKey.delete(key)
    if (this.#latest === key) this.#latest = undefined
    return sharer
  }

  /** Takes over a sharer with its state from another session. */
  adopt(caller: Caller, { uris, level }: Sharer): void {
    const sharer = this.join(caller)
    for (const uri of uris) sharer.uris.add(uri)
    sharer.level = level
  }

  isSubscribed(uri: string): boolean {
    return this.#some(({ uris }) => uris.has(uri))
  }

  /** The most verbose level that a sharer has set. */
  get level(): LogSeverity | undefined {
    return LOG_SEVERITIES.find(level => this.#some(sharer => sharer.level === level))
  }

  /** The request as the server must get it, so that it serves every sharer; undefined if it has been answered here. */
  admit(exchange: Exchange): Exchange | undefined {
    const sharer = this.join(exchange.caller)
    sharer.isServed ||= isCall(exchange.method)
    this.#latest = sharerOf(exchange.caller)
    switch (exchange.method) {
      case 'logging/setLevel':
        return this.#setLevel(sharer, exchange)
      case 'resources/subscribe':
        return this.#subscribe(sharer, exchange)
      case 'resources/unsubscribe':
        return this.#unsubscribe(sharer, exchange)
      default:
        return exchange
    }
  }

  /** Whether a notification that belongs to no call is for that listener. Log messages: see `logFilter`. */
  isFor(listener: Caller, method: string, params: Json): boolean {
    const key = sharerOf(listener)
    if (!this.areSeveral || key === MODERN || method.endsWith('/list_changed')) return true
    if (method !== NOTIFICATIONS.resourceUpdated) return !this.areSeveralUsers
    const uri = params.get('uri')?.asString() ?? ''
    return [...(this.#byKey.get(key)?.uris ?? [])].some(own => isPartOf(uri, own))
  }

  /**
   * Which clients get a log message that names no call: those whose calls run, and without a call all of them; none where
   * they are several users.
   */
  logFilter(callers: readonly Caller[], params: Json): (client: Caller) => boolean {
    const areSeveralUsers = callers.length > 0 ? !areSameUser(callers) : this.areSeveralUsers
    if (areSeveralUsers) return () => false
    const keys = new Set(callers.map(sharerOf))
    return client => (keys.size === 0 || keys.has(sharerOf(client))) && this.#wantsLog(client, params)
  }

  /** Whether a log message is at the sharer's level; one that has set none gets no more than `info` because of the others. */
  #wantsLog(caller: Caller, params: Json): boolean {
    const key = sharerOf(caller)
    if (!this.areSeveral || key === MODERN || this.level === undefined) return true
    const least = this.#byKey.get(key)?.level ?? DEFAULT_LEVEL
    const given = params.get('level')?.asString()
    return !isLogSeverity(given) || LOG_SEVERITIES.indexOf(given) >= LOG_SEVERITIES.indexOf(least)
  }

  /** The server gets the most verbose level; what a sharer does not want of that is filtered. */
  #setLevel(sharer: Sharer, exchange: Exchange): Exchange {
    const { params, sink } = exchange
    const wanted = params.get('level')?.asString()
    if (!isLogSeverity(wanted)) return exchange
    const before = sharer.level
    sharer.level = wanted
    return {
      ...exchange,
      params: params.with('level', this.level ?? wanted),
      sink: frame => {
        if (frame.kind === 'failure' && sharer.level === wanted) sharer.level = before
        return sink(frame)
      },
    }
  }

  /** The server has one subscription for all sharers. */
  #subscribe(sharer: Sharer, exchange: Exchange): Exchange | undefined {
    const uri = exchange.params.get('uri')?.asString() ?? ''
    const isUnderWay = this.#subscribing.has(uri)
    const isRepeated = sharer.uris.has(uri)
    if (exchange.signal.reason || (isRepeated && !isUnderWay)) return exchange
    if (this.isSubscribed(uri) && !isUnderWay) {
      sharer.uris.add(uri)
      return acknowledge(exchange)
    }
    sharer.uris.add(uri)
    const undo = (): void => {
      if (!isRepeated) sharer.uris.delete(uri)
    }
    const stop = exchange.signal.onAbort(undo)
    return this.#subscribing.admit(uri, {
      ...exchange,
      sink: frame => {
        if (frame.kind === 'failure') undo()
        if (frame.kind === 'failure' || frame.kind === 'result') stop()
        return exchange.sink(frame)
      },
    })
  }

  #unsubscribe(sharer: Sharer, exchange: Exchange): Exchange | undefined {
    const uri = exchange.params.get('uri')?.asString() ?? ''
    sharer.uris.delete(uri)
    return this.isSubscribed(uri) ? acknowledge(exchange) : exchange
  }

  #some(holds: (sharer: Sharer) => boolean): boolean {
    for (const sharer of this.#byKey.values()) if (holds(sharer)) return true
    return false
  }

  #forgetOne(): void {
    for (const [key, { uris }] of this.#byKey) if (uris.size === 0) return void this.#byKey.delete(key)
  }
}

/** Answers a request that the server need not get. */
const acknowledge = ({ sink }: Exchange): undefined => {
  void deliver(sink, { kind: 'result', result: Json.empty })
}
