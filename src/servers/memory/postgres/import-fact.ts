import { factInsert, givenSearch, joinedBy, passageUpdate, tellingInserts } from '../import-facts.ts'
import { type Line, maybeDateIn, textIn } from '../import-line.ts'
import { indexFact } from './facts.ts'
import { insert, perform, type Session } from './import-session.ts'

const SAME = `SELECT 1 AS there FROM fact WHERE uuid = ?
  OR (norm_hash = ? AND valid_at IS NOT DISTINCT FROM ? AND invalid_at IS NOT DISTINCT FROM ?)`

/** Stores a fact of an export; false when it was there. */
export const importFact = async ({ context, entities, episodes }: Session, line: Line): Promise<boolean> => {
  const { db } = context
  const joined = joinedBy(entities, line)
  const [validAt, invalidAt] = [maybeDateIn(line, 'valid_at'), maybeDateIn(line, 'invalid_at')]
  if (await db.get(SAME, textIn(line, 'uuid'), joined.hash, validAt, invalidAt)) return false
  const id = (await insert(context, factInsert(line, joined))) ?? 0
  for (const telling of tellingInserts(episodes, line, id)) await perform(context, telling)
  await perform(context, passageUpdate(id))
  const given = givenSearch(id)
  if (await db.get(given.sql, ...given.values)) await indexFact(context, id)
  return true
}
