import { factInsert, givenSearch, joinedBy, passageUpdate, tellingInserts } from '../import-facts.ts'
import { type Line, maybeDateIn, textIn } from '../import-line.ts'
import { indexFact } from './facts.ts'
import { perform, type Session } from './import-session.ts'

const SAME = 'SELECT 1 FROM fact WHERE uuid = ? OR (norm_hash = ? AND valid_at IS ? AND invalid_at IS ?)'

/** Stores a fact of an export; false when it was there. */
export const importFact = ({ context, entities, episodes }: Session, line: Line): boolean => {
  const { db } = context
  const joined = joinedBy(entities, line)
  const [validAt, invalidAt] = [maybeDateIn(line, 'valid_at'), maybeDateIn(line, 'invalid_at')]
  if (db.get(SAME, textIn(line, 'uuid'), joined.hash, validAt, invalidAt)) return false
  const { id } = perform(context, factInsert(line, joined))
  for (const telling of tellingInserts(episodes, line, id)) perform(context, telling)
  perform(context, passageUpdate(id))
  const given = givenSearch(id)
  if (db.get(given.sql, ...given.values)) indexFact(context, id)
  return true
}
