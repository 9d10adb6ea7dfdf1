import { Abort } from '../../protocol/cancellation.ts'
import { thrownError } from '../../protocol/deliver.ts'
import { ERRORS, NoAnswer, type RpcError } from '../../protocol/errors.ts'
import type { Caller, Exchange, Frame, Peer } from '../../protocol/exchange.ts'
import { missedNotices, NOTIFICATIONS, noticeKey } from '../../protocol/notifications.ts'
import { isModern } from '../../protocol/revisions.ts'
import { backoffMs } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'
import { filterOf, includes, type ListenFilter, paramsOf, unionOf } from './listen-filter.ts'
import { SharedListener } from './shared-listener.ts'

const BACKOFF = { firstMs: 1000, longestMs: 30_000 }
const STEADY_MS = 30_000 // a server that ends listens sooner is asked less and less often
const MOST_UNSTEADY = 5 // listens in a row that ended sooner; then what was missed is said at most once in this time:
const ANNOUNCE_MS = 60_000
const SHRINK_MS = 5000 // until the server is told that a part is not needed any more
const ACKNOWLEDGE_MS = 5000 // for a request that is to replace another
const HASTE_MS = 1000 // between two attempts because of new listeners
type Ending = Extract<Frame, { kind: 'result' | 'failure' }>

const COMPLETE: Ending = { kind: 'result', result: Json.of({ resultType: 'complete' }) }
const NOTHING: ListenFilter = { lists: new Set(), uris: new Set() }

/** What a shared listen is made with. */
interface SharedListenOptions {
  readonly caller: Caller // in whose name it is sent
  readonly params?: Json | undefined // of the only listener, which nothing may be changed in
  open(): Promise<Peer>
  /** Serves a listener alone: the server does not accept what it asks for together with the others. */
  separate(exchange: Exchange): void
  /** The server does not know the method. */
  onUnsupported(error: RpcError): void
  onEmpty(): void
}

/** One request at the server. */
interface ListenRequest {
  readonly abort: Abort
  readonly filter: ListenFilter
  readonly lastOrder: number // of the listeners that it was made for
  since: number // its acknowledgement, or before that its start
}

/** One `subscriptions/listen` at a modern server for any number of listeners. It outlasts the server's restarts. */
export class SharedListen {
  readonly #options: SharedListenOptions
  readonly #listeners = new Map<SharedListener, Exchange>()
  #inForce: ListenRequest | undefined
  #pending: ListenRequest | undefined // replaces the one in force once it is acknowledged
  #acknowledged = Json.empty // params of the latest acknowledgement
  #honoured = NOTHING
  #hasGap = false // notifications may have been missed
  #retry: NodeJS.Timeout | undefined
  #retryAt = 0
  #shrink: NodeJS.Timeout | undefined
  #announcement: NodeJS.Timeout | undefined
  #failures = 0
  #unsteady = 0 // listens in a row that ended soon, at a server that could always be reached
  #announcedAt = Number.NEGATIVE_INFINITY // when it was last said what was missed
  #lastOrder = 0

  constructor(options: SharedListenOptions) {
    this.#options = options
  }

  add(exchange: Exchange): void {
    const { params } = this.#options
    const filter = params ? NOTHING : (filterOf(exchange.params) ?? NOTHING)
    const overflow = (): void => this.#end(listener, COMPLETE)
    const listener = new SharedListener(exchange, filter, ++this.#lastOrder, params !== undefined, overflow)
    this.#listeners.set(listener, exchange)
    exchange.signal.onAbort(() => this.#remove(listener))
    this.#update()
  }

  /** The server is back: a lost listen is sent again at once. */
  reconnect(): void {
    if (this.#retry === undefined) return
    this.#failures = 0
    this.#send()
  }

  /** Acknowledges listeners whose wishes are honoured already, and asks the server for those of the others. */
  #update(): void {
    if (this.#pending || this.#listeners.size === 0) return
    if (!this.#inForce) {
      if (this.#retry === undefined) this.#send()
      else this.#retryIn(Math.random() * HASTE_MS)
      return
    }
    const waiting = this.#waiting()
    for (const listener of waiting)
      if (includes(this.#honoured, listener.filter)) listener.acknowledge(this.#acknowledged)
    if (waiting.some(({ isAcknowledged }) => !isAcknowledged)) this.#send()
  }

  #waiting(): SharedListener[] {
    return [...this.#listeners.keys()].filter(({ isAcknowledged }) => !isAcknowledged)
  }

  #send(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    const { open, caller, params } = this.#options
    const filter = unionOf([...this.#listeners.keys()].map(listener => listener.filter))
    const request: ListenRequest = { abort: new Abort(), filter, lastOrder: this.#lastOrder, since: Date.now() }
    this.#pending = request
    if (this.#inForce) this.#expectAcknowledgement(request)
    const dispatch = (peer: Peer): void => {
      if (request.abort.reason) return
      if (!isModern(peer.revision)) return this.#endAll(COMPLETE) // another server by now: its listeners start again
      peer.dispatch({
        kind: 'request',
        method: 'subscriptions/listen',
        params: params ?? paramsOf(filter),
        caller,
        signal: request.abort,
        sink: frame => this.#take(frame, request),
        hasClient: () => [...this.#listeners.keys()].some(({ hasClient }) => hasClient),
      })
    }
    open()
      .then(dispatch)
      .catch((thrown: unknown) => this.#ended(request, { kind: 'failure', error: new NoAnswer(thrownError(thrown)) }))
  }

  #expectAcknowledgement(request: ListenRequest): void {
    const expire = (): void => {
      if (request !== this.#pending) return
      request.abort.abort({ kind: 'expired' })
      this.#ended(request, COMPLETE)
    }
    const timer = setTimeout(expire, ACKNOWLEDGE_MS).unref()
    request.abort.onAbort(() => clearTimeout(timer))
  }

  #take(frame: Frame, request: ListenRequest): void | Promise<void> {
    if (request !== this.#inForce && request !== this.#pending) return
    if (frame.kind === 'result' || frame.kind === 'failure') return this.#ended(request, frame)
    if (frame.kind === 'notice' && frame.method === NOTIFICATIONS.acknowledged)
      return this.#acknowledge(request, frame.params)
    if (request === this.#pending && this.#inForce) return // the one in force brings it
    const listeners = [...this.#listeners.keys()]
    if (frame.kind === 'question') return listeners.at(-1)?.take(frame)
    if (listeners.length === 1) return listeners[0]?.take(frame)
    for (const listener of listeners) void listener.take(frame)
  }

  #acknowledge(request: ListenRequest, given: Json): void {
    if (request !== this.#pending) return
    const before = this.#inForce
    const known = this.#acknowledged
    this.#pending = undefined
    this.#inForce = request
    request.since = Date.now()
    before?.abort.abort({ kind: 'closing' })
    clearTimeout(this.#announcement)
    this.#acknowledged = given.compact()
    this.#honoured = filterOf(Json.of({ notifications: given.get('notifications') ?? Json.empty })) ?? NOTHING
    if (this.#hasGap) this.#announceSoon(known)
    for (const listener of this.#waiting())
      if (listener.order <= request.lastOrder) listener.acknowledge(this.#acknowledged)
    this.#update()
  }

  /** Now, unless the server ends its listens all the time: its clients would read everything again and again. */
  #announceSoon(before: Json): void {
    const waitMs = this.#unsteady < MOST_UNSTEADY ? 0 : this.#announcedAt + ANNOUNCE_MS - Date.now()
    if (waitMs <= 0) this.#announceMissed(before)
    else this.#announcement = setTimeout(() => this.#announceMissed(before), waitMs).unref()
  }

  /** Announces what the server honoured before the gap or honours now. */
  #announceMissed(before: Json): void {
    this.#hasGap = false
    this.#announcedAt = Date.now()
    const notices = [...missedNotices(before), ...missedNotices(this.#acknowledged)]
    const distinct = new Map(notices.map(notice => [noticeKey(notice.method, notice.params), notice]))
    for (const listener of [...this.#listeners.keys()])
      if (listener.isAcknowledged) for (const notice of distinct.values()) void listener.take(notice)
  }

  #ended(request: ListenRequest, frame: Ending): void {
    if (request === this.#inForce) {
      this.#inForce = undefined
      this.#hasGap = true
      const isSteady = Date.now() - request.since >= STEADY_MS
      if (isSteady) this.#failures = 0
      this.#unsteady = isSteady ? 0 : this.#unsteady + 1
      clearTimeout(this.#announcement)
      if (!this.#pending) this.#retryLater()
    } else if (request === this.#pending) {
      this.#pending = undefined
      this.#notAcknowledged(request, frame)
    }
  }

  #notAcknowledged(request: ListenRequest, frame: Ending): void {
    const waiting = this.#waiting().filter(({ order }) => order <= request.lastOrder)
    const isRefusal = frame.kind === 'failure' && !(frame.error instanceof NoAnswer)
    if (isRefusal && isUnsupported(frame)) this.#options.onUnsupported(frame.error)
    if (this.#inForce || (isRefusal && this.#listeners.size > 1 && !isUnsupported(frame)))
      for (const listener of waiting) this.#separate(listener)
    else if (isRefusal) this.#endAll(frame)
    else for (const listener of waiting) this.#end(listener, frame)
    if (this.#inForce || this.#listeners.size === 0) return
    this.#hasGap = true
    this.#unsteady = 0 // it was away: its next listen is that of another process
    this.#retryLater()
  }

  #retryLater(): void {
    this.#retryIn(backoffMs(BACKOFF, this.#failures++))
  }

  /** Sends it again after that time, or when that was due before. */
  #retryIn(ms: number): void {
    const at = Date.now() + ms
    if (this.#retry !== undefined && this.#retryAt <= at) return
    clearTimeout(this.#retry)
    this.#retryAt = at
    this.#retry = setTimeout(() => this.#send(), ms).unref()
  }

  #separate(listener: SharedListener): void {
    const exchange = this.#listeners.get(listener)
    listener.stop()
    this.#remove(listener)
    if (exchange) this.#options.separate(exchange)
  }

  #end(listener: SharedListener, frame: Frame): void {
    if (!this.#listeners.has(listener)) return
    this.#remove(listener)
    listener.end(frame)
  }

  #endAll(frame: Frame): void {
    for (const listener of [...this.#listeners.keys()]) this.#end(listener, frame)
  }

  #remove(listener: SharedListener): void {
    if (!this.#listeners.delete(listener)) return
    listener.stop()
    if (this.#listeners.size > 0) return this.#shrinkLater()
    clearTimeout(this.#retry)
    clearTimeout(this.#shrink)
    clearTimeout(this.#announcement)
    for (const request of [this.#inForce, this.#pending]) request?.abort.abort({ kind: 'gone' })
    this.#inForce = this.#pending = undefined
    this.#options.onEmpty()
  }

  #shrinkLater(): void {
    this.#shrink ??= setTimeout(() => {
      this.#shrink = undefined
      if (!this.#inForce) return
      const needed = unionOf([...this.#listeners.keys()].map(({ filter }) => filter))
      if (includes(needed, this.#inForce.filter)) return
      if (this.#pending) this.#shrinkLater()
      else this.#send()
    }, SHRINK_MS).unref()
  }
}

const isUnsupported = (frame: Ending): boolean =>
  frame.kind === 'failure' && frame.error.code === ERRORS.methodNotFound.code
