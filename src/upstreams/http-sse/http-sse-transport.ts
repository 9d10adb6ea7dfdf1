import type { Caller } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { backoffMs } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, requestBody } from '../../wire/json-rpc.ts'
import { DISCONNECTED, errorOfFailure, type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders, type HttpLink } from '../http/http-link.ts'
import type { ResponseEnd } from '../http/response-reader.ts'
import type { Recovery, UpstreamCall } from '../session/call.ts'
import type { SendOutcome } from '../session/gateway-request.ts'
import { performHandshake } from '../session/handshake.ts'
import { SendQueue } from '../session/send-queue.ts'
import type { LegacySession } from '../session/session.ts'
import { isSessionGone } from '../session/session-gone.ts'
import type { SessionTransport } from '../session/session-transport.ts'
import type { SpareChannel } from './spare-channel.ts'
import { SseChannel } from './sse-channel.ts'

interface HttpSseOptions {
  readonly link: HttpLink
  readonly requiresHandshake: boolean // the server is modern and need not accept one
  readonly hasAccepted: boolean // the server accepted a POST at the URL of the channel
  readonly spare: SpareChannel
}

const BACKOFF = { firstMs: 1000, longestMs: 30_000 }
const STEADY_MS = 30_000 // a server that ends channels sooner is asked less and less often
const CHANNEL_LOST: FailureDetails = {
  reason: 'upstream_stream_lost',
  text: 'lost the channel the answer was to come on',
}

/**
 * Carries a legacy session over HTTP+SSE. A call is answered on the channel, in the reply to its POST, or on both:
 * the first answer counts. If the channel breaks, the next call opens another.
 */
export class HttpSseTransport implements SessionTransport<SseChannel> {
  readonly isShared = true
  readonly dialect = 'http-sse'
  readonly correlates = false
  readonly hasBackChannel = true
  readonly link: HttpLink
  readonly #session: LegacySession<SseChannel>
  readonly #caller: Caller
  readonly #options: HttpSseOptions
  readonly #queue: SendQueue
  #channel: SseChannel | undefined
  #connectedAt = 0
  #unsteady = 0 // channels in a row that ended soon
  readonly #connecting = new SingleFlight()

  constructor(session: LegacySession<SseChannel>, caller: Caller, options: HttpSseOptions) {
    this.link = options.link
    this.#session = session
    this.#caller = caller
    this.#options = options
    this.#queue = new SendQueue({
      post: (pieces, what, done) => this.#postNow(pieces, what, done),
      log: this.link.log,
    })
  }

  get revision(): Revision {
    return this.#session.revision
  }

  get unsent(): number {
    return this.#queue.size
  }

  /** Rejects with NoChannel if there is no channel to use. */
  async open(): Promise<void> {
    if (!(await this.#takeSpare())) await this.#connect()
  }

  send(call: UpstreamCall<SseChannel>): PendingRequest | undefined {
    const channel = this.#openChannel
    if (!channel || this.#connecting.running) {
      call.postAfter(this.#reconnect())
      return undefined
    }
    call.begin(channel)
    const { method } = call.exchange
    const { params } = call
    const body = requestBody(call.id, method, params)
    call.recordSent(params, channel.headers)
    return channel.post(body, addCallerHeaders([], call.exchange), call)
  }

  recover(call: UpstreamCall<SseChannel>, end: ResponseEnd): Recovery {
    if (end.kind !== 'refused') return call.isAccepted ? 'elsewhere' : undefined
    return isSessionGone(end) && call.renew(lost => this.#renew(lost)) ? 'handled' : undefined
  }

  post(pieces: Buffer[], what: string, onLost?: () => void): void {
    this.#queue.put(pieces, what, onLost)
  }

  /** Nothing says which call a question belongs to: most likely it is the latest that can be asked. */
  findAsked(calls: readonly UpstreamCall<SseChannel>[]): readonly UpstreamCall<SseChannel>[] {
    return calls.filter(({ canBeAsked }) => canBeAsked)
  }

  async close(): Promise<void> {
    await this.#queue.close()
    if (!this.#channel) return
    if (this.#caller.isHealthCheck) this.#options.spare.keep(this.#channel, this.#session.lastId)
    else this.#channel.close()
  }

  get #openChannel(): SseChannel | undefined {
    return this.#channel?.isOpen ? this.#channel : undefined
  }

  #postNow(pieces: Buffer[], what: string, done: (outcome: SendOutcome) => void): void {
    const channel = this.#openChannel
    if (channel) return channel.sendMessage(pieces, what, done)
    this.link.log.debug({ what }, 'dropped a message: the channel is closed')
    done('refused')
  }

  /** A server that forgot the session did not run the request: on a new channel it may. */
  #renew(lost: SseChannel | undefined): Promise<void> {
    if (lost && lost === this.#channel) this.#drop(lost)
    return this.#reconnect()
  }

  #reconnect(): Promise<void> {
    if (this.#openChannel && !this.#connecting.running) return Promise.resolve()
    return this.#connecting.run(() => this.#startOver())
  }

  #reconnectLater(failures: number): void {
    const reconnect = () => {
      if (this.#session.isListenedTo) this.#reconnect().catch(() => this.#reconnectLater(failures + 1))
    }
    if (this.#session.isListenedTo) setTimeout(reconnect, backoffMs(BACKOFF, failures)).unref()
  }

  async #startOver(): Promise<void> {
    this.link.log.info({}, 'channel lost; opening a new one')
    try {
      const channel = await this.#connect()
      for (const [method, params] of this.#session.replayRequests())
        await channel.sendRequest(method, params, this.#session.nextId())
    } catch (error) {
      this.#session.closeIfReplaced(error)
      throw error
    }
    this.#session.announceMissed()
  }

  /** Initializes a session on the channel of a health check; false if there is none, or the server refuses. */
  async #takeSpare(): Promise<boolean> {
    const spare = this.#options.spare.take()
    if (!spare?.channel.isOpen) return false
    const { channel, lastId } = spare
    this.#session.startAfter(lastId)
    channel.handTo(this.#listenerOf(channel))
    this.#channel = channel
    try {
      await this.#initialize(channel)
      if (channel.isOpen) return true
    } catch (error) {
      this.link.log.debug({ err: error }, 'channel of a health check could not be used; opening a new one')
    }
    this.#drop(channel)
    return false
  }

  async #connect(): Promise<SseChannel> {
    const channel = new SseChannel(this.link)
    channel.handTo(this.#listenerOf(channel))
    this.#channel = channel // from its first event on the server may want an answer
    try {
      await channel.open(this.#options.hasAccepted)
      await this.#initialize(channel)
      if (!channel.isOpen || this.#session.isClosing) throw new UpstreamFailure(this.link.name, DISCONNECTED)
    } catch (error) {
      this.#drop(channel)
      throw error
    }
    return channel
  }

  async #initialize(channel: SseChannel): Promise<void> {
    const send = (method: string, params: Json) => channel.sendRequest(method, params, this.#session.nextId())
    const handshake = await performHandshake(this.link, this.#caller, send, {
      mayBeSilent: channel.postsToItself,
      isRequired: this.#options.requiresHandshake,
    })
    this.#session.initialized(handshake)
    this.#connectedAt = Date.now()
    if (handshake.isImplied) return
    channel.setRevision(handshake.revision)
    const pieces = encodeNotification(NOTIFICATIONS.initialized, Json.empty)
    await new Promise<void>(done => channel.sendMessage(pieces, 'initialized', () => done()))
  }

  #listenerOf(channel: SseChannel): Parameters<SseChannel['handTo']>[0] {
    return {
      message: message => this.#session.received(message),
      lost: () => {
        this.#lost(channel)
        const wasSteady = Date.now() - this.#connectedAt >= STEADY_MS
        this.#reconnectLater(wasSteady ? 0 : this.#unsteady)
        this.#unsteady = wasSteady ? 0 : this.#unsteady + 1
      },
    }
  }

  #drop(channel: SseChannel): void {
    channel.close()
    this.#lost(channel)
  }

  #lost(channel: SseChannel): void {
    if (this.#channel === channel) this.#channel = undefined
    this.#session.clearQuestions()
    this.#queue.clear()
    const error = errorOfFailure(this.link.name, CHANNEL_LOST)
    for (const call of this.#session.calls.filter(({ target }) => target === channel)) call.fail(error)
  }
}
