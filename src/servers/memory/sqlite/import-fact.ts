import { normHash } from '../facts/norm-hash.ts'
import { indexFact } from './facts.ts'
import * as read from './import-line.ts'
import { entityIn, type Session } from './import-session.ts'

type Line = read.Line

const linkTellings = ({ context: { db }, episodes }: Session, line: Line, fact: number): void => {
  for (const [ord, item] of read.listIn(line, 'told').entries()) {
    const [uuid, place] = Array.isArray(item) ? item : []
    const episode = episodes.get(String(uuid))
    if (episode === undefined) continue
    db.run(
      `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
        VALUES (?, ?2, (SELECT id FROM doc WHERE episode_id = ?2 AND ord = ?), ?) ON CONFLICT DO NOTHING`,
      fact,
      episode,
      typeof place === 'number' ? place : null,
      ord,
    )
  }
  db.run(
    'UPDATE fact SET doc_id = (SELECT doc_id FROM fact_episode WHERE fact_id = ?1 ORDER BY ord LIMIT 1) WHERE id = ?1',
    fact,
  )
}

/** At the end, when both are there; also of a fact that an import before, which was cut short, left untied. */
const tieToSuccessor = ({ context: { db }, loose }: Session, line: Line, uuid: string): void => {
  const heir = read.maybeTextIn(line, 'superseded_by')
  const sql =
    'UPDATE fact SET superseded_by = (SELECT id FROM fact WHERE uuid = ?) WHERE uuid = ? AND superseded_by IS NULL'
  if (heir !== null) loose.push(() => db.run(sql, heir, uuid))
}

/** Stores a fact of an export; false when it was there. */
export const importFact = (session: Session, line: Line): boolean => {
  const { context } = session
  const { db } = context
  const [uuid, group, fact] = [read.textIn(line, 'uuid'), read.textIn(line, 'group'), read.textIn(line, 'fact')]
  const [src, dst] = [entityIn(session, line, line.members.source), entityIn(session, line, line.members.target)]
  const hash = normHash(group, src, dst, fact)
  const [validAt, invalidAt] = [read.maybeDateIn(line, 'valid_at'), read.maybeDateIn(line, 'invalid_at')]
  tieToSuccessor(session, line, uuid)
  const same = 'SELECT 1 FROM fact WHERE uuid = ? OR (norm_hash = ? AND valid_at IS ? AND invalid_at IS ?)'
  if (db.get(same, uuid, hash, validAt, invalidAt)) return false
  const { id } = db.run(
    `INSERT INTO fact (uuid, group_id, src, dst, name, fact, norm_hash, valid_at, valid_gran, invalid_at, created_at,
      expired_at, reference_time, attributes, origin, confidence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    uuid,
    group,
    src,
    dst,
    read.textIn(line, 'name'),
    fact,
    hash,
    validAt,
    read.maybeTextIn(line, 'granularity'),
    invalidAt,
    read.dateIn(line, 'created_at'),
    read.maybeDateIn(line, 'expired_at'),
    read.maybeDateIn(line, 'reference_time'),
    read.jsonIn(line, 'attributes'),
    read.maybeTextIn(line, 'origin') ?? 'agent',
    read.numberIn(line, 'confidence', 1),
  )
  linkTellings(session, line, id)
  if (db.get("SELECT 1 FROM fact WHERE id = ? AND NOT (origin = 'rule' AND doc_id IS NOT NULL)", id))
    indexFact(context, id)
  return true
}
