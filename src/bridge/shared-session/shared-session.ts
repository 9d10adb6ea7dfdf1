import { areSameUser, isSameUser } from '../../protocol/callers.ts'
import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame, Peer, Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { Introduction } from '../introduction.ts'
import { Attention } from './attention.ts'
import { HeldQuestions, unanswered } from './held-questions.ts'
import { Listeners } from './listeners.ts'
import { isWanted, LogLevels } from './log-levels.ts'
import { OpenQuestions } from './open-questions.ts'
import { type GreetingHabit, Settling } from './settling.ts'
import { SharedCall } from './shared-call.ts'
import { type Turn, Turns } from './turns.ts'

type Overhear = (method: string, params: Json) => void

/** Finds a further session of the same kind; rejects or settles with undefined where there is none. */
export type OpenLane = (caller: Caller, lane: number) => Promise<SharedSession | undefined>

/**
 * One legacy session as modern callers share it. What it says outside any call (questions, logs, changes)
 * arrives on a standing exchange of ours and finds its way to the call or the listener it is for.
 */
export class SharedSession {
  readonly introduction: Introduction
  readonly #peer: Peer
  readonly #openLane: OpenLane
  readonly #calls: SharedCall[] = [] // in order of arrival
  readonly #levels: LogLevels
  readonly #listeners: Listeners
  readonly #settling: Settling
  readonly #attention: Attention
  readonly #held = new HeldQuestions()
  readonly #open: OpenQuestions
  #release: () => void = () => {} // of a session that would end with its last request
  readonly #turns = new Turns()
  readonly #overhearing = new Set<Overhear>()
  readonly #lanes = new WeakSet<SharedSession>() // those we overhear
  readonly #early = new Map<SharedCall, Turn>() // calls that began before it was known that they take turns
  #correlates: boolean

  constructor(
    peer: Peer,
    openLane: OpenLane = async () => undefined,
    habit: GreetingHabit = { asks: undefined }, // of the server, shared by its sessions
  ) {
    this.#peer = peer
    this.#openLane = openLane
    this.#correlates = peer.correlates !== false
    this.introduction = new Introduction(peer.dispatch)
    this.#levels = new LogLevels(peer.dispatch)
    this.#listeners = new Listeners(peer.dispatch)
    this.#settling = new Settling(peer.dispatch, habit)
    this.#open = new OpenQuestions({
      some: () => {
        this.#release = this.hold()
        this.#attention.stay()
      },
      none: () => {
        this.#release()
        this.#restIfUnused()
      },
    })
    this.#attention = new Attention({
      dispatch: peer.dispatch,
      heard: frame => (frame.kind === 'question' ? this.#asked(frame) : this.#noticed(frame.method, frame.params)),
      over: () => this.#listeners.end(),
    })
  }

  get revision(): Peer['revision'] {
    return this.#peer.revision
  }

  /** Whether a call that may be asked something runs here. */
  get isTaken(): boolean {
    return this.#calls.some(({ canBeAsked, isBegun }) => canBeAsked && isBegun)
  }

  readonly dispatch: Dispatch = exchange => {
    if (exchange.kind === 'notification' || exchange.method === 'server/discover') return this.#peer.dispatch(exchange)
    this.#attention.pay(exchange.caller)
    if (exchange.method === 'subscriptions/listen') return this.#listen(exchange)
    const call = new SharedCall(exchange, (question, from) => this.#handOn(question, from))
    this.#calls.push(call)
    if (call.canBeAsked && !this.#correlates) return this.#queue(call)
    const release = exchange.signal.onAbort(reason => {
      call.upstream.abort(reason)
      this.#leave(call)
    })
    this.#begin(call, release)
  }

  /** Keeps the session until the returned function is called, if it would end with its last request. */
  hold(): () => void {
    return this.#peer.hold?.() ?? (() => {})
  }

  /** Hears every notice of the session, and of its further lanes, until the returned function is called. */
  overhear(listener: Overhear): () => void {
    this.#overhearing.add(listener)
    return () => this.#overhearing.delete(listener)
  }

  #queue(call: SharedCall): void {
    let home: SharedSession = this
    const over = (): void => {
      release()
      this.#turns.leave(turn)
    }
    const end = (error: RpcError): void => {
      release()
      home.#leave(call)
      call.fail(error)
      this.#turns.leave(turn) // last: the next begins at once, and the server must know by then that this one is over
    }
    const turn: Turn = {
      get askedAt() {
        return call.askedAt
      },
      start: () => this.#begin(call, over),
      startElsewhere: async lane => {
        const found = await this.#lane(call.exchange.caller, lane)
        if (call.upstream.reason) return true // its caller has left meanwhile
        if (!found || found.isTaken) return false
        this.#leave(call)
        home = found
        found.#adopt(call, over)
        return true
      },
      giveWay: () => end(GAVE_WAY),
      refuse: end,
    }
    const release = call.exchange.signal.onAbort(reason => {
      home.#leave(call)
      call.upstream.abort(reason)
      this.#turns.leave(turn)
    })
    if (!call.upstream.reason) this.#turns.take(turn)
  }

  async #lane(caller: Caller, lane: number): Promise<SharedSession | undefined> {
    const found = await this.#openLane(caller, lane).catch(() => undefined)
    if (!found || found === this || found.revision !== this.revision) return undefined
    if (!this.#lanes.has(found)) found.overhear((method, params) => this.#tell(method, params))
    this.#lanes.add(found)
    return found
  }

  #adopt(call: SharedCall, release: () => void): void {
    this.#attention.pay(call.exchange.caller)
    this.#calls.push(call)
    this.#begin(call, release)
  }

  #begin(call: SharedCall, release: () => void): void {
    const { exchange, upstream } = call
    const run = (): void => {
      if (upstream.reason) return
      this.#peer.dispatch({ ...exchange, signal: upstream, sink: frame => this.#take(call, frame, release) })
    }
    const isList = exchange.method.endsWith('/list')
    call.isBegun = true
    if (call.canBeAsked) for (const question of this.#held.takeFor(exchange.caller)) call.ask(question)
    // The level last: a session of one's own ends when nothing is under way.
    this.#settling.settle(call, () =>
      this.#levels.ensure(exchange, isList ? () => this.#settling.fence(exchange, run) : run),
    )
  }

  #take(call: SharedCall, frame: Frame, release: () => void): void | Promise<void> {
    if (frame.kind === 'notice' && !isWanted(frame, call.exchange.caller.logLevel)) return
    if (frame.kind === 'question') {
      this.#settling.asked(frame.method)
      return call.ask(this.#open.add(frame))
    }
    if (frame.kind === 'result' || frame.kind === 'failure') {
      release()
      this.#leave(call)
    }
    return call.exchange.sink(frame)
  }

  #leave(call: SharedCall): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    const turn = this.#early.get(call)
    if (turn && this.#early.delete(call)) this.#turns.leave(turn)
    this.#restIfUnused()
  }

  #noticed(method: string, params: Json): void {
    this.#tell(method, params)
    if (method === 'notifications/message') {
      const frame = { kind: 'notice', method, params } as const
      // Never to two calls: the earliest that asked for logs gets it; none while calls of several users share the session.
      const isOneUser = areSameUser(this.#calls.map(({ exchange }) => exchange.caller))
      const call = isOneUser && this.#calls.find(({ exchange }) => isWanted(frame, exchange.caller.logLevel))
      if (call) void deliver(call.exchange.sink, frame)
    } else this.#listeners.tell(method, params)
    if (method.endsWith('/list_changed')) this.introduction.forget() // it may be another server by now
  }

  #tell(method: string, params: Json): void {
    for (const listener of [...this.#overhearing]) listener(method, params)
  }

  /** To the call it most likely belongs to: the one that came last; else it waits for the next. */
  #asked(question: Question): void {
    this.#settling.asked(question.method)
    const call = this.#calls.findLast(({ canBeAsked, isBegun }) => canBeAsked && isBegun)
    // From now on one call at a time: this server does not say which one it means. What it asks when it has just been
    // greeted is about the session, and says nothing of its habits.
    if (this.#calls.length > 0 && !this.#settling.isGreeting) this.#takeTurns()
    const open = this.#open.add(question)
    if (call) call.ask(open)
    else this.#held.hold(open)
  }

  /** The call is over and the server still waits for an answer: another call carries the question, or the next one. */
  #handOn(question: Question, from: SharedCall): void {
    if (question.withdrawn.reason) return
    const { caller } = from.exchange
    const isHeir = (call: SharedCall): boolean =>
      call !== from && call.canBeAsked && call.isBegun && isSameUser(call.exchange.caller, caller)
    const heir = this.#calls.findLast(isHeir)
    if (heir) heir.ask(question)
    else if (this.#peer.hold)
      question.answer(unanswered(question.method)) // its caller is unknown: there is no next call
    else this.#held.hold(question, caller)
  }

  /** What runs already keeps others from the session until it has ended: its next question must not be taken for theirs. */
  #takeTurns(): void {
    if (!this.#correlates) return
    this.#correlates = false
    for (const call of this.#calls.filter(({ canBeAsked, isBegun }) => canBeAsked && isBegun)) {
      const end = (error: RpcError): void => {
        call.fail(error)
        this.#leave(call)
      }
      const turn: Turn = {
        get askedAt() {
          return call.askedAt
        },
        start: () => {},
        startElsewhere: async () => true,
        giveWay: () => end(GAVE_WAY),
        refuse: end,
      }
      this.#early.set(call, turn)
      this.#turns.occupy(turn)
    }
  }

  #listen(exchange: Exchange): void {
    if (this.#attention.isPaid) this.#listeners.add(exchange, () => this.#restIfUnused())
    else void deliver(exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
  }

  #restIfUnused(): void {
    if (this.#calls.length === 0 && this.#listeners.size === 0 && this.#open.size === 0) this.#attention.rest()
  }
}

const GAVE_WAY = rpcError(
  'invalidParams',
  'Invalid or expired requestState: another call of yours needed the session while this one waited for an answer',
  Json.of({ reason: 'invalid_request_state' }),
)
