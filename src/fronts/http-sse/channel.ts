import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import type { FrontContext } from '../http/front-request.ts'
import { ClientSession } from '../sessions/client-session.ts'
import type { ClientIdentity } from '../sessions/handshake.ts'
import type { CallOutcome } from '../sessions/response-collector.ts'
import type { KeepAliveEntry } from '../streams/keep-alive.ts'
import type { EventOutbox } from '../streams/outbox.ts'
import { errorData, lifecycleData, type NamedEvents } from './channel-events.ts'

const TOO_FAR_BEHIND = rpcError('internal', 'The reader of this channel has fallen too far behind')
const NO_HEADERS: Caller['headers'] = new Map()

/** One legacy client over HTTP+SSE: the stream is the session, and the client posts its messages beside it. */
export class ClientChannel extends ClientSession {
  readonly id: string
  readonly #openedBy: 'sse' | 'mcp'
  readonly #named: NamedEvents
  readonly #outbox: EventOutbox
  readonly recordCall: ((id: Json) => () => void) | undefined
  keepAliveEntry: KeepAliveEntry | undefined
  #usedMcp = false
  #usedMessages = false

  constructor({ id, caller, openedBy, named, outbox, recordCall }: ChannelOptions, context: FrontContext) {
    super({ ...caller, session: id, isTransient: true, headers: NO_HEADERS }, context)
    this.id = id
    this.#openedBy = openedBy
    this.#named = named
    this.#outbox = outbox
    this.recordCall = recordCall
  }

  /** Sends the first events; `endpoint` comes before all others, because some clients read the first `data:` line. */
  open(endpoint: string): void {
    void this.#outbox.send('endpoint', [Buffer.from(endpoint)])
    if (!this.#named.lifecycle) return
    const data = lifecycleData('streamOpened', { timestamp: new Date().toISOString(), sessionId: this.id })
    void this.#outbox.send('lifecycle', data)
  }

  /** Servers shape a session by its client's capabilities: one that was used without them cannot get them later. */
  protected override identifiedAs(identity: ClientIdentity): Caller {
    return { ...this.caller, ...identity, session: this.hasListened ? `${this.id}.2` : this.id }
  }

  /** Must be called for each message: the event name of later messages depends on the endpoints a client uses. */
  recordUse(endpoint: PostEndpoint): void {
    if (endpoint === 'mcp') this.#usedMcp = true
    else this.#usedMessages = true
  }

  respond(endpoint: PostEndpoint, outcome: CallOutcome): void {
    if (outcome !== 'none') void this.#send(RESPONSE_EVENT[endpoint], outcome)
  }

  override send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#send(this.#usedMcp && !this.#usedMessages ? 'notification' : 'message', pieces, merge)
  }

  keepAlive(): void {
    this.#outbox.keepAlive()
  }

  /** Sends a named ping; false if this client gets none from now on. */
  ping(): boolean {
    const { ping, lifecycle } = this.#named
    if (ping === 'never' || (ping === 'oldest' && this.caller.revision !== OLDEST)) return false
    if (this.#openedBy === 'mcp' && lifecycle)
      void this.#send('lifecycle', lifecycleData('ping', { timestamp: new Date().toISOString() }), 'ping')
    else void this.#send('ping', [], 'ping')
    return true
  }

  end(reason: ChannelEndReason): void {
    if (!this.stop()) return
    if (this.#named.lifecycle) void this.#outbox.send('lifecycle', lifecycleData('streamClosed', { reason }))
    this.#outbox.end()
  }

  /** Ends the channel because of an error of its own. */
  fail(error: RpcError): void {
    if (this.isEnded) return
    if (this.#named.lifecycle) void this.#outbox.send('error', errorData(error))
    this.end('error')
  }

  /** Must be called when the client has closed its stream. */
  closed(): void {
    this.#outbox.closed()
    this.stop()
  }

  #send(event: string, pieces: Buffer[], merge?: string): void | Promise<void> {
    if (this.isEnded) return
    if (!this.#outbox.isOverrun) return this.#outbox.send(event, pieces, merge)
    this.#outbox.discard()
    this.fail(TOO_FAR_BEHIND)
  }
}

/** The endpoints that accept messages for a channel. */
export type PostEndpoint = 'messages' | 'message' | 'mcp'

/** The event name of a response depends on the endpoint its request was posted to. */
const RESPONSE_EVENT: Readonly<Record<PostEndpoint, string>> = {
  messages: 'message',
  message: 'message',
  mcp: 'response',
}

/** Why a channel ends, as reported to its client. */
export type ChannelEndReason = 'shutdown' | 'closed' | 'error'

interface ChannelOptions {
  readonly id: string
  readonly caller: Omit<Caller, 'session' | 'headers'>
  readonly openedBy: 'sse' | 'mcp'
  readonly named: NamedEvents
  readonly outbox: EventOutbox
  /** Stores that a call is open; the returned function must be called when it has ended. Undefined: it is not stored. */
  readonly recordCall: ((id: Json) => () => void) | undefined
}
