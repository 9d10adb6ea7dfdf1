import type { JournalEvent } from './state-store.ts'

const LENGTH = 4 // bytes before each event
const KEPT_BYTES = 512 * 1024 // a larger buffer is not used again

/** The bytes of an event that has come in pieces. */
export const sizeOf = (pieces: readonly Buffer[]): number => {
  let size = 0
  for (const piece of pieces) size += piece.length
  return size
}

let reused: Buffer = Buffer.alloc(0)
const roomFor = (size: number): Buffer => {
  if (size > KEPT_BYTES) return Buffer.allocUnsafe(size)
  if (reused.length < size) reused = Buffer.allocUnsafeSlow(Math.min(KEPT_BYTES, Math.max(size * 2, 16 * 1024)))
  return reused.subarray(0, size)
}

/** The events of a row, each after its length. Valid until the next call: the buffer is used again. */
export const encodeEvents = (events: readonly (readonly Buffer[])[]): Buffer => {
  let total = 0
  for (const pieces of events) total += LENGTH + sizeOf(pieces)
  const encoded = roomFor(total)
  let at = 0
  for (const pieces of events) {
    const size = sizeOf(pieces)
    encoded[at] = size >>> 24
    encoded[at + 1] = size >>> 16
    encoded[at + 2] = size >>> 8
    encoded[at + 3] = size
    at += LENGTH
    for (const piece of pieces) {
      encoded.set(piece, at)
      at += piece.length
    }
  }
  return encoded
}

/** The events of a row that begins with `seq`, without those up to `after`. */
export const decodeEvents = (seq: number, encoded: Buffer, after: number): JournalEvent[] => {
  const events: JournalEvent[] = []
  for (let at = 0, next = seq; at + LENGTH <= encoded.length; next++) {
    const end = at + LENGTH + encoded.readUInt32BE(at)
    if (next > after) events.push({ seq: next, data: encoded.subarray(at + LENGTH, end) })
    at = end
  }
  return events
}
