import { Abort, NEVER } from '../protocol/abort.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Caller, Dispatch, Exchange, Frame, Peer, Question } from '../protocol/exchange.ts'
import { methodRow } from '../protocol/methods.ts'
import { Json } from '../wire/json.ts'
import { Listeners } from './listeners.ts'
import { isWanted, LogLevels } from './log-levels.ts'
import { abandoned } from './refusals.ts'
import { type Turn, Turns } from './turns.ts'

const HOLD_MS = 20_000 // a question that came before any call it could belong to
const GREETING_MS = 2000 // in which a question is about the session itself
const SETTLE_MS = 500 // servers that want roots ask right after the handshake
const FENCE_MS = 500 // for a ping, which even an error answers
const REST_MS = 30_000 // of listening on when nobody calls any more

const LISTEN_TO_ALL = Json.of({
  notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
})

interface Call {
  readonly exchange: Exchange
  readonly canBeAsked: boolean
  readonly upstream: Abort // what the session sees of the caller's signal
  readonly open: Set<Question>
  isBegun: boolean // no question can be meant for one that still waits for its turn
  askedAt?: number
  whenAnswered?: () => void
}

interface Held {
  readonly question: Question
  readonly release: () => void
}

/**
 * One legacy session as modern callers share it. What it says outside any call (questions, logs, changes)
 * arrives on a standing exchange of ours and finds its way to the call or the listener it is for.
 */
export class SharedSession {
  readonly #peer: Peer
  readonly #calls: Call[] = [] // in order of arrival
  readonly #levels: LogLevels
  readonly #listeners: Listeners
  readonly #turns = new Turns()
  readonly #overhearing = new Set<(method: string, params: Json) => void>()
  readonly #openedAt = Date.now()
  #correlates: boolean
  #isFenced = false
  #held: Held[] = []
  #standing: Abort | undefined
  #rest: NodeJS.Timeout | undefined

  constructor(peer: Peer) {
    this.#peer = peer
    this.#correlates = peer.correlates !== false
    this.#levels = new LogLevels(peer.dispatch)
    this.#listeners = new Listeners(peer.dispatch)
  }

  readonly dispatch: Dispatch = exchange => {
    if (exchange.kind === 'notification' || exchange.method === 'server/discover') return this.#peer.dispatch(exchange)
    this.#stand(exchange.caller)
    if (exchange.method === 'subscriptions/listen') return this.#listen(exchange)
    const canBeAsked = methodRow(exchange.method)?.asks === true && asksAnything(exchange.caller)
    const call: Call = { exchange, canBeAsked, upstream: new Abort(), open: new Set(), isBegun: false }
    this.#calls.push(call)
    if (canBeAsked && !this.#correlates) this.#queue(call)
    else
      this.#begin(
        call,
        this.#follow(call, () => {}),
      )
  }

  /** Keeps the session until the returned function is called, if it would end with its last request. */
  hold(): () => void {
    return this.#peer.hold?.() ?? (() => {})
  }

  /** Hears every notice of the session until the returned function is called. */
  overhear(listener: (method: string, params: Json) => void): () => void {
    this.#overhearing.add(listener)
    return () => this.#overhearing.delete(listener)
  }

  /** Ends the call with its caller. */
  #follow(call: Call, left: () => void): () => void {
    return call.exchange.signal.onAbort(reason => {
      this.#leave(call)
      call.upstream.abort(reason)
      left()
    })
  }

  #queue(call: Call): void {
    const over = (): void => {
      release()
      this.#turns.leave(turn)
    }
    const end = (error: RpcError): void => {
      over()
      this.#leave(call)
      for (const question of [...call.open]) question.answer(abandoned(question.method))
      call.upstream.abort({ kind: 'expired' })
      void call.exchange.sink({ kind: 'failure', error })
    }
    const turn: Turn = {
      get askedAt() {
        return call.open.size > 0 ? call.askedAt : undefined
      },
      start: () => this.#begin(call, over),
      giveWay: () => end(GAVE_WAY),
      refuse: end,
    }
    const release = this.#follow(call, () => this.#turns.leave(turn))
    if (!call.upstream.reason) this.#turns.take(turn)
  }

  #begin(call: Call, release: () => void): void {
    const { exchange, upstream } = call
    const run = (): void => {
      delete call.whenAnswered
      if (upstream.reason) return
      this.#peer.dispatch({ ...exchange, signal: upstream, sink: frame => this.#take(call, frame, release) })
    }
    call.isBegun = true
    if (call.canBeAsked)
      for (const { question, release } of this.#held.splice(0)) {
        release()
        this.#ask(call, question)
      }
    // The level last: a session of one's own ends when nothing is under way.
    this.#settle(call, () =>
      this.#levels.ensure(exchange, exchange.method.endsWith('/list') ? () => this.#fence(call, run) : run),
    )
  }

  #take(call: Call, frame: Frame, release: () => void): void | Promise<void> {
    if (frame.kind === 'notice' && !isWanted(frame, call.exchange.caller.logLevel)) return
    if (frame.kind === 'question') return this.#ask(call, frame)
    if (frame.kind === 'result' || frame.kind === 'failure') {
      release()
      this.#leave(call)
    }
    return call.exchange.sink(frame)
  }

  #ask(call: Call, question: Question): void {
    const close = (): void => {
      if (call.open.delete(question) && call.open.size === 0) call.whenAnswered?.()
    }
    if (call.open.size === 0) call.askedAt = Date.now()
    call.open.add(question)
    question.withdrawn.onAbort(close)
    const answer = (reply: Answer): void => {
      if (reply.kind !== 'progress') close()
      question.answer(reply)
    }
    void call.exchange.sink({ ...question, answer })
  }

  #leave(call: Call): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.#restIfUnused()
  }

  /** A fresh session may have a question of its own; a call that needs the answer must not overtake it. */
  #settle(call: Call, run: () => void): void {
    const runOnceAnswered = (): void => {
      if (call.open.size === 0) run()
      else call.whenAnswered = run
    }
    const rest = this.#openedAt + SETTLE_MS - Date.now()
    if (rest <= 0 || !call.canBeAsked || !call.exchange.caller.capabilities.has('roots')) return runOnceAnswered()
    const timer = setTimeout(runOnceAnswered, rest)
    call.upstream.onAbort(() => clearTimeout(timer))
  }

  /** Servers offer some tools only once they have dealt with the handshake: a ping that is answered tells that they have. */
  #fence({ exchange }: Call, run: () => void): void {
    if (this.#isFenced) return run()
    let isOver = false
    const go = (): void => {
      if (isOver) return
      isOver = true
      this.#isFenced = true
      clearTimeout(timer)
      run()
    }
    const timer = setTimeout(go, FENCE_MS)
    this.#peer.dispatch({ ...exchange, method: 'ping', params: Json.empty, signal: NEVER, sink: go })
  }

  #stand(caller: Caller): void {
    clearTimeout(this.#rest)
    if (this.#standing) return
    const standing = new Abort()
    this.#standing = standing
    this.#peer.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: LISTEN_TO_ALL,
      caller,
      signal: standing,
      sink: frame => this.#overheard(frame, standing),
    })
  }

  #overheard(frame: Frame, standing: Abort): void {
    if (frame.kind === 'question') return this.#asked(frame)
    if (frame.kind === 'notice') return this.#noticed(frame.method, frame.params)
    if (this.#standing !== standing) return
    this.#standing = undefined
    this.#listeners.end()
  }

  #noticed(method: string, params: Json): void {
    for (const listener of [...this.#overhearing]) listener(method, params)
    if (method === 'notifications/message') {
      const frame = { kind: 'notice', method, params } as const
      // Never to two calls: the earliest that asked for logs gets it.
      void this.#calls.find(({ exchange }) => isWanted(frame, exchange.caller.logLevel))?.exchange.sink(frame)
    } else this.#listeners.tell(method, params)
  }

  /** To the call it most likely belongs to: the one that came last; else it waits for the next. */
  #asked(question: Question): void {
    const call = this.#calls.findLast(({ canBeAsked, isBegun }) => canBeAsked && isBegun)
    // From now on one call at a time: this server does not say which one it means. What it asks when it has just been
    // greeted is about the session, and says nothing of its habits.
    if (this.#calls.length > 0 && Date.now() > this.#openedAt + GREETING_MS) this.#correlates = false
    if (call) return this.#ask(call, question)
    const drop = () => {
      release()
      this.#held = this.#held.filter(held => held.question !== question)
      this.#restIfUnused()
    }
    const timer = setTimeout(() => {
      drop()
      question.answer({ kind: 'error', error: rpcError('internal', `Nobody was there to answer ${question.method}`) })
    }, HOLD_MS)
    timer.unref()
    const forget = question.withdrawn.onAbort(drop)
    const release = () => {
      clearTimeout(timer)
      forget()
    }
    if (!question.withdrawn.reason) this.#held.push({ question, release })
  }

  #listen(exchange: Exchange): void {
    if (!this.#standing) return void exchange.sink({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    this.#listeners.add(exchange, () => this.#restIfUnused())
  }

  #restIfUnused(): void {
    if (this.#calls.length > 0 || this.#listeners.size > 0 || this.#held.length > 0) return
    clearTimeout(this.#rest)
    this.#rest = setTimeout(() => {
      this.#standing?.abort({ kind: 'gone' })
      this.#standing = undefined
    }, REST_MS)
    this.#rest.unref()
  }
}

const asksAnything = ({ capabilities }: Caller): boolean =>
  capabilities.has('elicitation') || capabilities.has('sampling') || capabilities.has('roots')

const GAVE_WAY = rpcError(
  'invalidParams',
  'Invalid or expired requestState: another call of yours needed the session while this one waited for an answer',
  Json.of({ reason: 'invalid_request_state' }),
)
