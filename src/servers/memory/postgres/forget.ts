import { identifier, type Postgres } from '../../../stores/postgres.ts'
import { PostgresError } from '../../../stores/postgres-failures.ts'
import type { Instant } from '../model.ts'
import { samplesOf } from '../sqlite/residue.ts'
import type { By, Forget, ForgetProof } from '../store.ts'
import { type Context, writeAudit } from './context.ts'
import { indexEntity } from './entities.ts'
import { countAll, gone, type Inventory, takeInventory } from './forget-inventory.ts'
import { type Targets, targetsOf } from './forget-targets.ts'
import { dropOrphans, eraseEntities, eraseEpisode, eraseFacts, eraseGroups } from './remove.ts'
import { TENANT_TABLES } from './schema.ts'
import { unname } from './unname.ts'

const MENTIONED = 'SELECT entity_id FROM mention WHERE episode_id = ANY (?)'

/** What others wrote about those that stay may quote what goes. */
const blankSummaries = async (context: Context, { episodes }: Targets): Promise<void> => {
  const { db } = context
  const touched = await db.all<{ id: number }>(
    `UPDATE entity SET summary = '' WHERE summary <> '' AND id IN (${MENTIONED}) RETURNING id`,
    episodes,
  )
  for (const { id } of touched) await indexEntity(context, id)
  await db.run(
    `DELETE FROM community WHERE id IN (SELECT community_id FROM community_member WHERE entity_id IN (${MENTIONED}))`,
    episodes,
  )
}

/** The trail says that groups were cleared; which, it may not say of one that is forgotten. */
const unnameGroups = async ({ db }: Context, groups: readonly string[]): Promise<void> => {
  const others =
    "SELECT coalesce(json_agg(v), '[]')::text FROM json_array_elements_text(ids::json) v WHERE v <> ALL (?)"
  await db.run(`UPDATE audit SET ids = (${others}) WHERE op = 'clear'`, groups)
}

const erase = async (context: Context, targets: Targets): Promise<void> => {
  await blankSummaries(context, targets)
  if (targets.groups.length > 0) {
    await eraseGroups(context, targets.groups)
    return unnameGroups(context, targets.groups)
  }
  for (const id of targets.episodes) await eraseEpisode(context, id)
  await dropOrphans(context, await eraseFacts(context, targets.facts))
  const sql = 'SELECT id FROM fact WHERE src = ANY (?1) OR dst = ANY (?1)'
  const own = await context.db.all<{ id: number }>(sql, targets.entities)
  const ends = await eraseFacts(
    context,
    own.map(({ id }) => id),
  )
  await eraseEntities(context, targets.entities)
  await dropOrphans(context, ends)
}

interface Erased extends Inventory {
  readonly at: Instant
}

/** Erases what is meant, and says what went with it. */
export const eraseAll = async (context: Context, what: Forget, by: By | undefined): Promise<Erased> => {
  const targets = await targetsOf(context, what)
  const before = await takeInventory(context, targets)
  await erase(context, targets)
  if (what.kind === 'subject') await unname(context, what)
  const after = await countAll(context)
  const erased = {
    at: context.now(),
    episodes: await gone(context, 'episode', before.episodes),
    entities: await gone(context, 'entity', before.entities),
    facts: await gone(context, 'fact', before.facts),
    counts: {
      doc: before.counts.doc - after.doc,
      vec: before.counts.vec - after.vec,
      job: before.counts.job - after.job,
    },
  }
  await writeAudit(context, `forget ${what.kind}`, [...erased.episodes.keys(), ...erased.entities.keys()], by)
  return erased
}

const OWN_WORDS = `SELECT s FROM unnest(?::text[]) s WHERE
  EXISTS (SELECT 1 FROM episode WHERE position(lower(s) IN lower(name || chr(10) || content || chr(10) || source_description)) > 0)
  OR EXISTS (SELECT 1 FROM doc WHERE position(lower(s) IN lower(coalesce(actor, '') || chr(10) || text)) > 0)
  OR EXISTS (SELECT 1 FROM fact WHERE position(lower(s) IN lower(fact)) > 0)
  OR EXISTS (SELECT 1 FROM entity WHERE position(lower(s) IN lower(name || chr(10) || summary)) > 0)
  OR EXISTS (SELECT 1 FROM alias WHERE position(lower(s) IN lower(name)) > 0)`

const REST = `SELECT s FROM unnest(?::text[]) s WHERE
  EXISTS (SELECT 1 FROM term WHERE position(lower(s) IN stem) > 0)
  OR EXISTS (SELECT 1 FROM doc WHERE position(lower(s) IN lower(prev || chr(10) || next || chr(10) || coalesce(index_text, ''))) > 0)
  OR EXISTS (SELECT 1 FROM saga WHERE position(lower(s) IN lower(name || chr(10) || summary)) > 0)
  OR EXISTS (SELECT 1 FROM community WHERE position(lower(s) IN lower(name || chr(10) || summary)) > 0)`

/** The text of a sample; bytes cut out of the middle of a letter do not make one. */
const textOf = (sample: string): string[] => {
  const text = Buffer.from(sample, 'latin1').toString('utf8')
  return text.includes('\uFFFD') || text.includes('\0') ? [] : [text]
}

const MOST_SAMPLES = 2_000 // each is looked for in every row

/** Pieces of the erased texts that are still in rows of this tenant, and are nobody else's own words. */
export const findLeft = async (
  { db }: Context,
  erased: Inventory,
): Promise<{ readonly checked: number; readonly left: number }> => {
  const texts = [...erased.episodes.values(), ...erased.facts.values(), ...erased.entities.values()].flat()
  const samples = samplesOf(texts).flatMap(textOf).slice(0, MOST_SAMPLES)
  const left = (await db.all<{ s: string }>(REST, samples)).map(row => row.s)
  const theirs = left.length === 0 ? [] : await db.all<{ s: string }>(OWN_WORDS, left)
  return { checked: samples.length, left: left.length - theirs.length }
}

/** Gives the room of erased rows back; says of each table what was done. */
export const vacuum = async (postgres: Postgres, schema: string): Promise<string[]> => {
  const tables = TENANT_TABLES.map(table => `${identifier(schema)}.${table}`)
  try {
    await postgres.alone(`VACUUM ${tables.join(', ')}`)
    return tables.map(
      table => `table ${table}: vacuumed; the server's log, its backups and its replicas are not searched`,
    )
  } catch (error) {
    if (!(error instanceof PostgresError)) throw error
    return tables.map(table => `table ${table}: erased rows stay on the disk until it is vacuumed (${error.message})`)
  }
}

/** The proof: rows are gone for good, but what lies on the server's disk cannot be seen from here, so it is never called clean. */
export const proofOf = (
  { at, episodes, entities, facts, counts }: Erased,
  { checked, left }: { readonly checked: number; readonly left: number },
  files: readonly string[],
): ForgetProof => ({
  at,
  erased: {
    episodes: [...episodes.keys()],
    entities: [...entities.keys()],
    facts: [...facts.keys()],
    docs: counts.doc,
    vectors: counts.vec,
    jobs: counts.job,
  },
  checked,
  gone: checked - left,
  files,
  clean: false,
})
