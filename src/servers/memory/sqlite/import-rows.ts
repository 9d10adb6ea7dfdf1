import type { LineType } from '../export-lines.ts'
import { dateIn, jsonIn, type Line, maybeTextIn, textIn, textsIn } from '../import-line.ts'
import * as given from '../import-statements.ts'
import { putCommunity } from './communities.ts'
import { addDocs } from './docs.ts'
import { restoreEntity } from './entities.ts'
import { importFact } from './import-fact.ts'
import { idOf, perform, type Session } from './import-session.ts'

const importSaga = ({ context }: Session, line: Line): boolean => perform(context, given.sagaInsert(line)).changes > 0

const importEntity = (session: Session, line: Line): boolean => {
  const { context } = session
  const uuid = textIn(line, 'uuid')
  const isKnown = idOf(session, 'entity', uuid) !== undefined
  const id = restoreEntity(context, textIn(line, 'group'), given.entityOf(line, isKnown))
  session.entities.set(uuid, id)
  const isNew = !isKnown && idOf(session, 'entity', uuid) === id
  if (isNew) context.db.run('UPDATE entity SET created_at = ? WHERE id = ?', dateIn(line, 'created_at'), id)
  return isNew
}

const importEpisode = ({ context, entities, episodes }: Session, line: Line): boolean => {
  const [uuid, group] = [textIn(line, 'uuid'), textIn(line, 'group')]
  const { changes, id } = perform(context, given.episodeInsert(line))
  if (changes === 0) {
    const { sql, values } = given.episodeSearch(line)
    const known = context.db.get<{ id: number }>(sql, ...values)
    if (known) episodes.set(uuid, known.id)
    return false
  }
  episodes.set(uuid, id)
  addDocs(context, { id, group, chain: given.chainOf(line) }, given.docsOf(line))
  for (const entity of textsIn(line, 'mentions'))
    context.db.run(
      'INSERT INTO mention (episode_id, entity_id) VALUES (?, ?) ON CONFLICT DO NOTHING',
      id,
      given.entityIn(entities, line, entity),
    )
  return true
}

const importCommunity = (session: Session, line: Line): boolean => {
  if (idOf(session, 'community', textIn(line, 'uuid')) !== undefined) return false
  const { db } = session.context
  const ids = textsIn(line, 'members').map(uuid => given.entityIn(session.entities, line, uuid))
  const members = ids.map(id => db.get<{ uuid: string }>('SELECT uuid FROM entity WHERE id = ?', id)?.uuid ?? '')
  putCommunity(session.context, { ...given.communityOf(line), members })
  return true
}

const SAME_JOB = 'SELECT 1 FROM job WHERE group_id = ? AND kind = ? AND episode_id IS ? AND payload = ?'

const importJob = ({ context, episodes }: Session, line: Line): boolean => {
  const episode = episodes.get(maybeTextIn(line, 'episode') ?? '') ?? null
  const [group, kind] = [textIn(line, 'group'), textIn(line, 'name')]
  if (context.db.get(SAME_JOB, group, kind, episode, jsonIn(line, 'payload'))) return false
  perform(context, given.jobInsert(line, episode))
  return true
}

/** How each type of line is stored; each tells whether it was new. */
export const PUT: Readonly<Record<LineType, (session: Session, line: Line) => boolean>> = {
  saga: importSaga,
  entity: importEntity,
  episode: importEpisode,
  fact: importFact,
  community: importCommunity,
  job: importJob,
}
