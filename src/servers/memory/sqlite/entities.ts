import type { SqlRow } from '../../../stores/sqlite.ts'
import { newUuid } from '../ids.ts'
import type { Entity, EntityRef, NewEntity } from '../model.ts'
import { StoreError } from '../store.ts'
import { fuzzySame, nameKeys, normaliseName } from '../text/names.ts'
import { indexText } from '../text/query.ts'
import type { Context } from './context.ts'
import { entityOf } from './rows.ts'

/** One entity by row id, which must be there. */
const readEntity = ({ db }: Context, id: number): Entity => {
  const row = db.get('SELECT * FROM entity WHERE id = ?', id)
  if (!row) throw new StoreError('missing', `There is no entity ${id}.`)
  return entityOf(row)
}

const byUuid = ({ db }: Context, uuid: string): Entity | undefined => {
  const row = db.get('SELECT * FROM entity WHERE uuid = ?', uuid)
  return row && entityOf(row)
}

const byNorm = ({ db }: Context, group: string, norm: string): number | undefined =>
  db.get<{ entity_id: number }>('SELECT entity_id FROM alias WHERE group_id = ? AND norm = ?', group, norm)?.entity_id

/** The one entity whose name is the same but for a slip; when two could be meant, none is. */
const byLikeness = ({ db }: Context, group: string, norm: string): number | undefined => {
  const keys = nameKeys(norm)
  if (keys.length === 0) return undefined
  const candidates = db.all<{ norm: string; entity_id: number }>(
    'SELECT DISTINCT norm, entity_id FROM name_key WHERE group_id = ? AND key IN (SELECT value FROM json_each(?))',
    group,
    JSON.stringify(keys),
  )
  const alike = new Set(candidates.filter(other => fuzzySame(norm, other.norm)).map(other => other.entity_id))
  return alike.size === 1 ? [...alike][0] : undefined
}

/** Rewrites an entity's row in the full-text index. */
const indexEntity = ({ db }: Context, id: number, isNew = false): void => {
  const row = db.get<{ name: string; summary: string; aliases: string }>(
    `SELECT name, summary, (SELECT coalesce(group_concat(a.name, ' · '), '') FROM alias a
      WHERE a.entity_id = entity.id AND a.name <> entity.name) AS aliases FROM entity WHERE id = ?`,
    id,
  )
  if (!isNew) db.run('DELETE FROM entity_fts WHERE rowid = ?', id)
  if (!row) return
  const [name, aliases, summary] = [row.name, row.aliases, row.summary].map(indexText)
  db.run(
    'INSERT INTO entity_fts (rowid, name, aliases, summary) VALUES (?, ?, ?, ?)',
    id,
    name ?? '',
    aliases ?? '',
    summary ?? '',
  )
}

const giveName = ({ db }: Context, group: string, id: number, name: string, norm: string): void => {
  db.run('INSERT INTO alias (group_id, norm, entity_id, name) VALUES (?, ?, ?, ?)', group, norm, id, name)
  for (const key of nameKeys(norm))
    db.run('INSERT INTO name_key (group_id, key, norm, entity_id) VALUES (?, ?, ?, ?)', group, key, norm, id)
}

const create = (context: Context, group: string, given: NewEntity, norm: string): number => {
  const { db, now } = context
  const name = given.name.trim()
  const { id } = db.run(
    'INSERT INTO entity (uuid, group_id, name, labels, summary, attributes, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
    given.uuid ?? newUuid(now()),
    group,
    name,
    JSON.stringify(given.labels ?? []),
    given.summary ?? '',
    JSON.stringify(given.attributes ?? {}),
    now(),
  )
  giveName(context, group, id, name, norm)
  return id
}

/** What an entity's embedding was made of is no longer what is said about it. */
const dropVector = ({ db }: Context, id: number): void => {
  db.run("DELETE FROM vec WHERE kind = 'entity' AND row_id = ?", id)
}

/** Adds what is newly said about a known entity. True when something changed. */
const enrich = (context: Context, id: number, given: NewEntity): boolean => {
  if (!given.labels?.length && given.summary === undefined && given.attributes === undefined) return false
  const known = readEntity(context, id)
  const labels = [...new Set([...known.labels, ...(given.labels ?? [])])]
  const summary = given.summary ?? known.summary
  const attributes = { ...known.attributes, ...given.attributes }
  const isSame =
    labels.length === known.labels.length &&
    summary === known.summary &&
    JSON.stringify(attributes) === JSON.stringify(known.attributes)
  if (isSame) return false
  if (summary !== known.summary) dropVector(context, id)
  context.db.run(
    'UPDATE entity SET labels = ?, summary = ?, attributes = ? WHERE id = ?',
    JSON.stringify(labels),
    summary,
    JSON.stringify(attributes),
    id,
  )
  return true
}

/** Names an entity may also be called by; one that already means another entity stays with that. */
const addAliases = (context: Context, group: string, id: number, names: readonly string[]): boolean => {
  let changed = false
  for (const name of names) {
    const norm = normaliseName(name)
    if (norm === '' || byNorm(context, group, norm) !== undefined) continue
    giveName(context, group, id, name.trim(), norm)
    changed = true
  }
  return changed
}

const find = (
  context: Context,
  group: string,
  given: NewEntity,
  norm: string,
  sameName: number | undefined,
): number | undefined => {
  const known = given.uuid === undefined ? undefined : byUuid(context, given.uuid)
  if (known && known.group !== group)
    throw new StoreError('invalid', `The entity ${known.uuid} belongs to another group. Name it without its uuid.`)
  const called = () => (given.aliases ?? []).map(alias => byNorm(context, group, normaliseName(alias)))
  return known?.id ?? sameName ?? called().find(id => id !== undefined) ?? byLikeness(context, group, norm)
}

/** The entity that is meant, made when it is new: by uuid, normalised name, alias or likeness, never on less. */
export const resolveEntity = (context: Context, group: string, given: NewEntity): number => {
  const norm = normaliseName(given.name)
  if (norm === '') throw new StoreError('invalid', 'An entity needs a name with at least one letter or digit.')
  const sameName = byNorm(context, group, norm)
  const found = find(context, group, given, norm, sameName)
  const id = found ?? create(context, group, given, norm)
  const enriched = found !== undefined && enrich(context, id, given)
  // A name found by likeness or through an alias is from now on known itself.
  const isNamed = sameName !== undefined || found === undefined
  const named = addAliases(context, group, id, [...(isNamed ? [] : [given.name]), ...(given.aliases ?? [])])
  if (found === undefined || enriched || named) indexEntity(context, id, found === undefined)
  return id
}

/** An entity of another store: it is the one of the same name here, or new, but never one that is merely alike. */
export const restoreEntity = (context: Context, group: string, given: NewEntity): number => {
  const norm = normaliseName(given.name)
  if (norm === '') throw new StoreError('invalid', 'An entity needs a name with at least one letter or digit.')
  const known = given.uuid === undefined ? undefined : byUuid(context, given.uuid)
  if (known && known.group !== group)
    throw new StoreError('invalid', `The entity ${known.uuid} is in group ${known.group} here, not in ${group}.`)
  const id = known?.id ?? byNorm(context, group, norm) ?? create(context, group, given, norm)
  addAliases(context, group, id, given.aliases ?? [])
  indexEntity(context, id)
  return id
}

/** The entity a fact points to. */
export const resolveRef = (
  context: Context,
  teller: {
    readonly group: string
    readonly called?: ReadonlyMap<string, number>
    readonly named?: Map<string, number>
  },
  ref: EntityRef,
): number => {
  const { group, called, named } = teller
  if (!('uuid' in ref)) {
    const id = named?.get(ref.name) ?? resolveEntity(context, group, ref)
    named?.set(ref.name, id)
    return id
  }
  const given = called?.get(ref.uuid)
  if (given !== undefined) return given
  const known = byUuid(context, ref.uuid)
  if (known?.group === group) return known.id
  throw new StoreError('missing', `There is no entity ${ref.uuid} in group ${group}. Name it instead, and it is made.`)
}

/** Entities by row id, in the order asked for. */
export const readEntities = ({ db }: Context, ids: readonly number[]): Entity[] => {
  const rows = db.all<SqlRow>('SELECT * FROM entity WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids))
  const found = new Map(rows.map(row => [Number(row.id), entityOf(row)]))
  return ids.flatMap(id => found.get(id) ?? [])
}

/** Gives an entity another name; refused when that name means somebody else. */
export const setAlias = (context: Context, uuid: string, alias: string): void => {
  const entity = byUuid(context, uuid)
  if (!entity) throw new StoreError('missing', `There is no entity ${uuid}.`)
  const norm = normaliseName(alias)
  const other = byNorm(context, entity.group, norm)
  if (norm === '' || (other !== undefined && other !== entity.id))
    throw new StoreError('invalid', `"${alias}" ${norm === '' ? 'is no name' : 'already names another entity'}.`)
  if (addAliases(context, entity.group, entity.id, [alias])) indexEntity(context, entity.id)
}

/** Replaces what is said about an entity. */
export const changeEntity = (
  context: Context,
  uuid: string,
  change: Pick<NewEntity, 'summary' | 'labels' | 'attributes'>,
): Entity => {
  const known = byUuid(context, uuid)
  if (!known) throw new StoreError('missing', `There is no entity ${uuid}.`)
  if (change.summary !== undefined && change.summary !== known.summary) dropVector(context, known.id)
  context.db.run(
    'UPDATE entity SET summary = ?, labels = ?, attributes = ? WHERE id = ?',
    change.summary ?? known.summary,
    JSON.stringify(change.labels ?? known.labels),
    JSON.stringify(change.attributes ?? known.attributes),
    known.id,
  )
  indexEntity(context, known.id)
  return readEntity(context, known.id)
}
