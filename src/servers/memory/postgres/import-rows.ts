import type { LineType } from '../export-lines.ts'
import { dateIn, jsonIn, type Line, maybeTextIn, textIn, textsIn } from '../import-line.ts'
import * as given from '../import-statements.ts'
import { putCommunity } from './communities.ts'
import { addDocs } from './docs.ts'
import { restoreEntity } from './entities.ts'
import { importFact } from './import-fact.ts'
import { idOf, insert, perform, type Session } from './import-session.ts'

const importSaga = async ({ context }: Session, line: Line): Promise<boolean> =>
  (await perform(context, given.sagaInsert(line))) > 0

const importEntity = async (session: Session, line: Line): Promise<boolean> => {
  const { context } = session
  const uuid = textIn(line, 'uuid')
  const isKnown = (await idOf(session, 'entity', uuid)) !== undefined
  const id = await restoreEntity(context, textIn(line, 'group'), given.entityOf(line, isKnown))
  session.entities.set(uuid, id)
  const isNew = !isKnown && (await idOf(session, 'entity', uuid)) === id
  if (isNew) await context.db.run('UPDATE entity SET created_at = ? WHERE id = ?', dateIn(line, 'created_at'), id)
  return isNew
}

const MENTION = `INSERT INTO mention (episode_id, entity_id)
  SELECT ?::bigint, id FROM unnest(?::bigint[]) id ON CONFLICT DO NOTHING`

const importEpisode = async ({ context, entities, episodes }: Session, line: Line): Promise<boolean> => {
  const [uuid, group] = [textIn(line, 'uuid'), textIn(line, 'group')]
  const id = await insert(context, given.episodeInsert(line))
  if (id === undefined) {
    const { sql, values } = given.episodeSearch(line)
    const known = await context.db.get<{ id: number }>(sql, ...values)
    if (known) episodes.set(uuid, known.id)
    return false
  }
  episodes.set(uuid, id)
  await addDocs(context, { id, group, chain: given.chainOf(line) }, given.docsOf(line))
  const mentioned = textsIn(line, 'mentions').map(entity => given.entityIn(entities, line, entity))
  await context.db.run(MENTION, id, mentioned)
  return true
}

const importCommunity = async (session: Session, line: Line): Promise<boolean> => {
  if ((await idOf(session, 'community', textIn(line, 'uuid'))) !== undefined) return false
  const ids = textsIn(line, 'members').map(member => given.entityIn(session.entities, line, member))
  const rows = await session.context.db.all<{ uuid: string }>('SELECT uuid FROM entity WHERE id = ANY (?)', ids)
  await putCommunity(session.context, { ...given.communityOf(line), members: rows.map(({ uuid }) => uuid) })
  return true
}

const SAME_JOB = `SELECT 1 AS there FROM job
  WHERE group_id = ? AND kind = ? AND episode_id IS NOT DISTINCT FROM ? AND payload = ?`

const importJob = async ({ context, episodes }: Session, line: Line): Promise<boolean> => {
  const episode = episodes.get(maybeTextIn(line, 'episode') ?? '') ?? null
  const [group, kind] = [textIn(line, 'group'), textIn(line, 'name')]
  if (await context.db.get(SAME_JOB, group, kind, episode, jsonIn(line, 'payload'))) return false
  await perform(context, given.jobInsert(line, episode))
  return true
}

/** How each type of line is stored; each tells whether it was new. */
export const PUT: Readonly<Record<LineType, (session: Session, line: Line) => Promise<boolean>>> = {
  saga: importSaga,
  entity: importEntity,
  episode: importEpisode,
  fact: importFact,
  community: importCommunity,
  job: importJob,
}
