import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import type { Caller, Frame, RequestOrigin } from '../../protocol/exchange.ts'
import type { LogSeverity } from '../../protocol/methods.ts'
import { LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError, encodeNotification, encodeResult } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { mergeKey } from '../streams/event-log.ts'
import { ResourceSubscriptions } from './client-limits.ts'
import { type ClientIdentity, initializeResult } from './handshake.ts'
import { InFlight } from './in-flight.ts'
import { PendingQuestions } from './pending-questions.ts'
import { abortOutcome, type CallOutcome } from './response-collector.ts'

const RELISTEN_MS = 1000
// Legacy servers log before `logging/setLevel`, modern ones only for requests that carry a level.
const DEFAULT_LEVEL: LogSeverity = 'info'
const ALL_LISTS = Json.of({
  notifications: Object.fromEntries(Object.values(LIST_CHANGES).map(({ flag }) => [flag, true])),
})

/** A legacy client over any transport: who it is, its requests in flight, and the questions it was sent. */
export abstract class ClientSession {
  readonly questions = new PendingQuestions()
  readonly inFlight = new InFlight()
  readonly subscriptions = new ResourceSubscriptions()
  caller: Caller
  level: LogSeverity | undefined // that the client has set
  expires: number | undefined // of the token of its latest request: its standing streams end then

  readonly context: FrontContext
  #listener: Abort | undefined // of the `subscriptions/listen` that carries what belongs to no call
  #endedListener: Abort | undefined // one the server ended; must still be aborted, so that layers below release its state
  #listenedAt = 0
  #isInitialized = false
  #isEnded = false

  constructor(caller: Caller, context: FrontContext) {
    this.caller = caller.logLevel === undefined ? { ...caller, logLevel: DEFAULT_LEVEL } : caller
    this.context = context
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** True once the client has sent `initialize`, unless that failed. */
  get isInitialized(): boolean {
    return this.#isInitialized
  }

  protected get hasListened(): boolean {
    return this.#listenedAt > 0
  }

  /** False if the client seems to have left without ending its session. */
  get hasClient(): boolean {
    return true
  }

  /** Sends a message that belongs to no call; a promise means that the client is behind. */
  abstract send(pieces: Buffer[], merge?: string): void | Promise<void>

  /** True if the session belongs to this principal; an attempt of another one is logged. */
  isOwnedBy(principal: string | undefined): boolean {
    const { principal: owner, workspace } = this.caller
    if (owner === principal) return true
    this.context.log.warn({ security: true, principal, owner, workspace }, 'session id of another principal rejected')
    return false
  }

  /** Applies what the token of the latest request allows: a principal may have several tokens, and policies change. */
  setAccess({ policy, scopes, expires }: Pick<FrontRequest, 'policy' | 'scopes' | 'expires'>): void {
    if (this.caller.policy !== policy || this.caller.scopes !== scopes) this.caller = { ...this.caller, policy, scopes }
    this.expires = expires
  }

  setLevel(logLevel: LogSeverity): void {
    this.level = logLevel
    this.caller = { ...this.caller, logLevel }
  }

  /** Stores the session, if sessions of this transport are stored. The request that changed it is answered afterwards. */
  save(): Promise<void> | undefined {
    return undefined
  }

  /** Takes up a session that another process has initialized. */
  protected markInitialized(): void {
    this.#isInitialized = true
  }

  /** Runs the handshake and responds to `initialize`, once; `isInitialized` says whether it was accepted. */
  initialize(
    identity: ClientIdentity,
    origin: RequestOrigin & { readonly id: Json },
    abort: Abort,
    respond: (outcome: CallOutcome) => void,
  ): void {
    const { dispatch, activeCalls } = this.context
    const { id } = origin
    const caller = this.identifiedAs(identity)
    let isSettled = false
    const settle = (outcome: CallOutcome, isAccepted: boolean): void => {
      if (isSettled) return
      isSettled = true
      activeCalls.delete(abort)
      if (outcome !== 'none') origin.tap?.clientMessage('out', isAccepted ? 'result' : 'error', undefined, outcome)
      this.#isInitialized = isAccepted
      if (isAccepted) this.#replaceCaller(caller)
      respond(outcome)
    }
    this.#isInitialized = true
    activeCalls.add(abort)
    abort.onAbort(reason => settle(abortOutcome(id, reason), false))
    dispatch({
      kind: 'request',
      method: 'server/discover',
      params: Json.empty,
      caller: { ...caller, isNewSession: true },
      signal: abort,
      origin,
      record: undefined,
      sink: frame => {
        if (frame.kind === 'failure') settle(encodeError(id, frame.error), false)
        else if (frame.kind === 'result')
          settle(encodeResult(id, initializeResult(caller.revision, frame.result)), true)
      },
    })
  }

  /** The caller of this session after a successful handshake. */
  protected identifiedAs(identity: ClientIdentity): Caller {
    return { ...this.caller, ...identity }
  }

  /** Starts `subscriptions/listen`, which carries what belongs to no call; starts it again if it has ended. */
  listen(): void {
    if (this.#listener || this.#isEnded || Date.now() - this.#listenedAt < RELISTEN_MS) return
    const listener = new Abort()
    this.#listener = listener
    this.#listenedAt = Date.now()
    this.context.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: ALL_LISTS,
      caller: this.caller,
      signal: listener,
      sink: frame => this.#takeUnrequested(frame, listener),
      hasClient: () => this.hasClient,
      record: undefined,
    })
  }

  /** The listener of the caller before the handshake, if there is one, must not be used for the new one. */
  #replaceCaller(caller: Caller): void {
    this.caller = caller
    this.#listener?.abort({ kind: 'gone' })
    this.#listener = undefined
    this.#listenedAt = 0
  }

  /** Cancels everything; false if that has been done. */
  protected stop(reason: AbortReason = { kind: 'gone' }): boolean {
    if (this.#isEnded) return false
    this.#isEnded = true
    this.inFlight.abortAll(reason)
    this.#listener?.abort({ kind: 'gone' })
    this.#endedListener?.abort({ kind: 'gone' })
    this.questions.abandon()
    return true
  }

  #takeUnrequested(frame: Frame, listener: Abort): void | Promise<void> {
    if (this.#isEnded || listener !== this.#listener) return
    if (frame.kind === 'result' || frame.kind === 'failure') {
      this.#listener = undefined
      this.#endedListener = listener
      if (frame.kind === 'failure') this.context.log.debug({ error: frame.error }, 'subscription of a session ended')
      return
    }
    if (frame.kind === 'question') return this.questions.ask(frame, pieces => this.send(pieces))
    if (frame.method === NOTIFICATIONS.acknowledged) return
    return this.send(encodeNotification(frame.method, frame.params), mergeKey(frame.method, frame.params))
  }
}
