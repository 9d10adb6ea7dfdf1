import { checkHeader, type Line, readLine } from '../sqlite/import-line.ts'
import { type By, type Imported, StoreError } from '../store.ts'
import { type Context, holdGroups, writeAudit } from './context.ts'
import { KINDS, type Places } from './import-rows.ts'

const BATCH = 200 // lines a transaction: other writers get their turn in between

/** Runs work as one transaction. */
type Write = <Result>(work: (context: Context) => Promise<Result>) => Promise<Result>

type Kind = (typeof KINDS)[keyof typeof KINDS]

const kindOf = (line: Line): Kind => {
  const kind = Object.hasOwn(KINDS, line.type) ? KINDS[line.type as keyof typeof KINDS] : undefined
  if (!kind) throw new StoreError('invalid', `Line ${line.number} of the import is of an unknown type "${line.type}".`)
  return kind
}

const groupsIn = (lines: readonly Line[]): string[] =>
  lines.flatMap(({ members }) => (typeof members.group === 'string' ? [members.group] : []))

/** Reads an export, a batch of lines at a time. Reading the same again changes nothing. */
export const importLines = async (
  write: Write,
  lines: AsyncIterable<string> | Iterable<string>,
  by?: By,
): Promise<Imported> => {
  const places: Places = { entities: new Map(), episodes: new Map(), loose: new Map() }
  const counts = { episodes: 0, entities: 0, facts: 0, sagas: 0, communities: 0, same: 0 }
  let waiting: Line[] = []
  const flush = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    const outcomes = await write(async context => {
      await holdGroups(context, groupsIn(batch))
      const done: (keyof Imported | undefined)[] = []
      for (const line of batch) {
        const kind = kindOf(line)
        done.push((await kind.put({ ...places, context }, line)) ? kind.counts : 'same')
      }
      return done
    })
    for (const outcome of outcomes) if (outcome !== undefined) counts[outcome]++
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
    if (waiting.length >= BATCH) await flush()
  }
  if (!header) throw new StoreError('invalid', 'The import is empty: not even a header is there.')
  await flush()
  await write(async context => {
    for (const tie of places.loose.values()) await tie(context)
    await writeAudit(context, 'import', [], by)
  })
  return counts
}
