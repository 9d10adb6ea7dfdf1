import { normHash } from './ids.ts'
import * as read from './import-line.ts'
import { entityIn, type Statement } from './import-statements.ts'

type Line = read.Line

/** The two entities a fact's line joins, and the mark it is known again by. */
export interface Joined {
  readonly src: number
  readonly dst: number
  readonly hash: Uint8Array
}

export const joinedBy = (entities: ReadonlyMap<string, number>, line: Line): Joined => {
  const src = entityIn(entities, line, line.members.source)
  const dst = entityIn(entities, line, line.members.target)
  return { src, dst, hash: normHash(read.textIn(line, 'group'), src, dst, read.textIn(line, 'fact')) }
}

/** The fact of a line. */
export const factInsert = (line: Line, { src, dst, hash }: Joined): Statement => ({
  sql: `INSERT INTO fact (uuid, group_id, src, dst, name, fact, norm_hash, valid_at, valid_gran, invalid_at, created_at,
    expired_at, reference_time, attributes, origin, confidence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  values: [
    read.textIn(line, 'uuid'),
    read.textIn(line, 'group'),
    src,
    dst,
    read.textIn(line, 'name'),
    read.textIn(line, 'fact'),
    hash,
    read.maybeDateIn(line, 'valid_at'),
    read.maybeTextIn(line, 'granularity'),
    read.maybeDateIn(line, 'invalid_at'),
    read.dateIn(line, 'created_at'),
    read.maybeDateIn(line, 'expired_at'),
    read.maybeDateIn(line, 'reference_time'),
    read.jsonIn(line, 'attributes'),
    read.maybeTextIn(line, 'origin') ?? 'agent',
    read.numberIn(line, 'confidence', 1),
  ],
})

/** Who told the fact of a line, in their order: episodes that are there, with the passage if one is named. */
export const tellingInserts = (episodes: ReadonlyMap<string, number>, line: Line, fact: number): Statement[] =>
  read.listIn(line, 'told').flatMap((item, ord): Statement[] => {
    const [uuid, place] = Array.isArray(item) ? item : []
    const episode = episodes.get(String(uuid))
    if (episode === undefined) return []
    const sql = `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
      VALUES (?1, ?2, (SELECT id FROM doc WHERE episode_id = ?2 AND ord = ?3), ?4) ON CONFLICT DO NOTHING`
    return [{ sql, values: [fact, episode, typeof place === 'number' ? place : null, ord] }]
  })

/** Points a fact to the passage that told it first. */
export const passageUpdate = (fact: number): Statement => ({
  sql: 'UPDATE fact SET doc_id = (SELECT doc_id FROM fact_episode WHERE fact_id = ?1 ORDER BY ord LIMIT 1) WHERE id = ?1',
  values: [fact],
})

/** Finds a fact, if it is to be found by its own words: a rule's fact quotes its passage, which is indexed already. */
export const givenSearch = (fact: number): Statement => ({
  sql: "SELECT 1 AS there FROM fact WHERE id = ? AND NOT (origin = 'rule' AND doc_id IS NOT NULL)",
  values: [fact],
})
