import type { NewVector } from './store.ts'

/** Scales a vector to length 1 and stores each number in one byte: a quarter of the space, almost the same ranking. */
const quantise = (vector: Float32Array): { readonly scale: number; readonly q8: Uint8Array } => {
  const length = Math.hypot(...vector) || 1
  let largest = 0
  for (const value of vector) largest = Math.max(largest, Math.abs(value) / length)
  const scale = largest / 127 || 1
  const q8 = Int8Array.from(vector, value => Math.round(value / length / scale))
  return { scale, q8: new Uint8Array(q8.buffer) }
}

/** The dot product of a vector and a quantised one. */
export const dot = (query: Float32Array, q8: Uint8Array, scale: number): number => {
  const values = new Int8Array(q8.buffer, q8.byteOffset, q8.byteLength)
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += (query[at] ?? 0) * (values[at] ?? 0)
  return sum * scale
}

/** The column values of a vector's row, in the order of the insert statement. */
export const rowOf = ({ kind, rowId, model, vector }: NewVector) => {
  const { scale, q8 } = quantise(vector)
  return [kind, model, vector.length, scale, q8, rowId] as const
}
