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

/**
 * Reads a whole body into one buffer, each byte copied at most once. Rejects with BodyTooLarge (the stream is
 * paused, the caller answers and closes), BodyAborted, or the error of the stream.
 */
export const readBody = (stream: BodyStream, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const announced = contentLength(stream)
    if (announced > limit) return reject(new BodyTooLarge(limit))
    if (stream.destroyed || stream.readableEnded) return reject(stream.errored ?? new BodyAborted())
    const body = collector(announced)

    const stop = () => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
    }
    const onData = (chunk: Buffer) => {
      if (body.length() + chunk.length <= limit) return body.push(chunk)
      stop()
      stream.pause()
      reject(new BodyTooLarge(limit))
    }
    const onEnd = () => {
      stop()
      resolve(body.take())
    }
    const onError = (error: Error) => {
      stop()
      reject(error)
    }
    const onClose = () => onError(new BodyAborted())
    stream.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  })

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
  return { push, take: () => whole?.subarray(0, length) ?? chunks.take(), length: () => length }
}
