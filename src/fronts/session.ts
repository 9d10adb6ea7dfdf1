import { Abort } from '../protocol/abort.ts'
import type { Caller, Frame } from '../protocol/exchange.ts'
import type { Level } from '../protocol/methods.ts'
import { manners, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json.ts'
import { notificationPieces } from '../wire/json-rpc.ts'
import { Asks } from './asks.ts'
import { EventLog } from './event-log.ts'
import { mergeName } from './merge-name.ts'
import type { House } from './visit.ts'

export interface SessionOpening {
  readonly workspace: string
  readonly principal: string | undefined
  readonly revision: Revision
  readonly capabilities: Json
  readonly info: Json | undefined
}

const INBOX = 'g'
const STANDING_AGAIN_MS = 1000
const RETRY_MS = 1000
const LISTEN_TO_ALL = Json.of({
  notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
})

/** One legacy client between its `initialize` and its end: its streams, its calls, what it was asked. */
export class Session {
  readonly id: string
  readonly asks = new Asks()
  readonly running = new Map<string, Abort>() // calls in flight, by id
  lastUsed = Date.now()
  caller: Caller

  readonly #house: House
  readonly #streams = new Map<string, EventLog>()
  #opened = 0
  #standing: Abort | undefined
  #stoodAt = 0
  #isEnded = false
  #stopKeepAlive: (() => void) | undefined

  constructor(id: string, opening: SessionOpening, house: House) {
    this.id = id
    this.#house = house
    this.caller = { ...opening, session: id, headers: new Map() }
  }

  /** True while a reader is there or a call is running. */
  get isBusy(): boolean {
    return this.running.size > 0 || [...this.#streams.values()].some(log => log.hasReader)
  }

  setLevel(logLevel: Level): void {
    this.caller = { ...this.caller, logLevel }
  }

  /** Opens the standing exchange, on which everything arrives that belongs to no call. Opens it again if it ended. */
  begin(): void {
    if (this.#standing || this.#isEnded || Date.now() - this.#stoodAt < STANDING_AGAIN_MS) return
    const standing = new Abort()
    this.#standing = standing
    this.#stoodAt = Date.now()
    this.#house.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: LISTEN_TO_ALL,
      caller: this.caller,
      signal: standing,
      sink: frame => this.#unasked(frame, standing),
    })
  }

  /** A new stream of this session; its key is part of its event ids. */
  open(key = `p${++this.#opened}`): EventLog {
    const log = new EventLog(key, this.#house.limits, this.#house.shelf)
    this.#streams.set(key, log)
    return log
  }

  /** The server-to-client stream. */
  inbox(): EventLog {
    const log = this.#streams.get(INBOX) ?? this.open(INBOX)
    this.#stopKeepAlive ??= this.#house.ticker.keepAlive(log)
    return log
  }

  stream(key: string): EventLog | undefined {
    return this.#streams.get(key)
  }

  forget(log: EventLog): void {
    this.#streams.delete(log.key ?? '')
  }

  /** What 2025-11-25 opens every stream with, so that a client can come back before the first message. */
  prime(log: EventLog): void {
    if (manners(this.caller.revision).priming) void log.append([], { retry: RETRY_MS })
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const call of [...this.running.values()]) call.abort({ kind: 'gone' })
    this.#standing?.abort({ kind: 'gone' })
    this.#stopKeepAlive?.()
    this.asks.abandon()
    for (const log of this.#streams.values()) {
      log.finish()
      log.clear()
    }
    this.#streams.clear()
  }

  #unasked(frame: Frame, standing: Abort): void | Promise<void> {
    if (this.#isEnded || standing !== this.#standing) return
    if (frame.kind === 'result' || frame.kind === 'failure') {
      this.#standing = undefined
      if (frame.kind === 'failure') this.#house.log.debug({ error: frame.error }, 'standing exchange ended')
      return
    }
    const log = this.inbox()
    if (frame.kind === 'question') return this.asks.ask(frame, pieces => log.append(pieces))
    if (frame.method === 'notifications/subscriptions/acknowledged') return
    return log.append(notificationPieces(frame.method, frame.params), { merge: mergeName(frame.method, frame.params) })
  }
}
