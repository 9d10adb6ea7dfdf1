import { contentHash } from '../facts/norm-hash.ts'
import type { DocKind, NewDoc } from '../model.ts'
import { putCommunity } from './communities.ts'
import { addDocs } from './docs.ts'
import { restoreEntity } from './entities.ts'
import { importFact } from './import-fact.ts'
import * as read from './import-line.ts'
import { entityIn, idOf, type Session } from './import-session.ts'

type Line = read.Line

const importSaga = (session: Session, line: Line): boolean => {
  const { db } = session.context
  const [group, name] = [read.textIn(line, 'group'), read.textIn(line, 'name')]
  const uuid = read.textIn(line, 'uuid')
  const { changes } = db.run(
    'INSERT INTO saga (uuid, group_id, name, summary, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    uuid,
    group,
    name,
    read.maybeTextIn(line, 'summary') ?? '',
    read.dateIn(line, 'created_at'),
  )
  const reaches = read.maybeTextIn(line, 'summarised_to')
  if (reaches !== null)
    session.loose.push(() =>
      db.run(
        `UPDATE saga SET summarised_to = coalesce((SELECT id FROM episode WHERE uuid = ?), 0)
          WHERE uuid = ? AND summarised_to = 0`,
        reaches,
        uuid,
      ),
    )
  return changes > 0
}

const importEntity = (session: Session, line: Line): boolean => {
  const { context } = session
  const uuid = read.textIn(line, 'uuid')
  const isKnown = idOf(session, 'entity', uuid) !== undefined
  const id = restoreEntity(context, read.textIn(line, 'group'), {
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
  const isNew = !isKnown && idOf(session, 'entity', uuid) === id
  if (isNew) context.db.run('UPDATE entity SET created_at = ? WHERE id = ?', read.dateIn(line, 'created_at'), id)
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

const insertEpisode = ({ context: { db } }: Session, line: Line, hash: Uint8Array): { changes: number; id: number } => {
  const [group, chain] = [read.textIn(line, 'group'), read.maybeTextIn(line, 'chain')]
  const source = read.textIn(line, 'source')
  return db.run(
    `INSERT INTO episode (uuid, group_id, name, content, source, source_description, actor, created_at, valid_at,
      content_hash, saga_id, prev_id, chain, meta, state, error)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM saga WHERE group_id = ?2 AND name = ?),
        (SELECT id FROM episode WHERE uuid = ?), ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    read.textIn(line, 'uuid'),
    group,
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
    chain === null ? null : `${group}/${chain}`,
    read.jsonIn(line, 'meta'),
    read.maybeTextIn(line, 'state') ?? 'ready',
    read.maybeTextIn(line, 'error'),
  )
}

const importEpisode = (session: Session, line: Line): boolean => {
  const { context, episodes } = session
  const [uuid, group] = [read.textIn(line, 'uuid'), read.textIn(line, 'group')]
  const hash = contentHash({
    name: read.textIn(line, 'name'),
    content: read.textIn(line, 'content'),
    source: read.textIn(line, 'source'),
    sourceDescription: read.maybeTextIn(line, 'source_description') ?? '',
    saga: read.maybeTextIn(line, 'saga') ?? undefined,
  })
  const { changes, id } = insertEpisode(session, line, hash)
  if (changes === 0) {
    const sql = 'SELECT id FROM episode WHERE uuid = ? OR (group_id = ? AND valid_at = ? AND content_hash = ?)'
    const known = context.db.get<{ id: number }>(sql, uuid, group, read.dateIn(line, 'valid_at'), hash)
    if (known) episodes.set(uuid, known.id)
    return false
  }
  episodes.set(uuid, id)
  const chain = read.maybeTextIn(line, 'chain')
  addDocs(
    context,
    { id, group, chain: chain === null ? undefined : `${group}/${chain}` },
    read.listIn(line, 'docs').map(docIn),
  )
  for (const entity of read.textsIn(line, 'mentions'))
    context.db.run(
      'INSERT INTO mention (episode_id, entity_id) VALUES (?, ?) ON CONFLICT DO NOTHING',
      id,
      entityIn(session, line, entity),
    )
  return true
}

const importCommunity = (session: Session, line: Line): boolean => {
  if (idOf(session, 'community', read.textIn(line, 'uuid')) !== undefined) return false
  const { db } = session.context
  const members = read.textsIn(line, 'members').map(uuid => entityIn(session, line, uuid))
  const uuids = members.map(id => db.get<{ uuid: string }>('SELECT uuid FROM entity WHERE id = ?', id)?.uuid ?? '')
  putCommunity(session.context, {
    uuid: read.textIn(line, 'uuid'),
    group: read.textIn(line, 'group'),
    name: read.textIn(line, 'name'),
    summary: read.maybeTextIn(line, 'summary') ?? '',
    createdAt: read.dateIn(line, 'created_at'),
    members: uuids,
  })
  return true
}

const importJob = (session: Session, line: Line): boolean => {
  const episode = session.episodes.get(read.maybeTextIn(line, 'episode') ?? '') ?? null
  const { db } = session.context
  const [group, kind] = [read.textIn(line, 'group'), read.textIn(line, 'name')]
  const payload = read.jsonIn(line, 'payload')
  const same = 'SELECT 1 FROM job WHERE group_id = ? AND kind = ? AND episode_id IS ? AND payload = ?'
  if (db.get(same, group, kind, episode, payload)) return false
  db.run(
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
