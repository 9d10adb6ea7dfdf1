import type { Readable } from 'node:stream'
import { ChunkBuffer } from './chunk-buffer.ts'

/** The buffer for an announced length is allocated once 1/64 of it has arrived. */
const MAX_OVERALLOCATION = 64

/** The body, or its content-length, is larger than the limit. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
  readonly limit: number
  constructor(limit: number) {
    super(`The body is larger than ${limit} bytes`)
    this.limit = limit
  }
}

/** The connection closed before the body was complete. */
export class BodyAborted extends Error {
  override readonly name = 'BodyAborted'
  constructor() {
    super('The body ended before it was complete')
  }
}

/** A request, a response, or any other stream of bytes; its content-length is used if there is one. */
export type BodyStream = Readable & {
  readonly headers?: { readonly 'content-length'?: string | undefined } | undefined
}

/** Gets a whole body, or why there is none. */
export interface BodyReceiver {
  read(body: Buffer): void
  /** BodyTooLarge (the stream is paused, the caller answers and closes), BodyAborted, or the error of the stream. */
  failed(error: Error): void
}

/** Reads a whole body into one buffer, each byte copied at most once. */
export const receiveBody = (stream: BodyStream, limit: number, receiver: BodyReceiver): void => {
  const announced = contentLength(stream)
  if (announced > limit) return receiver.failed(new BodyTooLarge(limit))
  if (stream.destroyed || stream.readableEnded) return receiver.failed(stream.errored ?? new BodyAborted())
  const body = collector(announced)
  let waiting: BodyReceiver | undefined = receiver // the listeners of the stream must not keep it, and the body with it

  const fail = (error: Error): void => {
    const failing = waiting
    waiting = undefined
    failing?.failed(error)
  }
  const finish = (): void => {
    const finished = waiting
    waiting = undefined
    finished?.read(body.take())
  }
  // The listeners stay: the stream goes with its request, and to remove one costs more than to add it.
  stream.on('data', (chunk: Buffer) => {
    if (!waiting) return
    if (body.length() + chunk.length > limit) {
      stream.pause()
      return fail(new BodyTooLarge(limit))
    }
    body.push(chunk)
  })
  stream.on('end', finish)
  stream.on('error', fail)
  stream.on('close', () => waiting && fail(new BodyAborted()))
}

/** As `receiveBody`; rejects with why there is no body. */
export const readBody = (stream: BodyStream, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => receiveBody(stream, limit, { read: resolve, failed: reject }))

const contentLength = (stream: BodyStream): number => {
  const text = stream.headers?.['content-length']
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : -1
}

/** Collects chunks; once enough of an announced length has arrived, in one buffer of that length. */
const collector = (announced: number) => {
  const chunks = new ChunkBuffer()
  let whole: Buffer | undefined
  let length = 0

  const push = (chunk: Buffer) => {
    const after = length + chunk.length
    if (whole && after > announced) {
      chunks.push(whole.subarray(0, length))
      whole = undefined
    } else if (!whole && length > 0 && after <= announced && after * MAX_OVERALLOCATION >= announced) {
      whole = Buffer.allocUnsafeSlow(announced)
      chunks.take().copy(whole)
    }
    if (whole) chunk.copy(whole, length)
    else chunks.push(chunk)
    length = after
  }
  const take = (): Buffer => {
    const body = whole?.subarray(0, length) ?? chunks.take()
    whole = undefined
    return body
  }
  return { push, take, length: () => length }
}
