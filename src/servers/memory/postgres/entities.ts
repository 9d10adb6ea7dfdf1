import { newUuid } from '../ids.ts'
import type { Entity, EntityRef, NewEntity } from '../model.ts'
import { entityOf } from '../sqlite/rows.ts'
import { StoreError } from '../store.ts'
import { fuzzySame, nameKeys, normaliseName } from '../text/names.ts'
import { indexText } from '../text/query.ts'
import { type Context, holdGroups } from './context.ts'
import { index, unindex } from './indexing.ts'
import { idIn } from './rows.ts'

const byId = async ({ db }: Context, id: number): Promise<Entity> => {
  const row = await db.get('SELECT * FROM entity WHERE id = ?', id)
  if (!row) throw new StoreError('missing', `There is no entity ${id}.`)
  return entityOf(row)
}

const byUuid = async ({ db }: Context, uuid: string): Promise<Entity | undefined> => {
  const row = await db.get('SELECT * FROM entity WHERE uuid = ?', uuid)
  return row && entityOf(row)
}

/** An entity whose group nobody else writes in until the transaction ends. */
const heldByUuid = async (context: Context, uuid: string): Promise<Entity> => {
  const seen = await byUuid(context, uuid)
  if (seen) await holdGroups(context, [seen.group])
  const entity = seen && (await byUuid(context, uuid))
  if (!entity) throw new StoreError('missing', `There is no entity ${uuid}.`)
  return entity
}

const nameIn = (group: string, norm: string): string => `${group}\0${norm}`

/** Looks many names up at once; what they mean is known for the rest of the transaction. */
export const lookUp = async (context: Context, group: string, wanted: readonly string[]): Promise<void> => {
  const { db, names, entities } = context
  const norms = [...new Set(wanted.map(normaliseName))].filter(norm => !names.has(nameIn(group, norm)))
  if (norms.length === 0) return
  const sql =
    'SELECT n.*, a.norm FROM alias a JOIN entity n ON n.id = a.entity_id WHERE a.group_id = ? AND a.norm = ANY (?)'
  for (const norm of norms) names.set(nameIn(group, norm), undefined)
  for (const row of await db.all(sql, group, norms)) {
    names.set(nameIn(group, String(row.norm)), Number(row.id))
    if (!entities.has(Number(row.id))) entities.set(Number(row.id), entityOf(row))
  }
}

const byNorm = async (context: Context, group: string, norm: string): Promise<number | undefined> => {
  await lookUp(context, group, [norm])
  return context.names.get(nameIn(group, norm))
}

/** The one entity whose name is the same but for a slip; when two could be meant, none is. */
const byLikeness = async ({ db }: Context, group: string, norm: string): Promise<number | undefined> => {
  const keys = nameKeys(norm)
  if (keys.length === 0) return undefined
  const candidates = await db.all<{ norm: string; entity_id: number }>(
    'SELECT DISTINCT norm, entity_id FROM name_key WHERE group_id = ? AND key = ANY (?)',
    group,
    keys,
  )
  const alike = new Set(candidates.filter(other => fuzzySame(norm, other.norm)).map(other => other.entity_id))
  return alike.size === 1 ? [...alike][0] : undefined
}

/** Rewrites an entity's row in the full-text index. */
export const indexEntity = async (context: Context, id: number): Promise<void> => {
  const row = await context.db.get<{ name: string; summary: string; aliases: string; group_id: string }>(
    `SELECT name, summary, group_id, (SELECT coalesce(string_agg(a.name, ' · '), '') FROM alias a
      WHERE a.entity_id = entity.id AND a.name <> entity.name) AS aliases FROM entity WHERE id = ?`,
    id,
  )
  await unindex(context, 'entity', [id])
  if (!row) return
  const texts = [row.name, row.aliases, row.summary].map(indexText)
  await index(context, 'entity', [{ id, group: row.group_id, texts }])
}

const giveName = async (context: Context, group: string, id: number, name: string, norm: string): Promise<void> => {
  const { db, names } = context
  await db.run('INSERT INTO alias (group_id, norm, entity_id, name) VALUES (?, ?, ?, ?)', group, norm, id, name)
  names.set(nameIn(group, norm), id)
  const keys = nameKeys(norm)
  if (keys.length === 0) return
  await db.run(
    'INSERT INTO name_key (group_id, key, norm, entity_id) SELECT ?::text, k, ?::text, ?::bigint FROM unnest(?::text[]) k',
    group,
    norm,
    id,
    keys,
  )
}

const create = async (context: Context, group: string, given: NewEntity, norm: string): Promise<number> => {
  const { db, now } = context
  const name = given.name.trim()
  const row = await db.get<{ id: number }>(
    `INSERT INTO entity (uuid, group_id, name, labels, summary, attributes, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    given.uuid ?? newUuid(now()),
    group,
    name,
    JSON.stringify(given.labels ?? []),
    given.summary ?? '',
    JSON.stringify(given.attributes ?? {}),
    now(),
  )
  const id = idIn(row)
  await giveName(context, group, id, name, norm)
  return id
}

/** What an entity's embedding was made of is no longer what is said about it. */
const dropVector = async ({ db }: Context, id: number): Promise<void> => {
  await db.run("DELETE FROM vec WHERE kind = 'entity' AND row_id = ?", id)
}

/** Adds what is newly said about a known entity. True when something changed. */
const enrich = async (context: Context, id: number, given: NewEntity): Promise<boolean> => {
  if (!given.labels?.length && given.summary === undefined && given.attributes === undefined) return false
  const known = context.entities.get(id) ?? (await byId(context, id))
  context.entities.set(id, known)
  const labels = [...new Set([...known.labels, ...(given.labels ?? [])])]
  const summary = given.summary ?? known.summary
  const attributes = { ...known.attributes, ...given.attributes }
  const isSame =
    labels.length === known.labels.length &&
    summary === known.summary &&
    JSON.stringify(attributes) === JSON.stringify(known.attributes)
  if (isSame) return false
  if (summary !== known.summary) await dropVector(context, id)
  context.entities.set(id, { ...known, labels, summary, attributes })
  await context.db.run(
    'UPDATE entity SET labels = ?, summary = ?, attributes = ? WHERE id = ?',
    JSON.stringify(labels),
    summary,
    JSON.stringify(attributes),
    id,
  )
  return true
}

/** Names an entity may also be called by; one that already means another entity stays with that. */
const addAliases = async (context: Context, group: string, id: number, names: readonly string[]): Promise<boolean> => {
  let changed = false
  for (const name of names) {
    const norm = normaliseName(name)
    if (norm === '' || (await byNorm(context, group, norm)) !== undefined) continue
    await giveName(context, group, id, name.trim(), norm)
    changed = true
  }
  return changed
}

const byAlias = async (context: Context, group: string, aliases: readonly string[]): Promise<number | undefined> => {
  for (const alias of aliases) {
    const id = await byNorm(context, group, normaliseName(alias))
    if (id !== undefined) return id
  }
  return undefined
}

const find = async (context: Context, group: string, given: NewEntity, norm: string): Promise<number | undefined> => {
  const known = given.uuid === undefined ? undefined : await byUuid(context, given.uuid)
  if (known && known.group !== group)
    throw new StoreError('invalid', `The entity ${known.uuid} belongs to another group. Name it without its uuid.`)
  return (
    known?.id ??
    (await byNorm(context, group, norm)) ??
    (await byAlias(context, group, given.aliases ?? [])) ??
    (await byLikeness(context, group, norm))
  )
}

const normOf = (name: string): string => {
  const norm = normaliseName(name)
  if (norm === '') throw new StoreError('invalid', 'An entity needs a name with at least one letter or digit.')
  return norm
}

/** The entity that is meant, made when it is new: by uuid, normalised name, alias or likeness, never on less. */
export const resolveEntity = async (context: Context, group: string, given: NewEntity): Promise<number> => {
  const norm = normOf(given.name)
  const found = await find(context, group, given, norm)
  const id = found ?? (await create(context, group, given, norm))
  const enriched = found !== undefined && (await enrich(context, id, given))
  const named = await addAliases(context, group, id, [given.name, ...(given.aliases ?? [])])
  if (found === undefined || enriched || named) await indexEntity(context, id)
  return id
}

/** An entity of another store: it is the one of the same name here, or new, but never one that is merely alike. */
export const restoreEntity = async (context: Context, group: string, given: NewEntity): Promise<number> => {
  const norm = normOf(given.name)
  const known = given.uuid === undefined ? undefined : await byUuid(context, given.uuid)
  if (known && known.group !== group)
    throw new StoreError('invalid', `The entity ${known.uuid} is in group ${known.group} here, not in ${group}.`)
  const id = known?.id ?? (await byNorm(context, group, norm)) ?? (await create(context, group, given, norm))
  await addAliases(context, group, id, given.aliases ?? [])
  await indexEntity(context, id)
  return id
}

/** The entity a fact points to. */
export const resolveRef = async (
  context: Context,
  teller: {
    readonly group: string
    readonly called?: ReadonlyMap<string, number>
    readonly named?: Map<string, number>
  },
  ref: EntityRef,
): Promise<number> => {
  const { group, called, named } = teller
  if (!('uuid' in ref)) {
    const id = named?.get(ref.name) ?? (await resolveEntity(context, group, ref))
    named?.set(ref.name, id)
    return id
  }
  const given = called?.get(ref.uuid)
  if (given !== undefined) return given
  const known = await byUuid(context, ref.uuid)
  if (known?.group === group) return known.id
  throw new StoreError('missing', `There is no entity ${ref.uuid} in group ${group}. Name it instead, and it is made.`)
}

/** Entities by row id, in the order asked for. */
export const readEntities = async ({ db }: Context, ids: readonly number[]): Promise<Entity[]> => {
  if (ids.length === 0) return []
  const rows = await db.all('SELECT * FROM entity WHERE id = ANY (?)', ids)
  const found = new Map(rows.map(row => [Number(row.id), entityOf(row)]))
  return ids.flatMap(id => found.get(id) ?? [])
}

/** Gives an entity another name; refused when that name means somebody else. */
export const setAlias = async (context: Context, uuid: string, alias: string): Promise<void> => {
  const entity = await heldByUuid(context, uuid)
  const norm = normaliseName(alias)
  const other = await byNorm(context, entity.group, norm)
  if (norm === '' || (other !== undefined && other !== entity.id))
    throw new StoreError('invalid', `"${alias}" ${norm === '' ? 'is no name' : 'already names another entity'}.`)
  if (await addAliases(context, entity.group, entity.id, [alias])) await indexEntity(context, entity.id)
}

/** Replaces what is said about an entity. */
export const changeEntity = async (
  context: Context,
  uuid: string,
  change: Pick<NewEntity, 'summary' | 'labels' | 'attributes'>,
): Promise<Entity> => {
  const known = await heldByUuid(context, uuid)
  if (change.summary !== undefined && change.summary !== known.summary) await dropVector(context, known.id)
  await context.db.run(
    'UPDATE entity SET summary = ?, labels = ?, attributes = ? WHERE id = ?',
    change.summary ?? known.summary,
    JSON.stringify(change.labels ?? known.labels),
    JSON.stringify(change.attributes ?? known.attributes),
    known.id,
  )
  await indexEntity(context, known.id)
  return byId(context, known.id)
}
