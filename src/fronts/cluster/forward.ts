import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { SlotEntry } from '../../std/slot-list.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { CLOCK_HEADER, REPLICA_HEADER, responseHeaders } from './forward-headers.ts'
import { lostEvents } from './lost-request.ts'

/** How a forward ended. Only what is `unsent` may be sent again: the home has not begun to serve it. */
export type ForwardResult =
  | { readonly kind: 'passed' } // the client has the response, as far as there was one and the client read it
  | { readonly kind: 'unsent'; readonly isGone: boolean; readonly why: string } // gone: that replica is not at its address
  | { readonly kind: 'clock'; readonly there: number } // the caller was sealed with a clock that differs from the one there
  | { readonly kind: 'lost' } // the home may have begun to serve it, and there is no response

const ABORTED = Object.assign(new Error('aborted'), { code: 'ABORTED' })
const MISDIRECTED = 421
const COMMENT_CHUNK = 64 // bytes: longer chunks hold events
const ONLY_COMMENTS = /^(?::[^\n]*\n|\n)*$/

/** One request on its way to another replica, and the response on its way back. Reads no faster than the client does. */
export class Forward implements Dispatcher.DispatchHandler, SlotEntry {
  readonly replica: string
  slot = -1
  readonly #request: FrontRequest
  readonly #body: Buffer | undefined
  readonly #settle: (result: ForwardResult) => void
  #controller: Dispatcher.DispatchController | undefined
  #phase: 'connect' | 'sent' | 'response' | 'done' = 'connect'
  #left = Number.POSITIVE_INFINITY // bytes of a body whose length is known
  #needsEvent = false // the client of an event stream has nothing that it could resume after

  constructor(
    request: FrontRequest,
    body: Buffer | undefined,
    replica: string,
    settle: (result: ForwardResult) => void,
  ) {
    this.#request = request
    this.#body = body
    this.replica = replica
    this.#settle = settle
    request.response.on('close', this.#onClose).on('drain', this.#onDrain)
  }

  /** The lease of the home has ended. */
  cut(): void {
    this.#fail({ kind: 'unsent', isGone: true, why: 'its lease has ended' })
  }

  /** This replica shuts down: streams end, as if there was nothing more to send. Their clients resume them elsewhere. */
  end(): void {
    if (this.#phase !== 'response') return
    this.#finish({ kind: 'passed' })
    if (this.#needsEvent) this.#break()
    else this.#request.response.end()
    this.#controller?.abort(ABORTED)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#phase === 'done') return controller.abort(ABORTED)
    this.#phase = 'sent'
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.#phase === 'done') return
    if (headers[REPLICA_HEADER] !== this.replica) return this.#rejected(status, headers)
    this.#phase = 'response'
    const { response, raw } = this.#request
    const length = headers['content-length']
    if (length !== undefined) this.#left = Number(length)
    response.writeHead(status, responseHeaders(headers))
    if (!isEventStream(headers['content-type'])) return
    this.#needsEvent = raw.method === 'POST'
    process.nextTick(() => response.writableLength === 0 && !response.destroyed && response.flushHeaders()) // with the first event, if that came along
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#phase !== 'response') return
    const { response } = this.#request
    this.#left -= chunk.length
    if (this.#needsEvent) this.#needsEvent = isOnlyComments(chunk)
    if (this.#left <= 0) response.end(chunk)
    else if (!response.write(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    if (this.#phase !== 'response') return
    this.#finish({ kind: 'passed' })
    this.#request.response.end()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error & { code?: unknown }): void {
    this.#fail({ kind: 'unsent', isGone: error.code === 'ECONNREFUSED', why: error.message || String(error.code) })
  }

  readonly #onClose = (): void => {
    if (this.#phase === 'done') return
    this.#finish({ kind: 'passed' })
    this.#controller?.abort(ABORTED)
  }

  readonly #onDrain = (): void => {
    if (this.#controller?.paused) this.#controller.resume()
  }

  /** Answered by a replica that does not serve it, or by another program. */
  #rejected(status: number, headers: IncomingHttpHeaders): void {
    const there = Number(headers[CLOCK_HEADER])
    if (there > 0) this.#finish({ kind: 'clock', there })
    else this.#finish({ kind: 'unsent', isGone: status === MISDIRECTED, why: `it answered HTTP ${status}` })
    this.#controller?.abort(ABORTED)
  }

  #fail(unsent: ForwardResult): void {
    const phase = this.#phase
    if (phase === 'done') return
    this.#finish(phase === 'connect' ? unsent : { kind: phase === 'sent' ? 'lost' : 'passed' })
    if (phase === 'response') this.#break()
    this.#controller?.abort(ABORTED)
  }

  /** A client that has received an event resumes after it. For others the error is the last event. */
  #break(): void {
    const { response } = this.#request
    if (!this.#needsEvent) return void response.destroy()
    for (const piece of lostEvents(this.#body)) response.write(piece)
    response.end()
  }

  #finish(result: ForwardResult): void {
    this.#phase = 'done'
    this.#request.response.off('close', this.#onClose).off('drain', this.#onDrain)
    this.#settle(result)
  }
}

const isOnlyComments = (chunk: Buffer): boolean =>
  chunk.length <= COMMENT_CHUNK && ONLY_COMMENTS.test(chunk.toString('latin1'))
