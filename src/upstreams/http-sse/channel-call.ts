import type { RpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { join, requestPieces } from '../../wire/json-rpc.ts'
import { errorOfThrown, type FailureDetails, toRpcError } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders } from '../http/http-link.ts'
import type { ResponseEnd } from '../http/response-reader.ts'
import { Outbox } from '../session/outbox.ts'
import { type Home, isSessionGone, SessionCall } from '../session/session-call.ts'
import type { Channel } from './channel.ts'

/** What a call needs of the session it belongs to. */
export interface ChannelHome extends Home {
  readonly channel: Channel | undefined // if it is open
  /** Opens a new channel in place of that one, together with everybody who found out. */
  renew(lost: Channel | undefined): Promise<void>
}

const CUT: FailureDetails = { reason: 'upstream_stream_lost', text: 'lost the channel the answer was to come on' }
const NOTHING: PendingRequest = { abort: () => {} }

/** A call whose answer comes on a channel that many share, in the reply to its POST, or both: the first one counts. */
export class ChannelCall extends SessionCall {
  readonly #home: ChannelHome
  #channel: Channel | undefined // the one it was posted for
  #isTaken = false // the server said yes to the POST
  #isPosted = false // and the reply to it is over
  #hasRenewed = false

  constructor(home: ChannelHome, exchange: Exchange, id: number) {
    // A channel is never stopped for one reader who is behind.
    const outbox = new Outbox(exchange.sink, error => this.#giveUp(error))
    super(home, { ...exchange, sink: frame => outbox.put(frame) }, id)
    this.#home = home
  }

  /** The channel is gone, and with it the answer. */
  cutFrom(channel: Channel): void {
    if (this.#channel === channel) this.fail(toRpcError(this.link.name, CUT))
  }

  started(status: number): void {
    this.#isTaken = status < 300
  }

  protected send(): PendingRequest {
    const { channel } = this.#home
    this.#channel = channel
    this.#isTaken = this.#isPosted = false
    if (!channel) {
      this.fail(toRpcError(this.link.name, CUT))
      return NOTHING
    }
    const body = join(requestPieces(this.id, this.exchange.method, this.params))
    return channel.post(body, addCallerHeaders([], this.exchange.caller), this)
  }

  protected recover(end: ResponseEnd): boolean {
    this.#isPosted = true
    return end.kind === 'refused' ? this.#recoverSession(end) : this.#isTaken
  }

  protected override finished(frame: Frame | undefined): void {
    if (this.#isPosted) this.link.deadlines.delete(this)
    super.finished(frame)
  }

  /** A server that forgot the session did not run the request: on a new channel it may. */
  #recoverSession(end: Extract<ResponseEnd, { kind: 'refused' }>): boolean {
    if (this.#hasRenewed || !isSessionGone(end)) return false
    const forgotten = this.#channel
    this.#hasRenewed = true
    this.#channel = undefined
    this.hold()
    this.#home.renew(forgotten).then(
      () => this.post(),
      (thrown: unknown) => this.fail(errorOfThrown(this.link.name, thrown)),
    )
    return true
  }

  #giveUp(error: RpcError): void {
    if (this.isDone) return
    this.cancelled(error.message)
    this.fail(error)
  }
}
