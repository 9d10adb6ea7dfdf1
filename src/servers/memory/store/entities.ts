import { perDialect } from '../../../stores/dialect.ts'
import type { InsertTarget } from '../../../stores/sql.ts'
import { indexText } from '../../../text/query.ts'
import { newUuid } from '../ids.ts'
import type { Entity, EntityRef, NewEntity } from '../model.ts'
import { StatementError, StoreError } from '../store.ts'
import { fuzzySame, nameKeys, normaliseName } from '../text/names.ts'
import { readLocked, type StoreContext } from './context.ts'
import { ENTITY_COLUMNS, entityOf, entityReader, inOrderOf, insertRow } from './rows.ts'

const BY_UUID = `SELECT ${ENTITY_COLUMNS} FROM entity n WHERE n.uuid = ?`

/** One entity, or undefined. */
export const findEntity = async ({ db }: StoreContext, uuid: string): Promise<Entity | undefined> => {
  const row = await db.get(BY_UUID, uuid)
  return row && entityOf(row)
}

const readEntity = async ({ db }: StoreContext, id: number): Promise<Entity> => {
  const row = await db.get(`SELECT ${ENTITY_COLUMNS} FROM entity n WHERE n.id = ?`, id)
  if (!row) throw new StoreError('missing', `There is no entity ${id}.`)
  return entityOf(row)
}

const readLockedEntity = async (context: StoreContext, uuid: string): Promise<Entity> => {
  const row = await readLocked(context, BY_UUID, uuid)
  if (!row) throw new StoreError('missing', `There is no entity ${uuid}.`)
  return entityOf(row)
}

const nameKey = ({ db }: StoreContext, group: string, norm: string): string =>
  `${group}\0${db.dialect.storedText(norm)}`

const BY_NORMS = perDialect(
  ({ inList }) => `SELECT ${ENTITY_COLUMNS}, a.norm FROM alias a JOIN entity n ON n.id = a.entity_id
    WHERE a.group_id = ? AND ${inList('a.norm')}`,
)

const namedEntityOf = entityReader<{ readonly norm: string }>()

/** Reads the entities of many names at once; the context remembers them. */
export const readNames = async (context: StoreContext, group: string, wanted: readonly string[]): Promise<void> => {
  const { db, names, entities } = context
  const norms = [...new Set(wanted.map(normaliseName))].filter(norm => !names.has(nameKey(context, group, norm)))
  if (norms.length === 0) return
  for (const norm of norms) names.set(nameKey(context, group, norm), undefined)
  for (const row of await db.all(BY_NORMS(db), group, norms)) {
    const { norm, ...entity } = namedEntityOf(row)
    names.set(nameKey(context, group, norm), entity.id)
    if (!entities.has(entity.id)) entities.set(entity.id, entity)
  }
}

const findByNorm = async (context: StoreContext, group: string, norm: string): Promise<number | undefined> => {
  const key = nameKey(context, group, norm)
  if (!context.names.has(key)) await readNames(context, group, [norm])
  return context.names.get(key)
}

const findByAlias = async (
  context: StoreContext,
  group: string,
  aliases: readonly string[],
): Promise<number | undefined> => {
  for (const alias of aliases) {
    const id = await findByNorm(context, group, normaliseName(alias))
    if (id !== undefined) return id
  }
  return undefined
}

/** The entity whose name differs only by a typing error; undefined if there are several. */
const findSimilar = async ({ db }: StoreContext, group: string, norm: string): Promise<number | undefined> => {
  const keys = nameKeys(norm)
  if (keys.length === 0) return undefined
  const sql = `SELECT DISTINCT norm, entity_id FROM name_key WHERE group_id = ? AND ${db.dialect.inList('key')}`
  const candidates = await db.all<{ norm: string; entity_id: number }>(sql, group, keys)
  const similar = new Set(candidates.filter(other => fuzzySame(norm, other.norm)).map(other => other.entity_id))
  return similar.size === 1 ? [...similar][0] : undefined
}

/** Writes an entity's row of the full-text index. */
export const indexEntity = async (context: StoreContext, id: number, isNew = false): Promise<void> => {
  const { db, index } = context
  if (!isNew) await index.remove('entity', [id])
  const row = await db.get<{ name: string; summary: string; aliases: string; group_id: string }>(
    `SELECT name, summary, group_id, (SELECT coalesce(string_agg(a.name, ' · ' ORDER BY a.norm), '') FROM alias a
      WHERE a.entity_id = entity.id AND a.name <> entity.name) AS aliases FROM entity WHERE id = ?`,
    id,
  )
  if (!row) return
  const texts = [row.name, row.aliases, row.summary].map(indexText)
  await index.put('entity', [{ id, group: row.group_id, texts }])
}

const NAME_KEYS: InsertTarget = {
  table: 'name_key',
  columns: { group_id: 'text', key: 'text', norm: 'text', entity_id: 'integer' },
}

const addName = async (context: StoreContext, group: string, id: number, name: string, norm: string): Promise<void> => {
  const { db, names } = context
  await db.run('INSERT INTO alias (group_id, norm, entity_id, name) VALUES (?, ?, ?, ?)', group, norm, id, name)
  names.set(nameKey(context, group, norm), id)
  const keys = nameKeys(norm).map(key => [group, key, norm, id])
  await db.insertAll(NAME_KEYS, keys)
}

const createEntity = async (context: StoreContext, group: string, given: NewEntity, norm: string): Promise<number> => {
  const { db, now } = context
  const name = given.name.trim()
  const id = await insertRow(db, 'entity', {
    uuid: given.uuid ?? newUuid(now()),
    group_id: group,
    name,
    labels: JSON.stringify(given.labels ?? []),
    summary: given.summary ?? '',
    attributes: JSON.stringify(given.attributes ?? {}),
    created_at: now(),
  })
  await addName(context, group, id, name, norm)
  return id
}

/** Writes what is stated about an entity; a new summary makes its embedding stale. */
const updateEntity = async (
  { db }: StoreContext,
  known: Entity,
  { labels, summary, attributes }: Entity,
): Promise<void> => {
  if (summary !== known.summary) await db.run("DELETE FROM vec WHERE kind = 'entity' AND row_id = ?", known.id)
  await db.run(
    'UPDATE entity SET labels = ?, summary = ?, attributes = ? WHERE id = ?',
    JSON.stringify(labels),
    summary,
    JSON.stringify(attributes),
    known.id,
  )
}

/** Adds what is newly stated about a known entity. Returns whether something changed. */
const enrichEntity = async (context: StoreContext, id: number, given: NewEntity): Promise<boolean> => {
  if (!given.labels?.length && given.summary === undefined && given.attributes === undefined) return false
  const known = context.entities.get(id) ?? (await readEntity(context, id))
  const labels = [...new Set([...known.labels, ...(given.labels ?? [])])]
  const summary = given.summary ?? known.summary
  const attributes = { ...known.attributes, ...given.attributes }
  const isSame =
    labels.length === known.labels.length &&
    summary === known.summary &&
    JSON.stringify(attributes) === JSON.stringify(known.attributes)
  if (isSame) return false
  await updateEntity(context, known, { ...known, labels, summary, attributes })
  context.entities.delete(id) // It is read again as it was stored.
  return true
}

/** Adds further names of an entity; a name of another entity is skipped. Returns whether one was added. */
const addAliases = async (
  context: StoreContext,
  group: string,
  id: number,
  names: readonly string[],
): Promise<boolean> => {
  let isChanged = false
  for (const name of names) {
    const norm = normaliseName(name)
    if (norm === '' || (await findByNorm(context, group, norm)) !== undefined) continue
    await addName(context, group, id, name.trim(), norm)
    isChanged = true
  }
  return isChanged
}

const normOf = (name: string): string => {
  const norm = normaliseName(name)
  if (norm === '') throw new StatementError('An entity needs a name with at least one letter or digit.')
  return norm
}

/** The entity of a uuid, if it is known; `wrongGroup` is the error for one of another group. */
const findInGroup = async (
  context: StoreContext,
  group: string,
  uuid: string | undefined,
  wrongGroup: (known: Entity) => string,
): Promise<number | undefined> => {
  const known = uuid === undefined ? undefined : await findEntity(context, uuid)
  if (known && known.group !== group) throw new StoreError('invalid', wrongGroup(known))
  return known?.id
}

/** Finds an entity by uuid, normalised name, alias or similar name, or creates it. */
export const resolveEntity = async (context: StoreContext, group: string, given: NewEntity): Promise<number> => {
  const norm = normOf(given.name)
  const wrongGroup = ({ uuid }: Entity) => `The entity ${uuid} belongs to another group. Name it without its uuid.`
  const found =
    (await findInGroup(context, group, given.uuid, wrongGroup)) ??
    (await findByNorm(context, group, norm)) ??
    (await findByAlias(context, group, given.aliases ?? [])) ??
    (await findSimilar(context, group, norm))
  const id = found ?? (await createEntity(context, group, given, norm))
  const isEnriched = found !== undefined && (await enrichEntity(context, id, given))
  const isNamed = context.names.get(nameKey(context, group, norm)) !== undefined
  const isRenamed = await addAliases(context, group, id, [...(isNamed ? [] : [given.name]), ...(given.aliases ?? [])])
  if (found === undefined || isEnriched || isRenamed) await indexEntity(context, id, found === undefined)
  return id
}

/** Finds an imported entity by uuid or exact name, or creates it. */
export const restoreEntity = async (context: StoreContext, group: string, given: NewEntity): Promise<number> => {
  const norm = normOf(given.name)
  const wrongGroup = (known: Entity) => `The entity ${known.uuid} is in group ${known.group} here, not in ${group}.`
  const found = (await findInGroup(context, group, given.uuid, wrongGroup)) ?? (await findByNorm(context, group, norm))
  const id = found ?? (await createEntity(context, group, given, norm))
  await addAliases(context, group, id, given.aliases ?? [])
  await indexEntity(context, id, found === undefined)
  return id
}

/** Entities that the same call has resolved already. */
export interface ResolvedEntities {
  readonly byUuid: ReadonlyMap<string, number> // under the uuid that the caller gave
  readonly byName: Map<string, number>
}

/** The entity that a fact refers to. */
export const resolveRef = async (
  context: StoreContext,
  group: string,
  ref: EntityRef,
  { byUuid, byName }: ResolvedEntities,
): Promise<number> => {
  if (!('uuid' in ref)) {
    const id = byName.get(ref.name) ?? (await resolveEntity(context, group, ref))
    byName.set(ref.name, id)
    return id
  }
  const given = byUuid.get(ref.uuid)
  if (given !== undefined) return given
  const known = await findEntity(context, ref.uuid)
  if (known?.group === group) return known.id
  throw new StoreError('missing', `There is no entity ${ref.uuid} in group ${group}. Refer to it by name to create it.`)
}

const BY_IDS = perDialect(({ inList }) => `SELECT ${ENTITY_COLUMNS} FROM entity n WHERE ${inList('n.id')}`)

/** Entities by row id, in the order of the ids. */
export const readEntities = async ({ db }: StoreContext, ids: readonly number[]): Promise<Entity[]> => {
  if (ids.length === 0) return []
  return inOrderOf(ids, (await db.all(BY_IDS(db), ids)).map(entityOf), ({ id }) => id)
}

/** The same, but only those are read that this transaction has not read yet. */
export const readCachedEntities = async (context: StoreContext, ids: readonly number[]): Promise<Entity[]> => {
  const { entities } = context
  const missing = ids.filter(id => !entities.has(id))
  for (const entity of await readEntities(context, missing)) entities.set(entity.id, entity)
  return ids.flatMap(id => entities.get(id) ?? [])
}

/** Adds a name to an entity; rejects a name of another entity. */
export const setAlias = async (context: StoreContext, uuid: string, alias: string): Promise<void> => {
  const entity = await readLockedEntity(context, uuid)
  const norm = normaliseName(alias)
  const other = await findByNorm(context, entity.group, norm)
  if (norm === '' || (other !== undefined && other !== entity.id))
    throw new StoreError('invalid', `"${alias}" ${norm === '' ? 'is no name' : 'already names another entity'}.`)
  if (await addAliases(context, entity.group, entity.id, [alias])) await indexEntity(context, entity.id)
}

/** Replaces what is stated about an entity. */
export const changeEntity = async (
  context: StoreContext,
  uuid: string,
  change: Pick<NewEntity, 'summary' | 'labels' | 'attributes'>,
): Promise<Entity> => {
  const known = await readLockedEntity(context, uuid)
  const changed: Entity = {
    ...known,
    summary: change.summary ?? known.summary,
    labels: change.labels ?? known.labels,
    attributes: change.attributes ?? known.attributes,
  }
  await updateEntity(context, known, changed)
  await indexEntity(context, known.id)
  return readEntity(context, known.id)
}
