import { setImmediate as yieldTurn } from 'node:timers/promises'
import { contentHash, normHash } from '../ids.ts'
import type { DocKind, NewDoc } from '../model.ts'
import { type By, type Imported, StoreError } from '../store.ts'
import { addMentions } from './add.ts'
import { addCommunity } from './communities.ts'
import { lockGroups, type StoreContext, writeAudit } from './context.ts'
import { addDocs } from './docs.ts'
import { restoreEntity } from './entities.ts'
import type { LineType } from './export.ts'
import { indexFact } from './facts.ts'
import * as read from './import-line.ts'
import { insertRow, readIds } from './rows.ts'

type ImportLine = read.ImportLine

/** The rows of earlier lines by the uuids they have in the import. */
interface ImportedRows {
  readonly entities: Map<string, number>
  readonly episodes: Map<string, number>
}

const findId = async ({ db }: StoreContext, table: string, uuid: string): Promise<number | undefined> =>
  (await readIds(db, `SELECT id FROM ${table} WHERE uuid = ?`, uuid))[0]

/** The row of an earlier line's entity that this line refers to. */
const entityIn = ({ entities }: ImportedRows, line: ImportLine, uuid: unknown): number => {
  const id = entities.get(String(uuid))
  if (id === undefined)
    throw new StoreError('invalid', `Line ${line.number} names the entity ${uuid}, which no line before it has.`)
  return id
}

type StoreLine = (context: StoreContext, rows: ImportedRows, line: ImportLine) => Promise<boolean>

const storeSaga: StoreLine = async ({ db }, _, line) =>
  (await db.run(
    'INSERT INTO saga (uuid, group_id, name, summary, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    read.requireText(line, 'uuid'),
    read.requireText(line, 'group'),
    read.requireText(line, 'name'),
    read.optionalTextIn(line, 'summary') ?? '',
    read.dateIn(line, 'created_at'),
  )) > 0

const storeEntity: StoreLine = async (context, rows, line) => {
  const uuid = read.requireText(line, 'uuid')
  const isKnown = (await findId(context, 'entity', uuid)) !== undefined
  const id = await restoreEntity(context, read.requireText(line, 'group'), {
    uuid,
    name: read.requireText(line, 'name'),
    // A known entity keeps what is stated about it here.
    ...(!isKnown && {
      labels: read.textsIn(line, 'labels'),
      aliases: read.textsIn(line, 'aliases'),
      summary: read.optionalTextIn(line, 'summary') ?? '',
      attributes: JSON.parse(read.jsonMember(line, 'attributes')) as Record<string, unknown>,
    }),
  })
  rows.entities.set(uuid, id)
  const isNew = !isKnown && (await findId(context, 'entity', uuid)) === id
  if (isNew) await context.db.run('UPDATE entity SET created_at = ? WHERE id = ?', read.dateIn(line, 'created_at'), id)
  return isNew
}

const docOf = (item: unknown): NewDoc => {
  const [kind, text, indexText, actor, dt] = Array.isArray(item) ? item : []
  return {
    kind: (['turn', 'passage', 'leaf'].includes(kind) ? kind : 'passage') as DocKind,
    text: String(text ?? ''),
    dt: String(dt ?? ''),
    indexText: typeof indexText === 'string' ? indexText : undefined,
    actor: typeof actor === 'string' ? actor : undefined,
  }
}

const SOURCES = ['text', 'message', 'json', 'fact_triple']

const INSERT_EPISODE = `INSERT INTO episode (uuid, group_id, name, content, source, source_description, actor, created_at,
  valid_at, content_hash, saga_id, prev_id, chain, meta, state, error)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT id FROM saga WHERE group_id = ?2 AND name = ?11),
    (SELECT id FROM episode WHERE uuid = ?12), ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING`

const FIND_EPISODE = 'SELECT id FROM episode WHERE uuid = ? OR (group_id = ? AND valid_at = ? AND content_hash = ?)'

const storeEpisode: StoreLine = async (context, rows, line) => {
  const [uuid, group, name, content, source] = ['uuid', 'group', 'name', 'content', 'source'].map(key =>
    read.requireText(line, key),
  ) as [string, string, string, string, string]
  const sourceDescription = read.optionalTextIn(line, 'source_description') ?? ''
  const [saga, chain] = [read.optionalTextIn(line, 'saga'), read.optionalTextIn(line, 'chain')]
  const hash = contentHash({ name, content, source, sourceDescription, saga: saga ?? undefined })
  const conversation = chain === null ? undefined : `${group}/${chain}`
  const validAt = read.dateIn(line, 'valid_at')
  const id = await context.db.insert(
    INSERT_EPISODE,
    uuid,
    group,
    name,
    content,
    SOURCES.includes(source) ? source : 'text',
    sourceDescription,
    read.optionalTextIn(line, 'actor'),
    read.dateIn(line, 'created_at'),
    validAt,
    hash,
    saga,
    read.optionalTextIn(line, 'previous'),
    conversation ?? null,
    read.jsonMember(line, 'meta'),
    read.optionalTextIn(line, 'state') ?? 'ready',
    read.optionalTextIn(line, 'error'),
  )
  if (id === undefined) {
    const [known] = await readIds(context.db, FIND_EPISODE, uuid, group, validAt, hash)
    if (known !== undefined) rows.episodes.set(uuid, known)
    return false
  }
  rows.episodes.set(uuid, id)
  await addDocs(context, { id, group, chain: conversation }, read.listIn(line, 'docs').map(docOf))
  const mentioned = read.textsIn(line, 'mentions').map(entity => entityIn(rows, line, entity))
  await addMentions(context, id, mentioned)
  return true
}

const SAME_FACT = `SELECT 1 AS known FROM fact WHERE uuid = ?
  OR (norm_hash = ? AND valid_at IS NOT DISTINCT FROM ? AND invalid_at IS NOT DISTINCT FROM ?)`

const LINK_EPISODE = `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
  VALUES (?1, ?2, (SELECT id FROM doc WHERE episode_id = ?2 AND ord = ?3), ?4) ON CONFLICT DO NOTHING`

const SET_PASSAGE = `UPDATE fact SET doc_id =
  (SELECT doc_id FROM fact_episode WHERE fact_id = ?1 ORDER BY ord LIMIT 1) WHERE id = ?1 RETURNING doc_id`

const storeFact: StoreLine = async (context, rows, line) => {
  const { db } = context
  const [src, dst] = [entityIn(rows, line, line.members.source), entityIn(rows, line, line.members.target)]
  const [uuid, group, fact] = [
    read.requireText(line, 'uuid'),
    read.requireText(line, 'group'),
    read.requireText(line, 'fact'),
  ]
  const hash = normHash(group, src, dst, fact)
  const [validAt, invalidAt] = [read.optionalDateIn(line, 'valid_at'), read.optionalDateIn(line, 'invalid_at')]
  const origin = read.optionalTextIn(line, 'origin') ?? 'agent'
  if (await db.get(SAME_FACT, uuid, hash, validAt, invalidAt)) return false
  const id = await insertRow(db, 'fact', {
    uuid,
    group_id: group,
    src,
    dst,
    name: read.requireText(line, 'name'),
    fact,
    norm_hash: hash,
    valid_at: validAt,
    valid_gran: read.optionalTextIn(line, 'granularity'),
    invalid_at: invalidAt,
    created_at: read.dateIn(line, 'created_at'),
    expired_at: read.optionalDateIn(line, 'expired_at'),
    reference_time: read.optionalDateIn(line, 'reference_time'),
    attributes: read.jsonMember(line, 'attributes'),
    origin,
    confidence: read.numberIn(line, 'confidence', 1),
  })
  for (const [ord, item] of read.listIn(line, 'told').entries()) {
    const [episode, passage] = Array.isArray(item) ? item : []
    const known = rows.episodes.get(String(episode))
    if (known !== undefined) await db.run(LINK_EPISODE, id, known, typeof passage === 'number' ? passage : null, ord)
  }
  const stated = await db.get<{ doc_id: number | null }>(SET_PASSAGE, id)
  // A fact that a rule found quotes its passage, which is indexed already.
  if (origin !== 'rule' || stated?.doc_id == null) await indexFact(context, id)
  return true
}

const storeCommunity: StoreLine = async (context, rows, line) => {
  const uuid = read.requireText(line, 'uuid')
  if ((await findId(context, 'community', uuid)) !== undefined) return false
  const ids = read.textsIn(line, 'members').map(member => entityIn(rows, line, member))
  const sql = `SELECT uuid FROM entity WHERE ${context.db.dialect.inList('id')}`
  const members = (await context.db.all<{ uuid: string }>(sql, ids)).map(row => row.uuid)
  await addCommunity(context, {
    uuid,
    group: read.requireText(line, 'group'),
    name: read.requireText(line, 'name'),
    summary: read.optionalTextIn(line, 'summary') ?? '',
    createdAt: read.dateIn(line, 'created_at'),
    members,
  })
  return true
}

const SAME_JOB = `SELECT 1 AS known FROM job
  WHERE group_id = ? AND kind = ? AND episode_id IS NOT DISTINCT FROM ? AND payload = ?`

const storeJob: StoreLine = async ({ db }, { episodes }, line) => {
  const episode = episodes.get(read.optionalTextIn(line, 'episode') ?? '') ?? null
  const [group, kind, payload] = [
    read.requireText(line, 'group'),
    read.requireText(line, 'name'),
    read.jsonMember(line, 'payload'),
  ]
  if (await db.get(SAME_JOB, group, kind, episode, payload)) return false
  await insertRow(db, 'job', {
    group_id: group,
    episode_id: episode,
    kind,
    state: read.optionalTextIn(line, 'state') === 'failed' ? 'failed' : 'waiting',
    attempts: read.numberIn(line, 'attempts', 0),
    next_at: read.dateIn(line, 'next_at'),
    error: read.optionalTextIn(line, 'error'),
    payload,
    created_at: read.dateIn(line, 'created_at'),
  })
  return true
}

/** Stores a line of each type; returns whether it was new. */
const STORE: Readonly<Record<LineType, StoreLine>> = {
  saga: storeSaga,
  entity: storeEntity,
  episode: storeEpisode,
  fact: storeFact,
  community: storeCommunity,
  job: storeJob,
}

/** References of a line to lines that may come after it; also missing where an earlier import was interrupted. */
const REFERENCES: Readonly<Partial<Record<string, { readonly member: string; readonly sql: string }>>> = {
  saga: {
    member: 'summarised_to',
    sql: `UPDATE saga SET summarised_to = coalesce((SELECT id FROM episode WHERE uuid = ?), 0)
      WHERE uuid = ? AND summarised_to = 0`,
  },
  fact: {
    member: 'superseded_by',
    sql: 'UPDATE fact SET superseded_by = (SELECT id FROM fact WHERE uuid = ?) WHERE uuid = ? AND superseded_by IS NULL',
  },
}

const referenceOf = (line: ImportLine): [sql: string, named: string, uuid: string][] => {
  const reference = REFERENCES[line.type]
  const named = reference ? read.optionalTextIn(line, reference.member) : null
  return reference && named !== null ? [[reference.sql, named, read.requireText(line, 'uuid')]] : []
}

const groupsIn = (lines: readonly ImportLine[]): string[] =>
  lines.flatMap(({ members }) => (typeof members.group === 'string' ? [members.group] : []))

/** Reads an export, a batch of lines per transaction. Importing the same again changes nothing. */
export const importLines = async (
  write: <Result>(work: (context: StoreContext) => Promise<Result>) => Promise<Result>,
  lines: AsyncIterable<string> | Iterable<string>,
  by?: By,
): Promise<Imported> => {
  const rows: ImportedRows = { entities: new Map(), episodes: new Map() }
  const { counts, count } = read.createImportCounts()
  const references: ReturnType<typeof referenceOf> = []
  for await (const batch of read.readBatches(lines)) {
    // The transaction may run again, so lines are counted after it.
    const stored = await write(async context => {
      await lockGroups(context, groupsIn(batch))
      const results: [LineType, boolean][] = []
      for (const line of batch) {
        const type = read.typeOf(line)
        results.push([type, await STORE[type](context, rows, line)])
      }
      return results
    })
    for (const [type, isNew] of stored) count(type, isNew)
    references.push(...batch.flatMap(referenceOf))
    await yieldTurn() // Lines that are in memory already come without a pause.
  }
  await write(async context => {
    for (const [sql, ...values] of references) await context.db.run(sql, ...values)
    await writeAudit(context, 'import', [], by)
  })
  return counts
}
