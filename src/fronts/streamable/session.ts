import type { Caller } from '../../protocol/exchange.ts'
import { manners } from '../../protocol/revisions.ts'
import type { FrontContext } from '../http/front-request.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { EventLog } from '../streams/event-log.ts'

const INBOX = 'g'

/** One legacy client over Streamable HTTP, between its `initialize` and its end, with its streams. */
export class Session extends ClientSession {
  readonly id: string
  readonly owner: string // for whom it is counted
  lastUsed = Date.now()

  readonly #streams = new Map<string, EventLog>()
  #opened = 0
  #stopKeepAlive: (() => void) | undefined

  constructor(id: string, caller: Omit<Caller, 'session' | 'headers'>, owner: string, house: FrontContext) {
    super({ ...caller, session: id, headers: new Map() }, house)
    this.id = id
    this.owner = owner
  }

  /** True while a reader is there or a call is running. */
  get isBusy(): boolean {
    return this.running.size > 0 || [...this.#streams.values()].some(log => log.hasReader)
  }

  override say(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.inbox().append(pieces, { merge })
  }

  /** A new stream of this session; its key is part of its event ids. */
  open(key = `p${++this.#opened}`): EventLog {
    const log = new EventLog(key, this.house.limits, this.house.shelf, this.owner)
    this.#streams.set(key, log)
    return log
  }

  /** The server-to-client stream. */
  inbox(): EventLog {
    const log = this.#streams.get(INBOX) ?? this.open(INBOX)
    this.#stopKeepAlive ??= this.house.ticker.keepAlive(log)
    return log
  }

  stream(key: string): EventLog | undefined {
    return this.#streams.get(key)
  }

  forget(log: EventLog): void {
    this.#streams.delete(log.key ?? '')
  }

  /**
   * Sends what 2025-11-25 opens every stream with, so that a client can come back before the first message: an id and
   * empty data. `retry` belongs before a close that the client is to resume, and the gateway closes no stream that way;
   * Java SDK 1.0-2.0 fails a whole reply over a `retry` line.
   */
  prime(log: EventLog): void {
    if (manners(this.caller.revision).priming) void log.append([])
  }

  end(): void {
    if (!this.stop()) return
    this.#stopKeepAlive?.()
    for (const log of this.#streams.values()) {
      log.finish()
      log.clear()
    }
    this.#streams.clear()
  }
}
