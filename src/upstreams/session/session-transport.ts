import type { Caller } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import type { CallTransport, UpstreamCall } from './call.ts'

/** How a legacy session travels: Streamable HTTP, HTTP+SSE or stdio. `T` is what a call is sent to. */
export interface SessionTransport<T> extends CallTransport<T> {
  readonly link: CallTransport<T>['link'] & { readonly log: Log }
  readonly isShared: boolean // all messages of the server come on one stream
  readonly correlates: boolean // false: a question does not tell which call it belongs to
  readonly hasBackChannel: boolean // the server can send messages outside the streams of calls
  readonly isBusy?: boolean // it needs the session although no call is under way
  readonly unsent?: number // messages the server has not taken yet
  /** Connects, and reports the handshake to the session; rejects with UpstreamFailure. */
  open(): Promise<void>
  /**
   * Sends a message that has no answer; drops it where nothing is connected. With `onLost` it is sent again for a while,
   * and reported if the server has not taken it.
   */
  post(pieces: Buffer[], what: string, onLost?: () => void): void
  /** Sends a notification of the client, and connects for it; by default as `post` does. */
  notify?(pieces: Buffer[], method: string): void
  noteUser?(caller: Caller): void
  /** The calls that a question may belong to that came on no stream of a call; if none, the listeners get it. */
  findAsked(calls: readonly UpstreamCall<T>[]): readonly UpstreamCall<T>[]
  /** A question arrived; the returned function is called once it is settled. */
  questionAsked?(method: string): (() => void) | undefined
  /** Ends the conversation. All calls have ended already. */
  close(): Promise<void>
}
