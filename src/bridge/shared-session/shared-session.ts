import { areSameUser, isSameUser } from '../../protocol/callers.ts'
import type { AbortReason } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame, Peer, Question } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { createServerInfo } from '../server-info.ts'
import { createModernListeners, createSessionSubscription } from './listeners.ts'
import { createSessionSetup, isWanted, RootsHabit } from './session-setup.ts'
import { notCarried, SessionQuestions, SharedCall } from './shared-call.ts'
import { createTurnQueue } from './turn-queue.ts'

type Call = SharedCall<SharedSession>
type NotificationListener = (method: string, params: Json) => void

/** Opens a further session of the same kind; rejects or resolves with undefined if there is none. */
export type OpenLane = (caller: Caller, lane: number) => Promise<SharedSession | undefined>

/**
 * One legacy session that modern callers share. What the server sends outside any call (questions, log messages, changes)
 * arrives on a `subscriptions/listen` of the gateway's own and is forwarded to the call or the listeners it is for.
 */
export class SharedSession {
  readonly serverInfo: ReturnType<typeof createServerInfo>
  readonly #peer: Peer
  readonly #openLane: OpenLane
  readonly #setup: ReturnType<typeof createSessionSetup>
  readonly #subscription: ReturnType<typeof createSessionSubscription>
  readonly #listeners: ReturnType<typeof createModernListeners>
  readonly #questions: SessionQuestions
  readonly #queue: ReturnType<typeof createTurnQueue<Call>>
  readonly #calls: Call[] = [] // in order of arrival
  readonly #notificationListeners = new Set<NotificationListener>()
  readonly #lanes = new WeakSet<SharedSession>() // further sessions whose notifications are forwarded here
  readonly #callHooks = {
    session: this as SharedSession,
    cancelled: (call: Call, reason: AbortReason) => this.#cancelled(call, reason),
    handedBack: (call: Call, question: Question) => this.#handedBack(call, question),
  }
  #namesCalls: boolean // a question arrives on the stream of its call
  #release: () => void = () => {}

  constructor(peer: Peer, openLane: OpenLane = async () => undefined, rootsHabit = new RootsHabit()) {
    this.#peer = peer
    this.#openLane = openLane
    this.#namesCalls = peer.correlates !== false
    this.serverInfo = createServerInfo(peer.dispatch)
    this.#setup = createSessionSetup(peer.dispatch, rootsHabit)
    this.#listeners = createModernListeners(peer.dispatch)
    this.#subscription = createSessionSubscription({
      dispatch: peer.dispatch,
      received: frame => (frame.kind === 'question' ? this.#asked(frame) : this.#notified(frame.method, frame.params)),
      ended: () => this.#listeners.end(),
    })
    this.#questions = new SessionQuestions({
      opened: () => {
        this.#release = this.hold()
        this.#subscription.keepOpen()
      },
      closed: () => {
        this.#release()
        this.#lingerIfUnused()
      },
    })
    this.#queue = createTurnQueue<Call>({
      start: call => this.#run(call),
      startOnLane: (call, lane) => this.#runOnLane(call, lane),
      fail: (call, error) => this.#fail(call, error),
    })
  }

  readonly dispatch: Dispatch = exchange => {
    if (exchange.kind === 'notification' || exchange.method === 'server/discover') return this.#peer.dispatch(exchange)
    this.#subscription.open(exchange.caller)
    if (exchange.method === 'subscriptions/listen') return this.#addListener(exchange)
    const call: Call = new SharedCall(exchange, this.#callHooks)
    if (call.upstream.reason) return // its client has cancelled already
    this.#calls.push(call)
    if (call.canBeAsked && !this.#namesCalls) this.#queue.add(call)
    else this.#run(call)
  }

  /** Keeps a session that ends with its last request until the returned function is called. */
  hold(): () => void {
    return this.#peer.hold?.() ?? (() => {})
  }

  /** Receives every notification of the session and its lanes until the returned function is called. */
  onNotification(listener: NotificationListener): () => void {
    this.#notificationListeners.add(listener)
    return () => this.#notificationListeners.delete(listener)
  }

  #addListener(exchange: Exchange): void {
    if (this.#subscription.isOpen()) this.#listeners.add(exchange, () => this.#lingerIfUnused())
    else void deliver(exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
  }

  #run(call: Call): void {
    const { exchange, upstream } = call
    call.run(this)
    if (call.canBeAsked) for (const question of this.#questions.takeFor(exchange.caller)) call.ask(question)
    this.#setup.prepare(call, () => {
      if (upstream.reason) return
      this.#peer.dispatch({ ...exchange, signal: upstream, sink: frame => this.#receive(call, frame) })
    })
  }

  async #runOnLane(call: Call, lane: number): Promise<boolean> {
    const found = await this.#openLaneFor(call.exchange.caller, lane)
    if (call.upstream.reason) return true // cancelled meanwhile
    if (!found || found.#calls.some(isAskable)) return false
    this.#remove(call)
    found.#subscription.open(call.exchange.caller)
    found.#calls.push(call)
    found.#run(call)
    return true
  }

  async #openLaneFor(caller: Caller, lane: number): Promise<SharedSession | undefined> {
    const found = await this.#openLane(caller, lane).catch(() => undefined)
    if (!found || found === this || found.#peer.revision !== this.#peer.revision) return undefined
    if (!this.#lanes.has(found)) found.onNotification((method, params) => this.#publish(method, params))
    this.#lanes.add(found)
    return found
  }

  #receive(call: Call, frame: Frame): void | Promise<void> {
    if (frame.kind === 'notice' && !isWanted(frame, call.exchange.caller.logLevel)) return
    if (frame.kind === 'question') {
      this.#setup.asked(frame.method)
      return call.ask(this.#questions.add(frame))
    }
    if (frame.kind === 'result' || frame.kind === 'failure') {
      call.end()
      this.#remove(call)
      call.origin.#queue.delete(call)
    }
    return call.exchange.sink(frame)
  }

  #cancelled(call: Call, reason: AbortReason): void {
    call.session.#remove(call)
    call.upstream.abort(reason)
    this.#queue.delete(call)
  }

  #fail(call: Call, error: RpcError): void {
    call.session.#remove(call)
    call.fail(error)
    this.#queue.delete(call) // last: the next call starts at once, and the server must have got the cancellation by then
  }

  #remove(call: Call): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.#lingerIfUnused()
  }

  #notified(method: string, params: Json): void {
    this.#publish(method, params)
    if (method === NOTIFICATIONS.message) this.#forwardLog({ kind: 'notice', method, params })
    else this.#listeners.notify(method, params)
    if (method.endsWith('/list_changed')) this.serverInfo.forget() // the server may have been replaced
  }

  #publish(method: string, params: Json): void {
    for (const listener of [...this.#notificationListeners]) listener(method, params)
  }

  /** To the earliest call that asked for logs; to none while calls of several users run. */
  #forwardLog(frame: Extract<Frame, { kind: 'notice' }>): void {
    const isOneUser = areSameUser(this.#calls.map(({ exchange }) => exchange.caller))
    const call = isOneUser && this.#calls.find(({ exchange }) => isWanted(frame, exchange.caller.logLevel))
    if (call) void deliver(call.exchange.sink, frame)
  }

  /** A question outside any call most likely belongs to the latest call; without a call it waits for the next. */
  #asked(question: Question): void {
    this.#setup.asked(question.method)
    const call = this.#calls.findLast(isAskable)
    // A question of a fresh session is about the session, and says nothing about the server.
    if (this.#calls.length > 0 && !this.#setup.isFresh()) this.#takeTurns()
    const open = this.#questions.add(question)
    if (call) call.ask(open)
    else this.#questions.hold(open)
  }

  /** From now on one call runs at a time. Calls that run already keep others from the session until they end. */
  #takeTurns(): void {
    if (!this.#namesCalls) return
    this.#namesCalls = false
    for (const call of this.#calls.filter(isAskable)) this.#queue.addRunning(call)
  }

  /** The call is over and the server still waits for an answer: another call of the user carries the question. */
  #handedBack(from: Call, question: Question): void {
    if (question.withdrawn.reason) return
    const { caller } = from.exchange
    const other = this.#calls.findLast(
      call => call !== from && isAskable(call) && isSameUser(call.exchange.caller, caller),
    )
    if (other) other.ask(question)
    else if (this.#peer.hold)
      question.answer(notCarried(question.method)) // the caller is anonymous: there is no next call
    else this.#questions.hold(question, caller)
  }

  #lingerIfUnused(): void {
    if (this.#calls.length === 0 && this.#listeners.isEmpty() && !this.#questions.hasOpen) this.#subscription.linger()
  }
}

/** Whether a question of the server can be meant for the call. */
const isAskable = ({ canBeAsked, isRunning }: Call): boolean => canBeAsked && isRunning
