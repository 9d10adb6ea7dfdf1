import { namingOf } from '../sqlite/forget-targets.ts'
import { type Forget, type Groups, StoreError } from '../store.ts'
import { normaliseName } from '../text/names.ts'
import { queryTerms } from '../text/query.ts'
import { asQuery } from './best.ts'
import type { Context } from './context.ts'
import { holdMeant } from './remove.ts'
import { inGroups } from './rows.ts'
import { NOT_NOTE } from './search.ts'

/** What is to go: row ids, and the groups that go whole. */
export interface Targets {
  readonly groups: readonly string[]
  readonly entities: readonly number[]
  readonly episodes: readonly number[]
  readonly facts: readonly number[] // that go by themselves
}

type Subject = Extract<Forget, { kind: 'subject' }>

interface Holding {
  readonly id: number
  readonly text: string
  readonly episode_id?: number
}

const ids = (rows: readonly { readonly id: number }[]): number[] => rows.map(row => row.id)

const mentioning = async ({ db }: Context, entities: readonly number[]): Promise<number[]> =>
  ids(
    await db.all<{ id: number }>(
      `SELECT episode_id AS id FROM mention WHERE entity_id = ANY (?1)
        UNION SELECT fe.episode_id FROM fact_episode fe JOIN fact f ON f.id = fe.fact_id
          WHERE f.src = ANY (?1) OR f.dst = ANY (?1)`,
      entities,
    ),
  )

const groupTargets = async (context: Context, group: string): Promise<Targets> => {
  await holdMeant(context, [group])
  const of = async (table: string) =>
    ids(await context.db.all<{ id: number }>(`SELECT id FROM ${table} WHERE group_id = ?`, group))
  return { groups: [group], entities: await of('entity'), episodes: await of('episode'), facts: [] }
}

const entityTargets = async (context: Context, uuid: string): Promise<Targets> => {
  const sql = `SELECT id, group_id, ${NOT_NOTE('entity.id')} AS is_thing FROM entity WHERE uuid = ?`
  const find = () => context.db.get<{ id: number; group_id: string; is_thing: boolean }>(sql, uuid)
  const seen = await find()
  if (seen) await holdMeant(context, [seen.group_id])
  const row = seen && (await find())
  if (!row) throw new StoreError('missing', `There is no entity ${uuid}. Nothing was erased.`)
  if (!row.is_thing)
    throw new StoreError(
      'invalid',
      `The entity ${uuid} is nothing in particular: every sentence that names nothing hangs on it. Forget a subject or the group instead. Nothing was erased.`,
    )
  return { groups: [], entities: [row.id], episodes: await mentioning(context, [row.id]), facts: [] }
}

/** Episodes whose title or origin names the subject; no index holds those. */
const titled = async ({ db }: Context, groups: Groups, names: (text: string) => boolean): Promise<number[]> => {
  const scope = inGroups('group_id', groups)
  const sql = `SELECT id, name || ' ' || source_description || ' ' || coalesce(actor, '') AS title FROM episode WHERE ${scope.sql}`
  const rows = await db.all<{ id: number; title: string }>(sql, ...scope.values)
  return ids(rows.filter(({ title }) => names(title)))
}

/** Rows behind an index that hold every word of the subject; with words too long for a query, all of them. */
const holding = ({ db }: Context, kind: 'doc' | 'fact', text: string, what: Subject): Promise<Holding[]> => {
  const terms = queryTerms(what.name).map(asQuery)
  const scope = inGroups('r.group_id', what.groups)
  return db.all<Holding>(
    `SELECT r.id, ${text} AS text ${kind === 'doc' ? ', r.episode_id' : ''} FROM ${kind} r JOIN ${kind}_fts i ON i.id = r.id
      WHERE (?::text = '' OR i.tsv @@ ?::tsquery) AND ${scope.sql}`,
    terms.join(''),
    terms.join(' & '),
    ...scope.values,
  )
}

const subjectTargets = async (context: Context, what: Subject): Promise<Targets> => {
  const norm = normaliseName(what.name)
  if (norm === '') throw new StoreError('invalid', 'A subject needs a name with at least one letter or digit.')
  await holdMeant(context, what.groups)
  const scope = inGroups('group_id', what.groups)
  const sql = `SELECT DISTINCT entity_id AS id FROM alias WHERE norm = ? AND ${scope.sql} AND ${NOT_NOTE('entity_id')}`
  const entities = ids(await context.db.all<{ id: number }>(sql, norm, ...scope.values))
  const names = namingOf(what.name)
  const docs = await holding(context, 'doc', "coalesce(r.actor, '') || ' ' || r.text", what)
  const told = docs.filter(({ text }) => names(text)).map(row => row.episode_id ?? 0)
  const facts = await holding(context, 'fact', 'r.fact', what)
  const mentioned = await mentioning(context, entities)
  return {
    groups: [],
    entities,
    episodes: [...new Set([...mentioned, ...told, ...(await titled(context, what.groups, names))])],
    facts: ids(facts.filter(({ text }) => names(text))),
  }
}

/** Finds what there is to forget, and holds the groups it is in. */
export const targetsOf = async (context: Context, what: Forget): Promise<Targets> => {
  if (what.kind === 'group') return groupTargets(context, what.group)
  return what.kind === 'entity' ? entityTargets(context, what.uuid) : subjectTargets(context, what)
}
