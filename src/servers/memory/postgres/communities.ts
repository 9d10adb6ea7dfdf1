import { newUuid } from '../ids.ts'
import type { Community } from '../model.ts'
import type { Groups } from '../store.ts'
import type { Context } from './context.ts'
import { idIn, inGroups } from './rows.ts'

interface Row {
  readonly uuid: string
  readonly group_id: string
  readonly name: string
  readonly summary: string
  readonly created_at: number
  readonly members: readonly string[]
}

/** The communities of some groups with their members' uuids. */
export const listCommunities = async ({ db }: Context, groups: Groups): Promise<Community[]> => {
  const scope = inGroups('c.group_id', groups)
  const rows = await db.all<Row>(
    `SELECT c.*, ARRAY(SELECT n.uuid FROM community_member m
      JOIN entity n ON n.id = m.entity_id WHERE m.community_id = c.id ORDER BY n.id) AS members
      FROM community c WHERE ${scope.sql} ORDER BY c.id`,
    ...scope.values,
  )
  return rows.map(({ uuid, group_id, name, summary, created_at, members }) => ({
    uuid,
    group: group_id,
    name,
    summary,
    createdAt: created_at,
    members,
  }))
}

/** Writes one community; members that are not there are left out. */
export const putCommunity = async (
  { db, now }: Context,
  found: Omit<Community, 'uuid' | 'createdAt'> & Partial<Community>,
): Promise<void> => {
  const row = await db.get<{ id: number }>(
    'INSERT INTO community (uuid, group_id, name, summary, created_at) VALUES (?, ?, ?, ?, ?) RETURNING id',
    found.uuid ?? newUuid(now()),
    found.group,
    found.name,
    found.summary,
    found.createdAt ?? now(),
  )
  await db.run(
    `INSERT INTO community_member (community_id, entity_id)
      SELECT ?::bigint, id FROM entity WHERE group_id = ? AND uuid = ANY (?)`,
    idIn(row),
    found.group,
    found.members,
  )
}

/** Puts new communities in the place of the groups' old ones. */
export const replaceCommunities = async (
  context: Context,
  groups: Groups,
  found: readonly Pick<Community, 'group' | 'name' | 'summary' | 'members'>[],
): Promise<Community[]> => {
  const scope = inGroups('group_id', groups)
  await context.db.run(`DELETE FROM community WHERE ${scope.sql}`, ...scope.values)
  for (const community of found) await putCommunity(context, community)
  return listCommunities(context, groups)
}
