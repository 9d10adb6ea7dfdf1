import { type Forget, type Groups, StoreError } from '../store.ts'
import { normaliseName } from '../text/names.ts'
import { ftsQuery, queryTerms } from '../text/query.ts'
import type { Context } from './context.ts'
import { inGroups } from './rows.ts'
import { NOT_NOTE } from './search.ts'

/** What is to go: row ids, and the groups that go whole. */
export interface Targets {
  readonly groups: readonly string[]
  readonly entities: readonly number[]
  readonly episodes: readonly number[]
  readonly facts: readonly number[] // that go by themselves
}

const ids = (rows: readonly { readonly id: number }[]): number[] => rows.map(row => row.id)

const mentioning = ({ db }: Context, entities: readonly number[]): number[] =>
  ids(
    db.all<{ id: number }>(
      `SELECT episode_id AS id FROM mention WHERE entity_id IN (SELECT value FROM json_each(?1))
        UNION SELECT fe.episode_id FROM fact_episode fe JOIN fact f ON f.id = fe.fact_id
          WHERE f.src IN (SELECT value FROM json_each(?1)) OR f.dst IN (SELECT value FROM json_each(?1))`,
      JSON.stringify(entities),
    ),
  )

const groupTargets = ({ db }: Context, group: string): Targets => ({
  groups: [group],
  entities: ids(db.all<{ id: number }>('SELECT id FROM entity WHERE group_id = ?', group)),
  episodes: ids(db.all<{ id: number }>('SELECT id FROM episode WHERE group_id = ?', group)),
  facts: [],
})

const entityTargets = (context: Context, uuid: string): Targets => {
  const sql = `SELECT id, ${NOT_NOTE('entity.id')} AS is_thing FROM entity WHERE uuid = ?`
  const row = context.db.get<{ id: number; is_thing: number }>(sql, uuid)
  if (!row) throw new StoreError('missing', `There is no entity ${uuid}. Nothing was erased.`)
  if (row.is_thing === 0)
    throw new StoreError(
      'invalid',
      `The entity ${uuid} is nothing in particular: every sentence that names nothing hangs on it. Forget a subject or the group instead. Nothing was erased.`,
    )
  return { groups: [], entities: [row.id], episodes: mentioning(context, [row.id]), facts: [] }
}

const wordsIn = (text: string): string => ` ${text.replace(/[^\p{L}\p{N}\p{M}]+/gu, ' ').trim()} `

/** Says whether a text names a subject as words of its own, whatever the case and the accents. */
export const namingOf = (subject: string): ((text: string) => boolean) => {
  const wanted = wordsIn(normaliseName(subject))
  return text => wordsIn(normaliseName(wordsIn(text))).includes(wanted)
}

/** Episodes whose title or origin names the subject; no index holds those. */
const titled = ({ db }: Context, groups: Groups, names: (text: string) => boolean): number[] => {
  const scope = inGroups('group_id', groups)
  const sql = `SELECT id, name || ' ' || source_description || ' ' || coalesce(actor, '') AS title FROM episode WHERE ${scope.sql}`
  return ids(db.all<{ id: number; title: string }>(sql, ...scope.values).filter(({ title }) => names(title)))
}

const subjectTargets = (context: Context, what: Extract<Forget, { kind: 'subject' }>): Targets => {
  const { db } = context
  const norm = normaliseName(what.name)
  if (norm === '') throw new StoreError('invalid', 'A subject needs a name with at least one letter or digit.')
  const scope = inGroups('group_id', what.groups)
  const sql = `SELECT DISTINCT entity_id AS id FROM alias WHERE norm = ? AND ${scope.sql} AND ${NOT_NOTE('entity_id')}`
  const entities = ids(db.all<{ id: number }>(sql, norm, ...scope.values))
  const match = ftsQuery(queryTerms(what.name)).replaceAll(' OR ', ' AND ')
  const docScope = inGroups('d.group_id', what.groups)
  const docs = db.all<{ id: number; text: string; actor: string | null }>(
    `SELECT d.episode_id AS id, d.text, d.actor FROM doc_fts i JOIN doc d ON d.id = i.rowid
      WHERE i.doc_fts MATCH ? AND ${docScope.sql}`,
    match,
    ...docScope.values,
  )
  const names = namingOf(what.name)
  const told = ids(docs.filter(doc => names(`${doc.actor ?? ''} ${doc.text}`)))
  const factScope = inGroups('f.group_id', what.groups)
  const facts = db.all<{ id: number; fact: string }>(
    `SELECT f.id, f.fact FROM fact_fts i JOIN fact f ON f.id = i.rowid WHERE i.fact_fts MATCH ? AND ${factScope.sql}`,
    match,
    ...factScope.values,
  )
  return {
    groups: [],
    entities,
    episodes: [...new Set([...mentioning(context, entities), ...told, ...titled(context, what.groups, names)])],
    facts: ids(facts.filter(({ fact }) => names(fact))),
  }
}

/** Finds what there is to forget. */
export const targetsOf = (context: Context, what: Forget): Targets => {
  if (what.kind === 'group') return groupTargets(context, what.group)
  return what.kind === 'entity' ? entityTargets(context, what.uuid) : subjectTargets(context, what)
}
