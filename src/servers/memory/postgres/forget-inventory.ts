import type { Context } from './context.ts'
import type { Targets } from './forget-targets.ts'

/** The texts of rows by uuid. */
type Texts = ReadonlyMap<string, readonly string[]>

const textsOf = async ({ db }: Context, sql: string, ...lists: readonly (readonly number[])[]): Promise<Texts> =>
  new Map((await db.all<{ uuid: string; texts: string[] }>(sql, ...lists)).map(row => [row.uuid, row.texts]))

const EPISODE_TEXTS = 'SELECT uuid, ARRAY[name, content, source_description] AS texts FROM episode WHERE id = ANY (?1)'
const FACT_TEXTS = `SELECT uuid, ARRAY[fact, attributes] AS texts FROM fact
  WHERE src = ANY (?1) OR dst = ANY (?1) OR id = ANY (?2)`
const ENTITY_TEXTS = `SELECT uuid, ARRAY[name, summary, attributes] ||
  ARRAY(SELECT a.name FROM alias a WHERE a.entity_id = entity.id) AS texts FROM entity WHERE id = ANY (?1)`
const TOUCHED = `SELECT entity_id AS id FROM mention WHERE episode_id = ANY (?1)
  UNION SELECT f.src FROM fact f JOIN fact_episode fe ON fe.fact_id = f.id WHERE fe.episode_id = ANY (?1)
  UNION SELECT f.dst FROM fact f JOIN fact_episode fe ON fe.fact_id = f.id WHERE fe.episode_id = ANY (?1)`

const JOINED = `SELECT unnest(ARRAY[src, dst]) AS id FROM fact WHERE src = ANY (?1) OR dst = ANY (?1) OR id = ANY (?2)`

/** What there was, to be compared with what is left. */
export interface Inventory {
  readonly episodes: Texts
  readonly entities: Texts
  readonly facts: Texts
  readonly counts: Readonly<Record<'doc' | 'vec' | 'job', number>>
}

/** How many rows there are of what has no name of its own. */
export const countAll = async ({ db }: Context): Promise<Inventory['counts']> =>
  (await db.get<Inventory['counts']>(
    'SELECT (SELECT count(*) FROM doc) AS doc, (SELECT count(*) FROM vec) AS vec, (SELECT count(*) FROM job) AS job',
  )) ?? { doc: 0, vec: 0, job: 0 }

/** Everything that may go with the targets. */
export const takeInventory = async (context: Context, targets: Targets): Promise<Inventory> => {
  const touched = await context.db.all<{ id: number }>(TOUCHED, targets.episodes)
  const joined = await context.db.all<{ id: number }>(JOINED, targets.entities, targets.facts)
  const entities = [...new Set([...[...touched, ...joined].map(row => row.id), ...targets.entities])]
  return {
    episodes: await textsOf(context, EPISODE_TEXTS, targets.episodes),
    entities: await textsOf(context, ENTITY_TEXTS, entities),
    facts: await textsOf(context, FACT_TEXTS, entities, targets.facts),
    counts: await countAll(context),
  }
}

/** Those that are not there any more. */
export const gone = async ({ db }: Context, table: string, before: Texts): Promise<Texts> => {
  const sql = `SELECT uuid FROM ${table} WHERE uuid = ANY (?)`
  const left = new Set((await db.all<{ uuid: string }>(sql, [...before.keys()])).map(row => row.uuid))
  return new Map([...before].filter(([uuid]) => !left.has(uuid)))
}
