export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

const FIRST_BYTES: readonly (readonly [string, JsonKind])[] = [
  ['{', 'object'],
  ['[', 'array'],
  ['"', 'string'],
  ['t', 'boolean'],
  ['f', 'boolean'],
  ['n', 'null'],
]

const KINDS = new Array<JsonKind>(128).fill('number')
for (const [first, kind] of FIRST_BYTES) KINDS[first.charCodeAt(0)] = kind

/** The kind of a valid value, by its first byte. */
export const kindOf = (first: number): JsonKind => KINDS[first] as JsonKind
