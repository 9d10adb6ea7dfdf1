import type { Json } from '../wire/json/json.ts'
import type { ErrorObject } from '../wire/json-rpc.ts'
import type { RecordedKind } from './recording.ts'

/** A server as it is spoken to. */
export interface TappedServer {
  readonly name: string
  readonly dialect: string
  readonly revision: string
}

/** A message that was read, or that never becomes bytes. */
export type TappedMessage =
  | { readonly kind: 'request'; readonly id: Json | number; readonly method: string; readonly params: Json }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Json }
  | { readonly kind: 'response'; readonly id: Json | number | undefined; readonly result: Json }
  | { readonly kind: 'error'; readonly id: Json | number | undefined; readonly error: ErrorObject }

/** What travelled: the bytes as they were sent, or the message as it was read. Neither may change afterwards. */
export type TappedContent = readonly Buffer[] | TappedMessage

/** Gets the messages of one exchange as they travel, on both sides of the gateway. Present only while the flight recorder is on. */
export interface MessageTap {
  /** A message between the client and the gateway; `in`: the gateway received it. `reply` is of `http-reply.ts`. */
  clientMessage(
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    reply?: readonly string[],
  ): void
  /**
   * A message between the gateway and a server; `headers` is flat: name, value, name, value. Those of a response are
   * of `http-reply.ts`.
   */
  serverMessage(
    server: TappedServer,
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    headers?: readonly string[],
  ): void
  /** The client has sent a retry for a parked call: what its server sends from now on belongs to that exchange. */
  continueIn(next: MessageTap): void
}
