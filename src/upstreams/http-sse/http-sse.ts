import type { Caller, Exchange } from '../../protocol/exchange.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { notificationPieces } from '../../wire/json-rpc.ts'
import { DISCONNECTED, errorOfThrown, UpstreamFailure } from '../failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type Handshake, shakeHands } from '../session/handshake.ts'
import { LegacySession, type SessionOptions } from '../session/session.ts'
import { Channel } from './channel.ts'
import { ChannelCall, type ChannelHome } from './channel-call.ts'
import type { SpareChannel } from './spare-channel.ts'

/** How a channel of a server comes about. */
interface ChannelWay {
  readonly hasAccepted: boolean // the server took a request at the address of the channel
  readonly spare: SpareChannel
}

const REVIVE_MS = 1000
const LONGEST_REVIVE_MS = 30_000

/** A legacy session over HTTP+SSE, as one caller: one channel; should it break, the next call opens another. */
export class ChannelSession extends LegacySession<ChannelCall> implements ChannelHome {
  readonly #way: ChannelWay
  #channel: Channel | undefined
  #connecting: Promise<void> | undefined
  #handshake: Handshake | undefined

  private constructor(link: HttpLink, caller: Caller, options: SessionOptions, way: ChannelWay) {
    super(link, caller, options)
    this.#way = way
  }

  /** Opens the channel and shakes hands; rejects with UpstreamFailure, NoChannel if there is no channel to use. */
  static async open(link: HttpLink, caller: Caller, options: SessionOptions, way: ChannelWay): Promise<ChannelSession> {
    const session = new ChannelSession(link, caller, options, way)
    if (!(await session.#takeOver())) await session.#connect()
    return session
  }

  get revision(): Revision {
    return this.#agreed.revision
  }

  get correlates(): boolean {
    return false
  }

  get hasBackChannel(): boolean {
    return true
  }

  get channel(): Channel | undefined {
    return this.#channel?.isOpen ? this.#channel : undefined
  }

  renew(lost: Channel | undefined): Promise<void> {
    if (lost && lost === this.#channel) {
      lost.close()
      this.#lost(lost)
    }
    return this.#reconnect()
  }

  protected get introduction(): Json {
    return this.#agreed.result
  }

  protected createCall(exchange: Exchange, id: number): ChannelCall {
    return new ChannelCall(this, exchange, id)
  }

  protected begin(call: ChannelCall): void {
    if (this.channel && !this.#connecting) return call.start()
    this.#reconnect().then(
      () => call.start(),
      (thrown: unknown) => call.fail(errorOfThrown(this.link.name, thrown)),
    )
  }

  /** Nothing says which call a question belongs to: most likely it is the latest that can carry one. */
  protected callAsked(): ChannelCall | undefined {
    return this.calls.findLast(({ canBeAsked }) => canBeAsked)
  }

  /** A log line is about the only thing that was asked, if only one was. */
  protected callTold(method: string): ChannelCall | undefined {
    return method === 'notifications/message' && this.calls.length === 1 ? this.calls[0] : undefined
  }

  protected transmit(pieces: Buffer[], what: string, done: () => void): void {
    if (this.channel) return this.channel.tell(pieces, what, done)
    this.link.log.debug({ what }, 'there is no channel to send it for')
    done()
  }

  protected async disconnect(): Promise<void> {
    if (!this.#channel) return
    if (this.caller.isHealthCheck) this.#way.spare.keep(this.#channel, this.lastId)
    else this.#channel.close()
  }

  get #agreed(): Handshake {
    if (!this.#handshake) throw new Error('a session without a handshake')
    return this.#handshake
  }

  #reconnect(): Promise<void> {
    if (this.channel && !this.#connecting) return Promise.resolve()
    this.#connecting ??= this.#startOver().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  /** Whoever watches resources hears of them only while there is a channel. */
  #revive(ms: number): void {
    const isNeeded = () => this.told.isWatching && this.standing.size > 0 && !this.isClosing
    const again = () => this.#revive(Math.min(2 * ms, LONGEST_REVIVE_MS))
    const act = () => {
      if (isNeeded()) this.#reconnect().catch(again)
    }
    if (isNeeded()) setTimeout(act, ms).unref()
  }

  async #startOver(): Promise<void> {
    this.link.log.info({}, 'the channel is gone; opening a new one')
    try {
      const channel = await this.#connect()
      for (const [method, params] of this.told.again()) await channel.ask(method, params, this.nextId())
    } catch (error) {
      // It answers, but is no server of this kind any more: whoever comes next has to find out what it is.
      if (error instanceof UpstreamFailure && error.reason === 'upstream_protocol') void this.close()
      throw error
    }
    this.announceChanges()
  }

  #hooks(channel: () => Channel): ConstructorParameters<typeof Channel>[1] {
    return {
      message: message => this.strayed(message),
      lost: () => {
        this.#lost(channel())
        this.#revive(REVIVE_MS)
      },
    }
  }

  /** Shakes hands anew on the channel of a health check; false: there is none, or the server takes no other handshake. */
  async #takeOver(): Promise<boolean> {
    const spare = this.#way.spare.take()
    if (!spare?.channel.isOpen) return false
    const { channel, lastId } = spare
    this.startAfter(lastId)
    channel.handTo(this.#hooks(() => channel))
    this.#channel = channel
    try {
      await this.#greet(channel)
      if (channel.isOpen) return true
    } catch (error) {
      this.link.log.debug({ err: error }, 'the channel of a health check could not be used; opening a new one')
    }
    channel.close()
    this.#lost(channel)
    return false
  }

  async #connect(): Promise<Channel> {
    const channel: Channel = new Channel(
      this.link,
      this.#hooks(() => channel),
    )
    this.#channel = channel // from its first event on the server may want an answer
    try {
      await channel.open(this.#way.hasAccepted)
      await this.#greet(channel)
      if (!channel.isOpen || this.isClosing) throw new UpstreamFailure(this.link.name, DISCONNECTED)
    } catch (error) {
      channel.close()
      this.#lost(channel)
      throw error
    }
    return channel
  }

  async #greet(channel: Channel): Promise<void> {
    const say = (method: string, params: Json) => channel.ask(method, params, this.nextId())
    const handshake = await shakeHands(this.link, this.caller, say, {
      mayBeSilent: channel.isHere,
      isRequired: this.options.requiresHandshake,
    })
    this.#handshake = handshake
    if (handshake.isImplied) return
    channel.agree(handshake.revision)
    const pieces = notificationPieces('notifications/initialized', Json.empty)
    await new Promise<void>(resolve => channel.tell(pieces, 'readiness', resolve))
  }

  #lost(channel: Channel): void {
    if (this.#channel === channel) this.#channel = undefined
    this.questions.clear()
    this.postbox.clear()
    for (const call of [...this.calls]) call.cutFrom(channel)
  }
}
