import type { RecordingSummary } from '../../../admin/api/recorder.ts'
import { matchesFilter, type RecordingFilter } from './filters.ts'

/** The list after some recordings have begun or changed. */
export interface MergedRows {
  readonly rows: readonly RecordingSummary[] // newest first
  readonly added: readonly RecordingSummary[] // newest first; not part of `rows` yet
}

/**
 * Applies changes to the rows that are there, and gives those that are new. A row that the filter excludes after its change
 * is removed. `changes` are oldest first, as they arrive.
 */
export const mergeRows = (
  rows: readonly RecordingSummary[],
  changes: readonly RecordingSummary[],
  filter: RecordingFilter,
): MergedRows => {
  const changed = new Map(changes.map(change => [change.id, change])) // the last one counts
  let isSame = true
  const kept: RecordingSummary[] = []
  for (const row of rows) {
    const change = changed.get(row.id)
    if (!change) {
      kept.push(row)
      continue
    }
    isSame = false
    changed.delete(row.id)
    if (matchesFilter(change, filter)) kept.push(change)
  }
  const added = [...changed.values()].filter(change => matchesFilter(change, filter)).sort(newestFirst)
  return { rows: isSame ? rows : kept, added }
}

/** Both lists as one, newest first, without duplicates and with at most `most` rows. */
export const joinRows = (
  newer: readonly RecordingSummary[],
  older: readonly RecordingSummary[],
  most: number,
): readonly RecordingSummary[] => {
  const known = new Set(newer.map(({ id }) => id))
  const joined = [...newer, ...older.filter(({ id }) => !known.has(id))]
  const isSorted = joined.every((row, at) => at === 0 || newestFirst(joined[at - 1] as RecordingSummary, row) <= 0)
  return (isSorted ? joined : joined.sort(newestFirst)).slice(0, most)
}

/** Numbers of different replicas cannot be compared; times can. */
const newestFirst = (a: RecordingSummary, b: RecordingSummary): number => b.order - a.order || b.at - a.at
