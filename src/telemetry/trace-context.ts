import { randomBytes } from 'node:crypto'

/** The position of a request in a trace, as W3C Trace Context carries it. */
export interface TraceContext {
  readonly traceId: string // 32 hex digits
  readonly spanId: string // 16 hex digits
  readonly isSampled: boolean
}

// Versions above 00 may append fields. 00 itself has none.
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ZERO = /^0+$/
const SAMPLED = 1

/** Reads a `traceparent`; undefined if it is invalid, and then a new trace begins. */
export const parseTraceparent = (text: string | undefined): TraceContext | undefined => {
  if (text === undefined) return undefined
  const [, version, traceId, spanId, flags = '', more] = TRACEPARENT.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || ZERO.test(traceId) || ZERO.test(spanId)) return undefined
  if (version === '00' && more !== undefined) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}

export const writeTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`

const POOL_BYTES = 4096
const BYTE_DIGITS = 2

/** Random ids. Bytes are taken from the system in blocks: one call for each id would cost more than the rest of a span. */
export class RandomIds {
  #digits = ''
  #at = 0

  trace(): string {
    return this.#next(16)
  }

  span(): string {
    return this.#next(8)
  }

  /** An id of zeros is invalid. */
  #next(bytes: number): string {
    const length = bytes * BYTE_DIGITS
    if (this.#at + length > this.#digits.length) {
      this.#digits = randomBytes(POOL_BYTES).toString('hex')
      this.#at = 0
    }
    const id = this.#digits.slice(this.#at, this.#at + length)
    this.#at += length
    return id.startsWith('0') && ZERO.test(id) ? this.#next(bytes) : id
  }
}
