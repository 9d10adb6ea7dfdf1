import type { LineType } from './export-lines.ts'
import { checkHeader, type Line, readLine } from './import-line.ts'
import { type Imported, StoreError } from './store.ts'

const BATCH = 50 // lines a transaction: others get their turn in between

/** The lines of an export in batches, once its header is seen to be ours. */
export const batchesIn = async function* (
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<readonly Line[]> {
  let batch: Line[] = []
  let number = 0
  let isBegun = false
  for await (const text of lines) {
    const line = readLine(text, ++number)
    if (!line) continue
    if (isBegun) batch.push(line)
    else checkHeader(line)
    isBegun = true
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (!isBegun) throw new StoreError('invalid', 'The import is empty: not even a header is there.')
  if (batch.length > 0) yield batch
}

/** What an import has done so far. */
export type Counts = Record<keyof Imported, number>

export const noCounts = (): Counts => ({ episodes: 0, entities: 0, facts: 0, sagas: 0, communities: 0, same: 0 })

const COUNTED: Readonly<Record<LineType, keyof Imported | undefined>> = {
  saga: 'sagas',
  entity: 'entities',
  episode: 'episodes',
  fact: 'facts',
  community: 'communities',
  job: undefined,
}

/** Counts one line, which was new or not. */
export const count = (counts: Counts, type: LineType, isNew: boolean): void => {
  const key = isNew ? COUNTED[type] : 'same'
  if (key !== undefined) counts[key]++
}
