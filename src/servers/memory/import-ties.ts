import { type Line, maybeTextIn, textIn } from './import-line.ts'
import type { Statement } from './import-statements.ts'

const TIES: Readonly<Partial<Record<string, { readonly member: string; readonly sql: string }>>> = {
  saga: {
    member: 'summarised_to',
    sql: `UPDATE saga SET summarised_to = coalesce((SELECT id FROM episode WHERE uuid = ?), 0)
      WHERE uuid = ? AND summarised_to = 0`,
  },
  fact: {
    member: 'superseded_by',
    sql: 'UPDATE fact SET superseded_by = (SELECT id FROM fact WHERE uuid = ?) WHERE uuid = ? AND superseded_by IS NULL',
  },
}

/** What a line names that may come after it, to be tied at the end; also where an import that was cut short left it untied. */
export const tieOf = (line: Line): Statement[] => {
  const tie = TIES[line.type]
  const named = tie ? maybeTextIn(line, tie.member) : null
  return tie && named !== null ? [{ sql: tie.sql, values: [named, textIn(line, 'uuid')] }] : []
}
