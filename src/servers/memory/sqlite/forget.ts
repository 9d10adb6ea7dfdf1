import { setImmediate as breathe } from 'node:timers/promises'
import { type Sqlite, SqliteError } from '../../../stores/sqlite.ts'
import type { Instant } from '../model.ts'
import type { By, Forget, ForgetProof } from '../store.ts'
import { type Context, writeAudit } from './context.ts'
import { countAll, gone, type Inventory, takeInventory } from './forget-inventory.ts'
import { type Targets, targetsOf } from './forget-targets.ts'
import { dropOrphans, type Ends, eraseEntity, eraseEpisode, eraseFact, eraseGroups } from './remove.ts'
import { findResidue, notIn, samplesOf } from './residue.ts'
import { unname } from './unname.ts'

/** What others wrote about those that stay may quote what goes. */
const blankSummaries = ({ db }: Context, { episodes }: Targets): void => {
  const list = JSON.stringify(episodes)
  const mentioned = 'SELECT entity_id FROM mention WHERE episode_id IN (SELECT value FROM json_each(?))'
  const touched = db.all<{ id: number }>(`SELECT id FROM entity WHERE summary <> '' AND id IN (${mentioned})`, list)
  for (const { id } of touched) {
    db.run("UPDATE entity SET summary = '' WHERE id = ?", id)
    db.run("UPDATE entity_fts SET summary = '' WHERE rowid = ?", id)
  }
  db.run(
    `DELETE FROM community WHERE id IN (SELECT community_id FROM community_member WHERE entity_id IN (${mentioned}))`,
    list,
  )
}

/** The trail says that groups were cleared; which, it may not say of one that is forgotten. */
const unnameGroups = ({ db }: Context, groups: readonly string[]): void => {
  const others =
    'SELECT json_group_array(value) FROM json_each(ids) WHERE value NOT IN (SELECT value FROM json_each(?))'
  db.run(`UPDATE audit SET ids = (${others}) WHERE op = 'clear'`, JSON.stringify(groups))
}

const erase = (context: Context, targets: Targets): void => {
  const { db } = context
  blankSummaries(context, targets)
  if (targets.groups.length > 0) {
    eraseGroups(context, targets.groups)
    return unnameGroups(context, targets.groups)
  }
  for (const id of targets.episodes) eraseEpisode(context, id)
  const facts = 'SELECT id, src, dst FROM fact WHERE'
  const told = db.all<Ends>(`${facts} id IN (SELECT value FROM json_each(?))`, JSON.stringify(targets.facts))
  dropOrphans(
    context,
    told.flatMap(fact => eraseFact(context, fact)),
  )
  for (const id of targets.entities) {
    const own = db.all<Ends>(`${facts} src = ?1 OR dst = ?1`, id)
    const ends = own.flatMap(fact => eraseFact(context, fact))
    eraseEntity(context, id)
    dropOrphans(context, ends)
  }
}

const LOG_PATIENCE = 2_000
const MERGE_STEP = 500 // pages of the index at a time

/** Deleted words stay in the index until its parts are merged, and in the log until it is emptied; both happen here. Whether the log is empty. */
const purge = async ({ db }: Context): Promise<boolean> => {
  for (const table of ['doc_fts', 'fact_fts', 'entity_fts']) {
    const changes = () => db.get<{ n: number }>('SELECT total_changes() AS n')?.n ?? 0
    for (let step = -MERGE_STEP; ; step = MERGE_STEP) {
      const before = changes()
      await db.write(() => db.run(`INSERT INTO ${table} (${table}, rank) VALUES ('merge', ?)`, step))
      if (changes() - before < 2) break
      await breathe()
    }
  }
  // Rows that moved between pages leave copies in the gaps that not even secure_delete reaches; a rebuilt file has none.
  await db.aside('VACUUM')
  // Somebody who reads an older state keeps the log; then the proof says that something is left.
  return db.patiently(() => emptyLog(db), LOG_PATIENCE).then(() => true, isNotBusy)
}

const emptyLog = (db: Sqlite): void => {
  const done = db.get<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)')
  if (done?.busy === 1) throw new SqliteError('busy', 'the log is being read')
}

const isNotBusy = (error: unknown): boolean => {
  if (error instanceof SqliteError && error.kind === 'busy') return false
  throw error
}

const TEXTS = [
  'SELECT id, json_array(content, name, source_description) AS texts FROM episode',
  'SELECT id, json_array(fact, attributes) AS texts FROM fact',
  'SELECT id, json_array(name, summary, attributes) AS texts FROM entity',
  'SELECT id, json_array(text, index_text, prev, next) AS texts FROM doc',
]
const PAGE = 200

/** Everything that is still said, a page at a time. */
const keptTexts = function* ({ db }: Context): Generator<readonly string[]> {
  for (const sql of TEXTS)
    for (let after = 0, isMore = true; isMore; ) {
      const rows = db.all<{ id: number; texts: string }>(`${sql} WHERE id > ? ORDER BY id LIMIT ${PAGE}`, after)
      yield rows.flatMap(row => (JSON.parse(row.texts) as (string | null)[]).filter(text => text !== null))
      after = rows.at(-1)?.id ?? after
      isMore = rows.length === PAGE
    }
}

interface Erased extends Inventory {
  readonly at: Instant
}

const eraseAll = (context: Context, what: Forget, by: By | undefined): Erased => {
  const targets = targetsOf(context, what)
  const before = takeInventory(context, targets)
  erase(context, targets)
  if (what.kind === 'subject') unname(context, what)
  const after = countAll(context)
  const erased = {
    at: context.now(),
    episodes: gone(context, 'episode', before.episodes),
    entities: gone(context, 'entity', before.entities),
    facts: gone(context, 'fact', before.facts),
    counts: {
      doc: before.counts.doc - after.doc,
      vec: before.counts.vec - after.vec,
      job: before.counts.job - after.job,
    },
  }
  writeAudit(context, `forget ${what.kind}`, [...erased.episodes.keys(), ...erased.entities.keys()], by)
  return erased
}

/** Erases for good and looks for what it erased, as bytes, in every file of the store. */
export const forget = async (context: Context, what: Forget, by?: By): Promise<ForgetProof> => {
  const { db } = context
  const { at, episodes, entities, facts, counts } = await db.write(() => eraseAll(context, what, by))
  const isEmptied = await purge(context)
  const files = ['', '-wal', '-shm'].map(end => `${db.path}${end}`)
  const samples = samplesOf([...episodes.values(), ...facts.values(), ...entities.values()].flat())
  // What others said too is theirs.
  const left = await notIn(keptTexts(context), await findResidue(files, samples))
  return {
    at,
    erased: {
      episodes: [...episodes.keys()],
      entities: [...entities.keys()],
      facts: [...facts.keys()],
      docs: counts.doc,
      vectors: counts.vec,
      jobs: counts.job,
    },
    checked: samples.length,
    gone: samples.length - left.length,
    files,
    clean: left.length === 0 && isEmptied,
  }
}
