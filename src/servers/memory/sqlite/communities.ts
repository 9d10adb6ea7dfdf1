import { newUuid } from '../ids.ts'
import type { Community } from '../model.ts'
import type { Groups } from '../store.ts'
import type { Context } from './context.ts'
import { inGroups } from './rows.ts'

interface Row {
  readonly uuid: string
  readonly group_id: string
  readonly name: string
  readonly summary: string
  readonly created_at: number
  readonly members: string
}

/** The communities of some groups with their members' uuids. */
export const listCommunities = ({ db }: Context, groups: Groups): Community[] => {
  const scope = inGroups('c.group_id', groups)
  const rows = db.all<Row>(
    `SELECT c.*, (SELECT json_group_array(n.uuid ORDER BY n.id) FROM community_member m
      JOIN entity n ON n.id = m.entity_id WHERE m.community_id = c.id) AS members
      FROM community c WHERE ${scope.sql} ORDER BY c.id`,
    ...scope.values,
  )
  return rows.map(({ uuid, group_id, name, summary, created_at, members }) => ({
    uuid,
    group: group_id,
    name,
    summary,
    createdAt: created_at,
    members: JSON.parse(members) as string[],
  }))
}

/** Writes one community; members that are not there are left out. */
export const putCommunity = (
  { db, now }: Context,
  found: Omit<Community, 'uuid' | 'createdAt'> & Partial<Community>,
): void => {
  const { id } = db.run(
    'INSERT INTO community (uuid, group_id, name, summary, created_at) VALUES (?, ?, ?, ?, ?)',
    found.uuid ?? newUuid(now()),
    found.group,
    found.name,
    found.summary,
    found.createdAt ?? now(),
  )
  db.run(
    `INSERT INTO community_member (community_id, entity_id)
      SELECT ?, id FROM entity WHERE +group_id = ? AND uuid IN (SELECT value FROM json_each(?))`, // by uuid, not by group
    id,
    found.group,
    JSON.stringify(found.members),
  )
}

/** Puts new communities in the place of the groups' old ones. */
export const replaceCommunities = (
  context: Context,
  groups: Groups,
  found: readonly Pick<Community, 'group' | 'name' | 'summary' | 'members'>[],
): Community[] => {
  const scope = inGroups('group_id', groups)
  context.db.run(`DELETE FROM community WHERE ${scope.sql}`, ...scope.values)
  for (const community of found) putCommunity(context, community)
  return listCommunities(context, groups)
}
