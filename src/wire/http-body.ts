import type { Readable } from 'node:stream'
import { ChunkBuffer } from './chunk-buffer.ts'

/** Memory is set aside for at most this many times what has arrived. */
const TRUST = 64

/** The body is, or says it is, larger than the limit. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
  readonly limit: number
  constructor(limit: number) {
    super(`The body is larger than ${limit} bytes`)
    this.limit = limit
  }
}

/** The sender left before the body was complete. */
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

/** Gathers chunks; once enough of an announced length has really come, into one buffer of that length. */
const collector = (announced: number) => {
  const gather = new ChunkBuffer()
  let whole: Buffer | undefined
  let length = 0

  const push = (chunk: Buffer) => {
    const after = length + chunk.length
    if (whole && after > announced) {
      gather.push(whole.subarray(0, length))
      whole = undefined
    } else if (!whole && length > 0 && after <= announced && after * TRUST >= announced) {
      whole = Buffer.allocUnsafeSlow(announced)
      gather.take().copy(whole)
    }
    if (whole) chunk.copy(whole, length)
    else gather.push(chunk)
    length = after
  }
  return { push, take: () => whole?.subarray(0, length) ?? gather.take(), length: () => length }
}
