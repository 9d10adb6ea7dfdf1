import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { transportRulesOf } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { FrontContext } from '../http/front-request.ts'
import { ClientSession } from '../sessions/client-session.ts'
import type { StoredSession } from '../sessions/stored-session.ts'
import { type EventId, postStreamKey, type StreamTags, serverStreamKey, streamHeadKey } from '../streams/event-id.ts'
import { EventLog, type StreamJournal } from '../streams/event-log.ts'
import type { KeepAliveEntry } from '../streams/keep-alive.ts'
import type { SessionRecord } from './session-record.ts'

const GONE_MS = 60_000 // without a stream and without a request

export type SessionCaller = Omit<Caller, 'session' | 'headers'>

interface StreamableSessionOptions {
  readonly id: string
  readonly caller: SessionCaller
  readonly owner: string // whose quota it counts for
  readonly token: string | undefined // id of the token it was opened with
  readonly tags?: StreamTags | undefined // of a session that outlives the process
}

/** A session that was found in this process. */
export interface SessionHere {
  readonly kind: 'here'
  readonly session: StreamableSession
}

/** One legacy client over Streamable HTTP from its `initialize` to its end, with its streams. */
export class StreamableSession extends ClientSession {
  readonly id: string
  readonly owner: string
  readonly token: string | undefined
  readonly here: SessionHere = { kind: 'here', session: this } // made once, and not for each request
  stored: StoredSession | undefined // undefined: it ends with the process
  readonly ending = new Abort()
  readonly #tags: StreamTags | undefined
  readonly #streams = new Map<string, EventLog>()
  #serverStream: EventLog | undefined
  #keepAliveEntry: KeepAliveEntry | undefined // the server-to-client stream
  #streamCount = 0
  #lastUsed = Date.now()
  rankedAt = this.#lastUsed // when it was put behind all others

  constructor({ id, caller, owner, token, tags }: StreamableSessionOptions, context: FrontContext) {
    super({ ...caller, session: id, headers: new Map() }, context)
    this.id = id
    this.owner = owner
    this.token = token
    this.#tags = tags
  }

  get lastUsed(): number {
    return this.#lastUsed
  }

  touch(): void {
    this.#lastUsed = Date.now()
  }

  /** True while a client reads one of its streams or a call is running. */
  get isBusy(): boolean {
    return this.inFlight.size > 0 || [...this.#streams.values()].some(log => log.hasReader)
  }

  /** A client that reads no stream may still be there, and send its next request soon. */
  override get hasClient(): boolean {
    return this.isBusy || Date.now() - this.#lastUsed < GONE_MS
  }

  override send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.serverStream().append(pieces, merge)
  }

  override save(): Promise<void> | undefined {
    return this.isEnded ? undefined : this.stored?.save() // another process may hold it by now
  }

  /** What is stored of it. */
  get record(): SessionRecord {
    const { caller, owner, token, level, subscriptions } = this
    return { caller, owner, token, level, uris: subscriptions.uris }
  }

  /** Takes over from the process that had this session before. */
  restore({ level, uris }: SessionRecord): void {
    this.markInitialized()
    this.questions.startAt(this.#epoch)
    if (level !== undefined) this.setLevel(level)
    for (const uri of uris) this.subscriptions.restore(uri)
  }

  /** Opens the stream that answers requests of these ids. */
  openStream(ids: readonly Json[]): EventLog {
    const [key] = this.#tagged(postStreamKey(this.#epoch, ++this.#streamCount, ids))
    const head = streamHeadKey(key)
    if (head !== undefined) void this.stored?.append(head, 0, [Json.of([...ids]).toBytes()])
    return this.#addStream(key)
  }

  /** The server-to-client stream. */
  serverStream(): EventLog {
    if (this.#serverStream) return this.#serverStream
    this.#serverStream = this.#addStream(this.serverStreamKeys(this.#epoch)[0])
    this.#keepAliveEntry = this.context.keepAlive.add(this.#serverStream)
    return this.#serverStream
  }

  /** The keys that the server-to-client stream of a home may have; the first is that of a stream of now. */
  serverStreamKeys(epoch: number): readonly [string, ...string[]] {
    return this.#tagged(serverStreamKey(epoch))
  }

  findStream(key: string): EventLog | undefined {
    return this.#streams.get(key)
  }

  /** Whether the id is of a stream of this session, in this process or a former one. */
  hasMade({ key, untagged }: EventId): boolean {
    return this.#tagged(untagged).includes(key)
  }

  /** Forgets a stream that no client will resume. */
  deleteStream({ key = '' }: EventLog): void {
    this.#streams.delete(key)
    const head = streamHeadKey(key)
    for (const stream of head === undefined ? [key] : [key, head]) this.stored?.dropStream(stream)
  }

  get #epoch(): number {
    return this.stored?.epoch ?? 1
  }

  #tagged(key: string): readonly [string, ...string[]] {
    const [first = key, ...others] = this.#tags?.tagged(this.id, key) ?? []
    return [first, ...others]
  }

  #addStream(key: string): EventLog {
    const { stored } = this
    const journal: StreamJournal | undefined = stored && ((sequence, data) => stored.append(key, sequence, data))
    const log = new EventLog(key, this.context, this.owner, journal)
    this.#streams.set(key, log)
    return log
  }

  /**
   * Sends the event that opens every stream of 2025-11-25, so that a client can reconnect before the first message: an
   * id and empty data. There is no `retry` line: it belongs before a close that the client is to resume, and Java SDK
   * 1.0-2.0 fails a whole reply over it.
   */
  prime(log: EventLog): void {
    if (transportRulesOf(this.caller.revision).priming) void log.append([])
  }

  /** Ends the calls and streams of this process; what is stored stays. */
  end(reason?: AbortReason): void {
    if (!this.stop(reason)) return
    this.ending.abort({ kind: 'gone' })
    if (this.#keepAliveEntry) this.context.keepAlive.delete(this.#keepAliveEntry)
    for (const log of this.#streams.values()) {
      log.finish()
      log.clear()
    }
    this.#streams.clear()
  }
}
