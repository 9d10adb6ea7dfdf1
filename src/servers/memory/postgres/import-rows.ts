import { contentHash, normHash } from '../facts/norm-hash.ts'
import type { DocKind, NewDoc } from '../model.ts'
import * as read from '../sqlite/import-line.ts'
import { StoreError } from '../store.ts'
import { putCommunity } from './communities.ts'
import type { Context } from './context.ts'
import { addDocs } from './docs.ts'
import { restoreEntity } from './entities.ts'
import { indexFact } from './facts.ts'
import { idIn } from './rows.ts'

type Line = read.Line

/** What earlier lines became here: rows by the uuids they had there, and what can only be tied up at the end, by line. */
export interface Places {
  readonly entities: Map<string, number>
  readonly episodes: Map<string, number>
  readonly loose: Map<number, (context: Context) => Promise<unknown>>
}

/** The same within a transaction. */
interface Session extends Places {
  readonly context: Context
}

const idOf = async ({ context: { db } }: Session, table: string, uuid: string): Promise<number | undefined> =>
  (await db.get<{ id: number }>(`SELECT id FROM ${table} WHERE uuid = ?`, uuid))?.id

const entityIn = (session: Session, line: Line, uuid: unknown): number => {
  const id = session.entities.get(String(uuid))
  if (id === undefined)
    throw new StoreError('invalid', `Line ${line.number} names the entity ${uuid}, which no line before it has.`)
  return id
}

const importSaga = async ({ context, loose }: Session, line: Line): Promise<boolean> => {
  const row = await context.db.get<{ id: number }>(
    `INSERT INTO saga (uuid, group_id, name, summary, created_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO NOTHING RETURNING id`,
    read.textIn(line, 'uuid'),
    read.textIn(line, 'group'),
    read.textIn(line, 'name'),
    read.maybeTextIn(line, 'summary') ?? '',
    read.dateIn(line, 'created_at'),
  )
  const reaches = read.maybeTextIn(line, 'summarised_to')
  if (row && reaches !== null)
    loose.set(line.number, ({ db }) =>
      db.run(
        'UPDATE saga SET summarised_to = coalesce((SELECT id FROM episode WHERE uuid = ?), 0) WHERE id = ?',
        reaches,
        row.id,
      ),
    )
  return row !== undefined
}

const importEntity = async (session: Session, line: Line): Promise<boolean> => {
  const { context } = session
  const uuid = read.textIn(line, 'uuid')
  const isKnown = (await idOf(session, 'entity', uuid)) !== undefined
  const id = await restoreEntity(context, read.textIn(line, 'group'), {
    uuid,
    name: read.textIn(line, 'name'),
    ...(!isKnown && {
      labels: read.textsIn(line, 'labels'),
      aliases: read.textsIn(line, 'aliases'),
      summary: read.maybeTextIn(line, 'summary') ?? '',
      attributes: JSON.parse(String(read.jsonIn(line, 'attributes'))) as Record<string, unknown>,
    }),
  })
  session.entities.set(uuid, id)
  const isNew = !isKnown && (await idOf(session, 'entity', uuid)) === id
  if (isNew) await context.db.run('UPDATE entity SET created_at = ? WHERE id = ?', read.dateIn(line, 'created_at'), id)
  return isNew
}

const docIn = (item: unknown): NewDoc => {
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

const chainIn = (line: Line): string | undefined => {
  const chain = read.maybeTextIn(line, 'chain')
  return chain === null ? undefined : `${read.textIn(line, 'group')}/${chain}`
}

const insertEpisode = async (
  { context: { db } }: Session,
  line: Line,
  hash: Uint8Array,
): Promise<number | undefined> => {
  const source = read.textIn(line, 'source')
  const row = await db.get<{ id: number }>(
    `INSERT INTO episode (uuid, group_id, name, content, source, source_description, actor, created_at, valid_at,
      content_hash, saga_id, prev_id, chain, meta, state, error)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, (SELECT id FROM saga WHERE group_id = ?2 AND name = ?11),
        (SELECT id FROM episode WHERE uuid = ?12), ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING RETURNING id`,
    read.textIn(line, 'uuid'),
    read.textIn(line, 'group'),
    read.textIn(line, 'name'),
    read.textIn(line, 'content'),
    SOURCES.includes(source) ? source : 'text',
    read.maybeTextIn(line, 'source_description') ?? '',
    read.maybeTextIn(line, 'actor'),
    read.dateIn(line, 'created_at'),
    read.dateIn(line, 'valid_at'),
    hash,
    read.maybeTextIn(line, 'saga'),
    read.maybeTextIn(line, 'previous'),
    chainIn(line) ?? null,
    String(read.jsonIn(line, 'meta')),
    read.maybeTextIn(line, 'state') ?? 'ready',
    read.maybeTextIn(line, 'error'),
  )
  return row?.id
}

const hashOf = (line: Line): Uint8Array =>
  contentHash({
    name: read.textIn(line, 'name'),
    content: read.textIn(line, 'content'),
    source: read.textIn(line, 'source'),
    sourceDescription: read.maybeTextIn(line, 'source_description') ?? '',
    saga: read.maybeTextIn(line, 'saga') ?? undefined,
  })

const knownEpisode = async (
  { context: { db } }: Session,
  line: Line,
  hash: Uint8Array,
): Promise<number | undefined> => {
  const sql = 'SELECT id FROM episode WHERE uuid = ? OR (group_id = ? AND valid_at = ? AND content_hash = ?)'
  const [uuid, group] = [read.textIn(line, 'uuid'), read.textIn(line, 'group')]
  return (await db.get<{ id: number }>(sql, uuid, group, read.dateIn(line, 'valid_at'), hash))?.id
}

const importEpisode = async (session: Session, line: Line): Promise<boolean> => {
  const { context, episodes } = session
  const [uuid, group, hash] = [read.textIn(line, 'uuid'), read.textIn(line, 'group'), hashOf(line)]
  const id = await insertEpisode(session, line, hash)
  if (id === undefined) {
    const known = await knownEpisode(session, line, hash)
    if (known !== undefined) episodes.set(uuid, known)
    return false
  }
  episodes.set(uuid, id)
  await addDocs(context, { id, group, chain: chainIn(line) }, read.listIn(line, 'docs').map(docIn))
  const mentioned = read.textsIn(line, 'mentions').map(entity => entityIn(session, line, entity))
  await context.db.run(
    'INSERT INTO mention (episode_id, entity_id) SELECT ?::bigint, id FROM unnest(?::bigint[]) id ON CONFLICT DO NOTHING',
    id,
    mentioned,
  )
  return true
}

const linkTellings = async ({ context: { db }, episodes }: Session, line: Line, fact: number): Promise<void> => {
  for (const [ord, item] of read.listIn(line, 'told').entries()) {
    const [uuid, place] = Array.isArray(item) ? item : []
    const episode = episodes.get(String(uuid))
    if (episode === undefined) continue
    await db.run(
      `INSERT INTO fact_episode (fact_id, episode_id, doc_id, ord)
        VALUES (?1, ?2, (SELECT id FROM doc WHERE episode_id = ?2 AND ord = ?3), ?4) ON CONFLICT DO NOTHING`,
      fact,
      episode,
      typeof place === 'number' ? place : null,
      ord,
    )
  }
  await db.run(
    'UPDATE fact SET doc_id = (SELECT doc_id FROM fact_episode WHERE fact_id = ?1 ORDER BY ord LIMIT 1) WHERE id = ?1',
    fact,
  )
}

const SAME_FACT = `SELECT 1 AS there FROM fact WHERE uuid = ?
  OR (norm_hash = ? AND valid_at IS NOT DISTINCT FROM ? AND invalid_at IS NOT DISTINCT FROM ?)`

const insertFact = async ({ db }: Context, line: Line, ends: readonly [number, number], hash: Uint8Array) =>
  idIn(
    await db.get<{ id: number }>(
      `INSERT INTO fact (uuid, group_id, src, dst, name, fact, norm_hash, valid_at, valid_gran, invalid_at, created_at,
        expired_at, reference_time, attributes, origin, confidence)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      read.textIn(line, 'uuid'),
      read.textIn(line, 'group'),
      ends[0],
      ends[1],
      read.textIn(line, 'name'),
      read.textIn(line, 'fact'),
      hash,
      read.maybeDateIn(line, 'valid_at'),
      read.maybeTextIn(line, 'granularity'),
      read.maybeDateIn(line, 'invalid_at'),
      read.dateIn(line, 'created_at'),
      read.maybeDateIn(line, 'expired_at'),
      read.maybeDateIn(line, 'reference_time'),
      String(read.jsonIn(line, 'attributes')),
      read.maybeTextIn(line, 'origin') ?? 'agent',
      read.numberIn(line, 'confidence', 1),
    ),
  )

const importFact = async (session: Session, line: Line): Promise<boolean> => {
  const { context, loose } = session
  const { db } = context
  const ends = [entityIn(session, line, line.members.source), entityIn(session, line, line.members.target)] as const
  const hash = normHash(read.textIn(line, 'group'), ends[0], ends[1], read.textIn(line, 'fact'))
  const [validAt, invalidAt] = [read.maybeDateIn(line, 'valid_at'), read.maybeDateIn(line, 'invalid_at')]
  if (await db.get(SAME_FACT, read.textIn(line, 'uuid'), hash, validAt, invalidAt)) return false
  const id = await insertFact(context, line, ends, hash)
  await linkTellings(session, line, id)
  const isGiven = "SELECT 1 AS there FROM fact WHERE id = ? AND NOT (origin = 'rule' AND doc_id IS NOT NULL)"
  if (await db.get(isGiven, id)) await indexFact(context, id)
  const heir = read.maybeTextIn(line, 'superseded_by')
  if (heir !== null)
    loose.set(line.number, later =>
      later.db.run('UPDATE fact SET superseded_by = (SELECT id FROM fact WHERE uuid = ?) WHERE id = ?', heir, id),
    )
  return true
}

const importCommunity = async (session: Session, line: Line): Promise<boolean> => {
  const uuid = read.textIn(line, 'uuid')
  if ((await idOf(session, 'community', uuid)) !== undefined) return false
  const ids = read.textsIn(line, 'members').map(member => entityIn(session, line, member))
  const rows = await session.context.db.all<{ uuid: string }>('SELECT uuid FROM entity WHERE id = ANY (?)', ids)
  await putCommunity(session.context, {
    uuid,
    group: read.textIn(line, 'group'),
    name: read.textIn(line, 'name'),
    summary: read.maybeTextIn(line, 'summary') ?? '',
    createdAt: read.dateIn(line, 'created_at'),
    members: rows.map(row => row.uuid),
  })
  return true
}

const SAME_JOB = `SELECT 1 AS there FROM job WHERE group_id = ? AND kind = ? AND episode_id IS NOT DISTINCT FROM ? AND payload = ?`

const importJob = async ({ context: { db }, episodes }: Session, line: Line): Promise<boolean> => {
  const episode = episodes.get(read.maybeTextIn(line, 'episode') ?? '') ?? null
  const [group, kind] = [read.textIn(line, 'group'), read.textIn(line, 'name')]
  const payload = String(read.jsonIn(line, 'payload'))
  if (await db.get(SAME_JOB, group, kind, episode, payload)) return false
  await db.run(
    `INSERT INTO job (group_id, episode_id, kind, state, attempts, next_at, error, payload, created_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    group,
    episode,
    kind,
    read.maybeTextIn(line, 'state') === 'failed' ? 'failed' : 'waiting',
    read.numberIn(line, 'attempts', 0),
    read.dateIn(line, 'next_at'),
    read.maybeTextIn(line, 'error'),
    payload,
    read.dateIn(line, 'created_at'),
  )
  return true
}

/** How each type of line is stored; each tells whether it was new. */
export const KINDS = {
  saga: { put: importSaga, counts: 'sagas' },
  entity: { put: importEntity, counts: 'entities' },
  episode: { put: importEpisode, counts: 'episodes' },
  fact: { put: importFact, counts: 'facts' },
  community: { put: importCommunity, counts: 'communities' },
  job: { put: importJob, counts: undefined },
} as const
