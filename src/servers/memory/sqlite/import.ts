import { setImmediate as breathe } from 'node:timers/promises'
import { type By, type Imported, StoreError } from '../store.ts'
import { type Context, writeAudit } from './context.ts'
import { checkHeader, type Line, readLine } from './import-line.ts'
import { KINDS } from './import-rows.ts'
import type { Session } from './import-session.ts'

const BATCH = 50 // lines a transaction: others get their turn in between

const putLine = (session: Session, line: Line, counts: Record<keyof Imported, number>): void => {
  const kind = Object.hasOwn(KINDS, line.type) ? KINDS[line.type as keyof typeof KINDS] : undefined
  if (!kind) throw new StoreError('invalid', `Line ${line.number} of the import is of an unknown type "${line.type}".`)
  if (!kind.put(session, line)) counts.same++
  else if (kind.counts !== undefined) counts[kind.counts]++
}

/** Reads an export, a batch of lines at a time. Reading the same again changes nothing. */
export const importLines = async (
  context: Context,
  lines: AsyncIterable<string> | Iterable<string>,
  by?: By,
): Promise<Imported> => {
  const session: Session = { context, entities: new Map(), episodes: new Map(), loose: [] }
  const counts = { episodes: 0, entities: 0, facts: 0, sagas: 0, communities: 0, same: 0 }
  let waiting: Line[] = []
  const flush = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    await context.db.write(() => {
      for (const line of batch) putLine(session, line, counts)
    })
  }
  let number = 0
  let header: Line | undefined
  for await (const text of lines) {
    const line = readLine(text, ++number)
    if (!line) continue
    if (header) waiting.push(line)
    else {
      checkHeader(line)
      header = line
    }
    if (waiting.length >= BATCH) {
      await flush()
      await breathe() // What was read already comes without a pause of its own.
    }
  }
  if (!header) throw new StoreError('invalid', 'The import is empty: not even a header is there.')
  await flush()
  await context.db.write(() => {
    for (const tie of session.loose) tie()
    writeAudit(context, 'import', [], by)
  })
  return counts
}
