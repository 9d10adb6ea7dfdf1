import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { ByteText } from '../../wire/json-rpc.ts'

/** One request as it is written to a connection; `headers` is flat: name, value, name, value. */
export interface DispatchedRequest {
  readonly origin: string
  readonly path: string
  readonly method: Dispatcher.HttpMethod
  readonly headers: readonly string[]
  readonly body: Buffer | ByteText | null
}

/** Controls the request that a handler waits for. */
export interface DispatchController {
  abort(reason: Error): void
  /** No data and no end is delivered until `resume`. */
  pause(): void
  resume(): void
}

/**
 * Receives the response to a request: the part of undici's interface that the gateway uses. Either `onResponseEnd` or
 * `onResponseError` is called last; an error before `onRequestStart` means that nothing has been sent.
 */
export interface DispatchHandler {
  /** The request is about to be written. */
  onRequestStart(controller: DispatchController): void
  onResponseStart(controller: DispatchController, status: number, headers: IncomingHttpHeaders): void
  onResponseData(controller: DispatchController, chunk: Buffer): void
  onResponseEnd(controller: DispatchController): void
  onResponseError(controller: DispatchController, error: Error): void
}

/** Reports an error of a request that has no connection. */
export const NO_CONTROLLER: DispatchController = { abort: () => {}, pause: () => {}, resume: () => {} }

/** The connections are closed on purpose; the code is the one that undici gives it. */
export class ConnectionsClosed extends Error {
  readonly code = 'UND_ERR_DESTROYED'
}
