import { newUuid } from '../ids.ts'
import { type Forget, type Groups, StoreError } from '../store.ts'
import { normaliseName } from '../text/names.ts'
import { lockGroups, readLocked, type StoreContext } from './context.ts'
import { indexEntity } from './entities.ts'
import { inGroups, isNotNote, readIds } from './rows.ts'

/** The rows to forget, and the groups that are forgotten entirely. */
export interface ForgetTargets {
  readonly groups: readonly string[]
  readonly entities: readonly number[]
  readonly episodes: readonly number[]
  readonly facts: readonly number[] // beside those of the entities and episodes
}

type Subject = Extract<Forget, { kind: 'subject' }>
type NamesSubject = (text: string) => boolean

/** The episodes that mention these entities or state facts about them. */
const findEpisodesOf = ({ db }: StoreContext, entities: readonly number[]): Promise<number[]> => {
  const inEntities = (column: string) => db.dialect.inList(column, '?1')
  const sql = `SELECT episode_id AS id FROM mention WHERE ${inEntities('entity_id')}
    UNION SELECT fe.episode_id FROM fact_episode fe JOIN fact f ON f.id = fe.fact_id
      WHERE ${inEntities('f.src')} OR ${inEntities('f.dst')}`
  return readIds(db, sql, entities)
}

const groupTargets = async (context: StoreContext, group: string): Promise<ForgetTargets> => {
  await lockGroups(context, [group])
  const read = (table: string) => readIds(context.db, `SELECT id FROM ${table} WHERE group_id = ?`, group)
  return { groups: [group], entities: await read('entity'), episodes: await read('episode'), facts: [] }
}

const entityTargets = async (context: StoreContext, uuid: string): Promise<ForgetTargets> => {
  const sql = `SELECT id, group_id AS "group", ${isNotNote(context.db, 'entity.id')} AS is_specific FROM entity WHERE uuid = ?`
  const row = await readLocked<{ id: number; group: string; is_specific: unknown }>(context, sql, uuid)
  if (!row) throw new StoreError('missing', `There is no entity ${uuid}. Nothing was erased.`)
  if (!row.is_specific)
    throw new StoreError(
      'invalid',
      `The entity ${uuid} is the Note of its group, to which every sentence without an entity belongs. Forget a subject or the group instead. Nothing was erased.`,
    )
  return { groups: [], entities: [row.id], episodes: await findEpisodesOf(context, [row.id]), facts: [] }
}

const wordsIn = (text: string): string => ` ${text.replace(/[^\p{L}\p{N}\p{M}]+/gu, ' ').trim()} `

/** Tests whether a text names a subject as whole words, regardless of case and accents. */
const createNameTest = (subject: string): NamesSubject => {
  const wanted = wordsIn(normaliseName(subject))
  return text => wordsIn(normaliseName(wordsIn(text))).includes(wanted)
}

/** Episodes whose title, origin or actor names the subject; no index contains those. */
const findTitled = async ({ db }: StoreContext, groups: Groups, names: NamesSubject): Promise<number[]> => {
  const scope = inGroups(db, 'group_id', groups)
  const sql = `SELECT id, name || ' ' || source_description || ' ' || coalesce(actor, '') AS title FROM episode WHERE ${scope.sql}`
  const rows = await db.all<{ id: number; title: string }>(sql, ...scope.values)
  return rows.filter(({ title }) => names(title)).map(({ id }) => id)
}

const subjectTargets = async (context: StoreContext, { name, groups }: Subject): Promise<ForgetTargets> => {
  const { db, index } = context
  const norm = normaliseName(name)
  if (norm === '') throw new StoreError('invalid', 'A subject needs a name with at least one letter or digit.')
  await lockGroups(context, groups)
  const scope = inGroups(db, 'group_id', groups)
  const sql = `SELECT DISTINCT entity_id AS id FROM alias WHERE norm = ? AND ${scope.sql} AND ${isNotNote(db, 'entity_id')}`
  const entities = await readIds(db, sql, norm, ...scope.values)
  const names = createNameTest(name)
  const find = async (kind: 'doc' | 'fact', columns: string): Promise<number[]> =>
    (await index.containing<{ id: number; text: string }>(kind, columns, name, groups))
      .filter(({ text }) => names(text))
      .map(({ id }) => id)
  const episodes = [
    ...(await findEpisodesOf(context, entities)),
    ...(await find('doc', "r.episode_id AS id, coalesce(r.actor, '') || ' ' || r.text AS text")),
    ...(await findTitled(context, groups, names)),
  ]
  return { groups: [], entities, episodes: [...new Set(episodes)], facts: await find('fact', 'r.id, r.fact AS text') }
}

/** Finds what there is to forget, and locks its groups. */
export const findTargets = async (context: StoreContext, what: Forget): Promise<ForgetTargets> => {
  if (what.kind === 'group') return groupTargets(context, what.group)
  return what.kind === 'entity' ? entityTargets(context, what.uuid) : subjectTargets(context, what)
}

/** Columns of rows that stay, with the value that replaces a text that names the subject. */
const REPLACEMENTS: readonly { readonly table: string; readonly column: string; readonly value: string | null }[] = [
  { table: 'entity', column: 'attributes', value: '{}' },
  { table: 'fact', column: 'attributes', value: '{}' },
  { table: 'episode', column: 'meta', value: '{}' },
  { table: 'episode', column: 'error', value: null },
  { table: 'job', column: 'payload', value: '{}' },
  { table: 'job', column: 'error', value: null },
  { table: 'saga', column: 'summary', value: '' },
]

/** Removes a saga that is named after the subject; its episodes stay a conversation under a random name. */
const dissolveSaga = async ({ db, now }: StoreContext, saga: number): Promise<void> => {
  const row = await db.get<{ group_id: string }>('SELECT group_id FROM saga WHERE id = ?', saga)
  const chain = `${row?.group_id}/${newUuid(now())}`
  await db.run('UPDATE doc SET chain = ? WHERE episode_id IN (SELECT id FROM episode WHERE saga_id = ?)', chain, saga)
  await db.run('UPDATE episode SET chain = ? WHERE saga_id = ?', chain, saga)
  await db.run('DELETE FROM saga WHERE id = ?', saga)
}

/** Removes a forgotten subject's name from everything that stays. */
export const removeName = async (context: StoreContext, { name, groups }: Subject): Promise<void> => {
  const { db } = context
  const names = createNameTest(name)
  const find = async (table: string, column: string): Promise<number[]> => {
    const scope = inGroups(db, 'group_id', groups)
    const sql = `SELECT id, ${column} AS text FROM ${table} WHERE coalesce(${column}, '') NOT IN ('', '{}') AND ${scope.sql}`
    const rows = await db.all<{ id: number; text: string }>(sql, ...scope.values)
    return rows.filter(({ text }) => names(text)).map(({ id }) => id)
  }
  for (const { table, column, value } of REPLACEMENTS) {
    const ids = await find(table, column)
    await db.run(`UPDATE ${table} SET ${column} = ? WHERE ${db.dialect.inList('id')}`, value, ids)
  }
  for (const id of await find('entity', 'summary')) {
    await db.run("UPDATE entity SET summary = '' WHERE id = ?", id)
    await indexEntity(context, id)
  }
  for (const id of await find('saga', 'name')) await dissolveSaga(context, id)
  const communities = await find('community', "name || ' ' || summary")
  await db.run(`DELETE FROM community WHERE ${db.dialect.inList('id')}`, communities)
}
