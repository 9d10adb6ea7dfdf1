import type { PlainObject } from '../../../wire/json/json.ts'

/** Largest list in one answer: a model cannot read more, and its host pays for all of it. */
export const MOST_BYTES = 1024 * 1024

/** As many items as fit into one answer, and how many were left out; one alone always fits. */
export const withinBytes = (
  items: readonly PlainObject[],
  most = MOST_BYTES,
): { readonly items: readonly PlainObject[]; readonly left: number } => {
  let bytes = 0
  const end = items.findIndex((item, at) => {
    bytes += Buffer.byteLength(JSON.stringify(item))
    return at > 0 && bytes > most
  })
  return end < 0 ? { items, left: 0 } : { items: items.slice(0, end), left: items.length - end }
}
