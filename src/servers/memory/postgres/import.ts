import { batchesIn, count, noCounts } from '../import-batches.ts'
import { type Line, typeOf } from '../import-line.ts'
import type { Statement } from '../import-statements.ts'
import { tieOf } from '../import-ties.ts'
import type { By, Imported } from '../store.ts'
import { type Context, holdGroups, writeAudit } from './context.ts'
import { PUT } from './import-rows.ts'
import { type Places, perform } from './import-session.ts'

/** Runs work as one transaction. */
type Write = <Result>(work: (context: Context) => Promise<Result>) => Promise<Result>

const groupsIn = (lines: readonly Line[]): string[] =>
  lines.flatMap(({ members }) => (typeof members.group === 'string' ? [members.group] : []))

/** Stores a batch; a transaction that has to be tried again begins it anew, so it counts nothing itself. */
const putBatch =
  (places: Places, batch: readonly Line[]) =>
  async (context: Context): Promise<boolean[]> => {
    await holdGroups(context, groupsIn(batch))
    const isNew: boolean[] = []
    for (const line of batch) isNew.push(await PUT[typeOf(line)]({ ...places, context }, line))
    return isNew
  }

/** Reads an export, a batch of lines at a time. Reading the same again changes nothing. */
export const importLines = async (
  write: Write,
  lines: AsyncIterable<string> | Iterable<string>,
  by?: By,
): Promise<Imported> => {
  const places: Places = { entities: new Map(), episodes: new Map() }
  const counts = noCounts()
  const ties: Statement[] = []
  for await (const batch of batchesIn(lines)) {
    const isNew = await write(putBatch(places, batch))
    for (const [at, line] of batch.entries()) count(counts, typeOf(line), isNew[at] === true)
    ties.push(...batch.flatMap(tieOf))
  }
  await write(async context => {
    for (const tie of ties) await perform(context, tie)
    await writeAudit(context, 'import', [], by)
  })
  return counts
}
