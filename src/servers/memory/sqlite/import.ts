import { setImmediate as breathe } from 'node:timers/promises'
import { batchesIn, count, noCounts } from '../import-batches.ts'
import { typeOf } from '../import-line.ts'
import type { Statement } from '../import-statements.ts'
import { tieOf } from '../import-ties.ts'
import type { By, Imported } from '../store.ts'
import { type Context, writeAudit } from './context.ts'
import { PUT } from './import-rows.ts'
import { perform, type Session } from './import-session.ts'

/** Reads an export, a batch of lines at a time. Reading the same again changes nothing. */
export const importLines = async (
  context: Context,
  lines: AsyncIterable<string> | Iterable<string>,
  by?: By,
): Promise<Imported> => {
  const session: Session = { context, entities: new Map(), episodes: new Map() }
  const counts = noCounts()
  const ties: Statement[] = []
  for await (const batch of batchesIn(lines)) {
    await context.db.write(() => {
      for (const line of batch) {
        const type = typeOf(line)
        count(counts, type, PUT[type](session, line))
      }
    })
    ties.push(...batch.flatMap(tieOf))
    await breathe() // What was read already comes without a pause of its own.
  }
  await context.db.write(() => {
    for (const tie of ties) perform(context, tie)
    writeAudit(context, 'import', [], by)
  })
  return counts
}
