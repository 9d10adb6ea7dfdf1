import { normHash } from '../ids.ts'
import type { Entity, Instant, NewEntity } from '../model.ts'
import { type By, StoreError } from '../store.ts'
import { normaliseName } from '../text/names.ts'
import { readLocked, type StoreContext, writeAudit } from './context.ts'
import { changeEntity, setAlias } from './entities.ts'
import { indexFact } from './facts.ts'
import { readIds } from './rows.ts'

// Corrections by the owner of a memory, each with an entry in the audit log.

/** What to change of an entity; its old name stays an alias, so that texts which use it are still understood. */
export type EntityEdit = Pick<NewEntity, 'summary' | 'labels'> & { readonly name?: string | undefined }

// A fact that a rule found is indexed as its passage.
const IS_INDEXED = "(origin <> 'rule' OR doc_id IS NULL)"

/** Gives an entity another name; rejects one that names another entity. */
const renameEntity = async (context: StoreContext, uuid: string, name: string): Promise<void> => {
  const { db, index } = context
  await setAlias(context, uuid, name)
  const sql = `SELECT id FROM fact WHERE ${IS_INDEXED} AND
    (src = (SELECT id FROM entity WHERE uuid = ?1) OR dst = (SELECT id FROM entity WHERE uuid = ?1))`
  const facts = await readIds(db, sql, uuid)
  await index.remove('fact', facts)
  const [id = -1] = await readIds(db, 'UPDATE entity SET name = ? WHERE uuid = ? RETURNING id', name, uuid)
  await db.run('UPDATE alias SET name = ? WHERE entity_id = ? AND norm = ?', name, id, normaliseName(name))
  await db.run("DELETE FROM vec WHERE kind = 'entity' AND row_id = ?", id)
  for (const fact of facts) await indexFact(context, fact)
}

export const editEntity = async (context: StoreContext, uuid: string, edit: EntityEdit, by: By): Promise<Entity> => {
  const name = edit.name?.trim()
  if (name !== undefined) await renameEntity(context, uuid, name)
  const entity = await changeEntity(context, uuid, { summary: edit.summary, labels: edit.labels })
  await writeAudit(context, 'change entity', [uuid], by)
  return entity
}

/** What to change of a fact; null removes a time. */
export interface FactEdit {
  readonly fact?: string | undefined
  readonly name?: string | undefined // the relation
  readonly validAt?: Instant | null | undefined
  readonly invalidAt?: Instant | null | undefined
}

interface FactRow {
  readonly id: number
  readonly group: string
  readonly src: number
  readonly dst: number
  readonly name: string
  readonly fact: string
  readonly origin: string
  readonly confidence: number
  readonly validAt: Instant | null
  readonly invalidAt: Instant | null
  readonly expiredAt: Instant | null
}

const SELECT_FACT = `SELECT id, group_id AS "group", src, dst, name, fact, origin, confidence, valid_at AS "validAt",
  invalid_at AS "invalidAt", expired_at AS "expiredAt" FROM fact WHERE uuid = ?`

const UPDATE_FACT = `UPDATE fact SET fact = ?1, name = ?2, norm_hash = ?3, origin = ?4, confidence = ?5, valid_at = ?6,
  valid_gran = CASE WHEN CAST(?7 AS BIGINT) = 1 THEN NULL ELSE valid_gran END, invalid_at = ?8, expired_at = ?9,
  superseded_by = CASE WHEN CAST(?8 AS BIGINT) IS NULL THEN NULL ELSE superseded_by END WHERE id = ?10`

/** Corrects a fact, or ends it: `invalidAt` is when it stopped being true. */
export const editFact = async (
  context: StoreContext,
  uuid: string,
  edit: FactEdit,
  by: By,
): Promise<{ readonly group: string }> => {
  const { db, index } = context
  const known = await readLocked<FactRow>(context, SELECT_FACT, uuid)
  if (!known) throw new StoreError('missing', `There is no fact ${uuid}.`)
  const { validAt = known.validAt, invalidAt = known.invalidAt, fact = known.fact, name = known.name } = edit
  if (validAt !== null && invalidAt !== null && invalidAt < validAt)
    throw new StoreError('invalid', 'A fact cannot stop being true before it becomes true. Nothing was changed.')
  const isReworded = fact !== known.fact
  await index.remove('fact', [known.id])
  if (isReworded) await db.run("DELETE FROM vec WHERE kind = 'fact' AND row_id = ?", known.id)
  await db.run(
    UPDATE_FACT,
    fact,
    name,
    normHash(known.group, known.src, known.dst, fact),
    // Reworded, it no longer quotes the passage that a rule found it in.
    isReworded ? 'agent' : known.origin,
    isReworded ? 1 : known.confidence,
    validAt,
    validAt === known.validAt ? 0 : 1,
    invalidAt,
    expiryOf(invalidAt, known, context.now()),
    known.id,
  )
  if ((await readIds(db, `SELECT id FROM fact WHERE id = ? AND ${IS_INDEXED}`, known.id)).length > 0)
    await indexFact(context, known.id)
  await writeAudit(context, 'change fact', [uuid], by)
  return { group: known.group }
}

/** A fact is retired when it has stopped being true; one that is true again is not. */
const expiryOf = (invalidAt: Instant | null, { expiredAt }: FactRow, now: Instant): Instant | null =>
  invalidAt === null || invalidAt > now ? null : (expiredAt ?? now)
