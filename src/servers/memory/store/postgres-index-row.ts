import { createHash } from 'node:crypto'
import { stemOf, wordsOf } from '../../../text/words.ts'
import type { IndexKind } from '../store.ts'

/**
 * The place of an index's column in a tsvector. A position there is no position in the text: counted from the column's
 * base, it is the number of times that a stem occurs in the column, which is what BM25 needs.
 */
interface Slot {
  readonly column: string
  readonly label: 'A' | 'B' | 'C' | 'D'
  readonly base: number
  readonly most: number
}

const slot = (column: string, label: Slot['label'], base: number, most: number): Slot => ({ column, label, base, most })

/** The columns of each index, in the order of their texts. */
const SLOTS: Readonly<Record<IndexKind, readonly Slot[]>> = {
  doc: [
    slot('text', 'A', 0, 4095),
    slot('actor', 'B', 4095, 4095),
    slot('prev', 'C', 8190, 4095),
    slot('next', 'C', 12_285, 2048),
    slot('dt', 'D', 14_333, 2048),
  ],
  fact: [slot('fact', 'A', 0, 4095), slot('ents', 'B', 4095, 4095), slot('dt', 'D', 14_333, 2048)],
  entity: [slot('name', 'A', 0, 4095), slot('aliases', 'B', 4095, 4095), slot('summary', 'C', 8190, 4095)],
}

/** One row of an index. */
export interface IndexEntry {
  readonly tsv: string
  readonly len: number // tokens of all columns
}

const LONGEST_STEM = 200 // characters; PostgreSQL takes 2 kB
const MOST_STEMS = 20_000 // of a row; PostgreSQL takes 1 MB in all
const LEXEME = /'([^']+)'(?::([0-9A-D,]+))?/g

const scope = (kind: string, name: string): string =>
  `=${createHash('sha256').update(`${kind}\0${name}`).digest('hex').slice(0, 24)}`

/** The lexeme of every row of a tenant, and that of every row of a group. */
export const tenantScope = (tenant: string): string => scope('tenant', tenant)
export const groupScope = (tenant: string, group: string): string => scope('group', `${tenant}\0${group}`)

/** Counts by stem, one for each column. */
const countsOf = (texts: readonly string[]): { readonly counts: Map<string, number[]>; readonly len: number } => {
  const counts = new Map<string, number[]>()
  let len = 0
  for (const [column, text] of texts.entries())
    for (const word of wordsOf(text)) {
      len++
      const stem = stemOf(word).slice(0, LONGEST_STEM)
      const known = counts.get(stem)
      if (known) known[column] = (known[column] ?? 0) + 1
      else if (counts.size < MOST_STEMS)
        counts.set(
          stem,
          texts.map((_, at) => (at === column ? 1 : 0)),
        )
    }
  return { counts, len }
}

/** A row of the index: the stems with how often each occurs in which column, and the lexemes of tenant and group. */
export const indexRow = (kind: IndexKind, texts: readonly string[], scopes: readonly string[]): IndexEntry => {
  const { counts, len } = countsOf(texts)
  const lexemes = [...counts].map(([stem, columns]) => {
    const places = SLOTS[kind].flatMap(({ label, base, most }, at) => {
      const count = columns[at] ?? 0
      return count === 0 ? [] : [`${base + Math.min(count, most)}${label}`]
    })
    return `'${stem}':${places.join(',')}`
  })
  return { tsv: [...scopes.map(lexeme => `'${lexeme}'`), ...lexemes].join(' '), len }
}

/** The stems of an index row as PostgreSQL writes it, without the lexemes of tenant and group. */
export const stemsIn = (tsv: string): string[] =>
  [...tsv.matchAll(LEXEME)].flatMap(([, stem = '']) => (stem.startsWith('=') ? [] : [stem]))

const countsAt = (tsv: string, from: number, slots: readonly Slot[], counts: number[]): void => {
  const end = tsv.indexOf(' ', from)
  for (const place of tsv.slice(from, end < 0 ? undefined : end).split(',')) {
    const position = Number.parseInt(place, 10)
    const column = slots.findLastIndex(({ base }) => position > base)
    counts[column] = (counts[column] ?? 0) + position - (slots[column]?.base ?? 0)
  }
}

/** How often a stem, or any stem that begins with it, occurs in each column of an index row. */
export const occurrences = (kind: IndexKind, tsv: string, stem: string, isPrefix: boolean): number[] => {
  const slots = SLOTS[kind]
  const counts = slots.map(() => 0)
  const start = isPrefix ? `'${stem}` : `'${stem}':`
  for (let at = tsv.indexOf(start); at >= 0; at = isPrefix ? tsv.indexOf(start, at + 1) : -1) {
    const colon = isPrefix ? tsv.indexOf("':", at) + 2 : at + start.length
    countsAt(tsv, colon, slots, counts)
  }
  return counts
}

/** The weights of the labels D to A, of which the greatest is 1; of two columns with one label the greater. */
export const labelWeights = (kind: IndexKind, weights: readonly number[]): number[] => {
  const greatest = Math.max(...weights)
  const weightOf = (label: string) =>
    Math.max(0.01, ...SLOTS[kind].map((slot, at) => (slot.label === label ? (weights[at] ?? 0) / greatest : 0)))
  return ['D', 'C', 'B', 'A'].map(label => Math.min(1, weightOf(label)))
}
