import type { NewVector } from './store.ts'

/** A vector of length one in one byte a number: a quarter of the room, and a ranking that hardly differs. */
const quantise = (vector: Float32Array): { readonly scale: number; readonly q8: Uint8Array } => {
  const length = Math.hypot(...vector) || 1
  let largest = 0
  for (const value of vector) largest = Math.max(largest, Math.abs(value) / length)
  const scale = largest / 127 || 1
  const q8 = Int8Array.from(vector, value => Math.round(value / length / scale))
  return { scale, q8: new Uint8Array(q8.buffer) }
}

/** The product of a vector and one kept in bytes. */
export const dot = (query: Float32Array, q8: Uint8Array, scale: number): number => {
  const values = new Int8Array(q8.buffer, q8.byteOffset, q8.byteLength)
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += (query[at] ?? 0) * (values[at] ?? 0)
  return sum * scale
}

/** The values of a row that keeps a vector, in the order in which every driver inserts them. */
export const rowOf = ({ kind, rowId, model, vector }: NewVector) => {
  const { scale, q8 } = quantise(vector)
  return [kind, model, vector.length, scale, q8, rowId] as const
}
