import type { Caller } from '../protocol/exchange.ts'
import { manners } from '../protocol/revisions.ts'
import { Conversation } from './conversation.ts'
import { EventLog } from './event-log.ts'
import type { House } from './visit.ts'

const INBOX = 'g'
const RETRY_MS = 1000

/** One legacy client over Streamable HTTP, between its `initialize` and its end, with its streams. */
export class Session extends Conversation {
  readonly id: string
  lastUsed = Date.now()

  readonly #streams = new Map<string, EventLog>()
  #opened = 0
  #stopKeepAlive: (() => void) | undefined

  constructor(id: string, caller: Omit<Caller, 'session' | 'headers'>, house: House) {
    super({ ...caller, session: id, headers: new Map() }, house)
    this.id = id
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
    const log = new EventLog(key, this.house.limits, this.house.shelf)
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

  /** What 2025-11-25 opens every stream with, so that a client can come back before the first message. */
  prime(log: EventLog): void {
    if (manners(this.caller.revision).priming) void log.append([], { retry: RETRY_MS })
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
