import { createHash } from 'node:crypto'
import type { NewEntity, NewFact } from '../model.ts'
import type { Told } from '../remember.ts'

/** What an importer makes of a piece of somebody else's file; `where` is for people. */
export type Item =
  | {
      readonly kind: 'episode'
      readonly where: string
      readonly told: Told
      readonly isUndated?: boolean // its time is that of the file, and means little
    }
  | {
      readonly kind: 'facts'
      readonly where: string
      readonly group: string
      readonly entities: readonly NewEntity[]
      readonly facts: readonly NewFact[]
    }
  /** Nothing of this sort follows; what an earlier, longer version left under these uuids goes. */
  | { readonly kind: 'end'; readonly uuidOf: (number: number) => string; readonly from: number }
  | { readonly kind: 'fault'; readonly where: string; readonly why: string }

/** What every importer knows of what it reads. */
export interface Origin {
  readonly name: string // of what it makes, for people
  readonly key: string // the same for the same file, and for no other
  readonly group: string
  readonly modified: number
}

/** A uuid that is the same whenever the same things are put together. */
export const uuidFor = (...parts: readonly (string | number)[]): string => {
  const bytes = createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16)
  bytes[6] = 0x80 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
