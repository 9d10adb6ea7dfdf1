import type { TappedContent, TappedMessage } from '../../protocol/message-tap.ts'
import type { RecordedKind } from '../../protocol/recording.ts'
import type { Json } from '../../wire/json/json.ts'
import {
  type ErrorObject,
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  joinBuffers,
} from '../../wire/json-rpc.ts'
import { FORM } from './block-format.ts'

const ENVELOPE = 48 // bytes of a message besides its params, result or error
const LARGE = 16 * 1024 // bytes of a message that is copied at once, so that it is not kept in memory as a whole
const NO_ID = 0
const NO_PIECES: readonly Buffer[] = []

/**
 * One message that is not in a block yet. Fronts and transports describe messages by objects of many shapes: what is needed of
 * them is read once, into an object of one shape, because the writer reads each member several times.
 */
export class PendingMessage {
  readonly at: number // milliseconds of the monotonic clock
  readonly server: number // its place among the servers of the exchange; -1: it was exchanged with the client
  readonly direction: 'in' | 'out'
  readonly kind: RecordedKind
  readonly method: string | undefined
  readonly headers: string | undefined
  readonly size: number // bytes of the message
  readonly kept: number // of them, bytes that are kept
  readonly isLarge: boolean // its start is copied
  form: number // of FORM
  id: Json | number | undefined
  body: Json | undefined // params, result, or the data of an error
  error: ErrorObject | undefined
  pieces: readonly Buffer[]

  constructor(
    at: number,
    server: number,
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    headers: string | undefined,
    content: TappedContent,
    maxBytes: number,
  ) {
    this.at = at
    this.server = server
    this.direction = direction
    this.kind = kind
    this.method = method
    this.headers = headers
    let form: number = FORM.bytes
    let id: Json | number | undefined
    let body: Json | undefined
    let error: ErrorObject | undefined
    let pieces = NO_PIECES
    let size = ENVELOPE
    if (isPieces(content)) {
      pieces = content
      size = 0
      for (const piece of content) size += piece.length
    } else {
      switch (content.kind) {
        case 'request':
          form = FORM.call
          id = content.id
          body = content.params
          break
        case 'notification':
          form = FORM.call
          body = content.params
          break
        case 'response':
          form = FORM.result
          id = content.id
          body = content.result
          break
        case 'error':
          form = FORM.error
          id = content.id
          error = content.error
          body = error.data
          size += error.message.length
      }
    }
    if (body) size += body.size
    this.size = size
    this.kept = Math.min(size, maxBytes)
    this.isLarge = size > LARGE || (body !== undefined && body.retained > 4 * LARGE)
    this.form = form
    this.id = id
    this.body = body
    this.error = error
    this.pieces = pieces
  }

  /** Copies the start of a large message: the message itself must not stay in memory. */
  copyStart(content: TappedContent): void {
    const all = joinBuffers(isPieces(content) ? content : encodeTapped(content))
    const copy = Buffer.allocUnsafeSlow(Math.min(this.kept, all.length))
    all.copy(copy, 0, 0, copy.length)
    this.form = FORM.bytes
    this.id = undefined
    this.body = undefined
    this.error = undefined
    this.pieces = [copy]
  }
}

const isPieces = (content: TappedContent): content is readonly Buffer[] => Array.isArray(content)

const encodeTapped = (message: TappedMessage): readonly Buffer[] => {
  switch (message.kind) {
    case 'request':
      return encodeRequest(message.id, message.method, message.params)
    case 'notification':
      return encodeNotification(message.method, message.params)
    case 'response':
      return encodeResult(message.id ?? NO_ID, message.result)
    case 'error':
      return encodeError(message.id, message.error)
  }
}
