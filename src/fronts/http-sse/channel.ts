import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import type { FrontContext } from '../http/front-request.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { fault, lifecycle, timestamp } from './channel-events.ts'
import type { Outbox } from './channel-outbox.ts'
import type { NamedEvents } from './named-events.ts'

/** The doors a message for a channel may come in by. */
export type Door = 'messages' | 'message' | 'mcp'

/** The name of the event an answer travels under is a matter of the door its request came in by. */
const ANSWER: Readonly<Record<Door, string>> = { messages: 'message', message: 'message', mcp: 'response' }

/** Why a channel ends, as its client is told. */
export type EndReason = 'shutdown' | 'closed' | 'error'

const BEHIND = rpcError('internal', 'The reader of this channel has fallen too far behind')

interface Opening {
  readonly id: string
  readonly caller: Omit<Caller, 'session' | 'headers'>
  readonly openedBy: 'sse' | 'mcp'
  readonly named: NamedEvents
  readonly outbox: Outbox
}

/** One legacy client over HTTP+SSE: a stream that is the session, and messages posted beside it. */
export class Channel extends ClientSession {
  readonly id: string
  readonly openedBy: 'sse' | 'mcp'
  readonly #named: NamedEvents
  readonly #outbox: Outbox
  #handshake: 'none' | 'begun' | 'done' = 'none'
  #usedMcp = false
  #usedMessages = false

  constructor({ id, caller, openedBy, named, outbox }: Opening, house: FrontContext) {
    super({ ...caller, session: id, headers: NO_HEADERS }, house)
    this.id = id
    this.openedBy = openedBy
    this.#named = named
    this.#outbox = outbox
  }

  /** Sends the first events; the endpoint comes before all others, because some clients read the first `data:` line. */
  open(endpoint: string): void {
    void this.#outbox.send('endpoint', [Buffer.from(endpoint)])
    if (this.#named.lifecycle)
      void this.#outbox.send('lifecycle', lifecycle('streamOpened', { timestamp: timestamp(), sessionId: this.id }))
  }

  /** True once a client has begun to introduce itself. */
  get isGreeted(): boolean {
    return this.#handshake !== 'none'
  }

  /** Greets the client; the returned caller is who it is if the far side agrees. */
  greet(hello: Pick<Caller, 'revision' | 'capabilities' | 'info'>): Caller {
    this.#handshake = 'begun'
    // Servers shape a session by what its client can do: one that has begun without saying so has been another.
    return { ...this.caller, ...hello, session: this.hasBegun ? `${this.id}.2` : this.id }
  }

  greeted(caller: Caller, isWelcome: boolean): void {
    this.#handshake = isWelcome ? 'done' : 'none'
    if (isWelcome) this.beginAnew(caller)
  }

  /** A message has come in by that door. */
  entered(door: Door): void {
    if (door === 'mcp') this.#usedMcp = true
    else this.#usedMessages = true
  }

  answer(door: Door, pieces: Buffer[]): void {
    void this.#send(ANSWER[door], pieces)
  }

  override say(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#send(this.#usedMcp && !this.#usedMessages ? 'notification' : 'message', pieces, merge)
  }

  keepAlive(): void {
    this.#outbox.comment()
  }

  /** Sends a named ping; false if this client gets none from now on. */
  ping(): boolean {
    const { ping, lifecycle: hasLifecycle } = this.#named
    if (ping === 'never' || (ping === 'oldest' && this.caller.revision !== OLDEST)) return false
    if (this.openedBy === 'mcp' && hasLifecycle)
      void this.#send('lifecycle', lifecycle('ping', { timestamp: timestamp() }), 'ping')
    else void this.#send('ping', [], 'ping')
    return true
  }

  end(reason: EndReason): void {
    if (!this.stop()) return
    if (this.#named.lifecycle) void this.#outbox.send('lifecycle', lifecycle('streamClosed', { reason }))
    this.#outbox.end()
  }

  /** Something is wrong with the channel itself. */
  fail(error: RpcError): void {
    if (this.isEnded) return
    if (this.#named.lifecycle) void this.#outbox.send('error', fault(error))
    this.end('error')
  }

  /** The client has closed its stream. */
  left(): void {
    this.#outbox.closed()
    this.stop()
  }

  #send(event: string, pieces: Buffer[], merge?: string): void | Promise<void> {
    if (this.isEnded) return
    if (!this.#outbox.isOverrun) return this.#outbox.send(event, pieces, merge)
    this.#outbox.discard()
    this.fail(BEHIND)
  }
}

const NO_HEADERS: Caller['headers'] = new Map()
