import type { Context } from './context.ts'
import type { Targets } from './forget-targets.ts'

/** The texts of rows by uuid. */
type Texts = ReadonlyMap<string, readonly string[]>

const textsOf = ({ db }: Context, sql: string, ...lists: readonly (readonly number[])[]): Texts =>
  new Map(
    db
      .all<{ uuid: string; texts: string }>(sql, ...lists.map(list => JSON.stringify(list)))
      .map(({ uuid, texts }) => [uuid, JSON.parse(texts) as string[]]),
  )

const LISTED = '(SELECT value FROM json_each(?1))'
const EPISODE_TEXTS = `SELECT uuid, json_array(name, content, source_description) AS texts
  FROM episode WHERE id IN ${LISTED}`
const FACT_TEXTS = `SELECT uuid, json_array(fact, attributes) AS texts FROM fact
  WHERE src IN ${LISTED} OR dst IN ${LISTED} OR id IN (SELECT value FROM json_each(?2))`
const ENTITY_TEXTS = `SELECT uuid, (SELECT json_group_array(text) FROM (SELECT name AS text UNION SELECT summary
  UNION SELECT attributes UNION SELECT a.name FROM alias a WHERE a.entity_id = entity.id)) AS texts FROM entity WHERE id IN ${LISTED}`
const TOUCHED = `SELECT entity_id AS id FROM mention WHERE episode_id IN ${LISTED}
  UNION SELECT f.src FROM fact f JOIN fact_episode fe ON fe.fact_id = f.id WHERE fe.episode_id IN ${LISTED}
  UNION SELECT f.dst FROM fact f JOIN fact_episode fe ON fe.fact_id = f.id WHERE fe.episode_id IN ${LISTED}`
const ALONG =
  '(SELECT value FROM json_each(?1)) OR dst IN (SELECT value FROM json_each(?1)) OR id IN (SELECT value FROM json_each(?2))'
const JOINED = `SELECT src AS id FROM fact WHERE src IN ${ALONG} UNION SELECT dst FROM fact WHERE src IN ${ALONG}`

/** What there was, to be compared with what is left. */
export interface Inventory {
  readonly episodes: Texts
  readonly entities: Texts
  readonly facts: Texts
  readonly counts: Readonly<Record<'doc' | 'vec' | 'job', number>>
}

const countOf = ({ db }: Context, table: string): number =>
  db.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? 0

/** How many rows there are of what has no name of its own. */
export const countAll = (context: Context): Inventory['counts'] => ({
  doc: countOf(context, 'doc'),
  vec: countOf(context, 'vec'),
  job: countOf(context, 'job'),
})

/** Everything that may go with the targets. */
export const takeInventory = (context: Context, targets: Targets): Inventory => {
  const rows = context.db.all<{ id: number }>(TOUCHED, JSON.stringify(targets.episodes))
  const joined = context.db.all<{ id: number }>(JOINED, JSON.stringify(targets.entities), JSON.stringify(targets.facts))
  const entities = [...new Set([...[...rows, ...joined].map(row => row.id), ...targets.entities])]
  return {
    episodes: textsOf(context, EPISODE_TEXTS, targets.episodes),
    entities: textsOf(context, ENTITY_TEXTS, entities),
    facts: textsOf(context, FACT_TEXTS, entities, targets.facts),
    counts: countAll(context),
  }
}

/** Those that are not there any more. */
export const gone = ({ db }: Context, table: string, before: Texts): Texts => {
  const list = JSON.stringify([...before.keys()])
  const sql = `SELECT uuid FROM ${table} WHERE uuid IN (SELECT value FROM json_each(?))`
  const left = new Set(db.all<{ uuid: string }>(sql, list).map(row => row.uuid))
  return new Map([...before].filter(([uuid]) => !left.has(uuid)))
}
