import type { InsertTarget } from '../../../stores/sql.ts'
import { newUuid } from '../ids.ts'
import type { Community } from '../model.ts'
import type { Groups } from '../store.ts'
import type { StoreContext } from './context.ts'
import { inGroups, insertRow, recordReader } from './rows.ts'

const communityOf = recordReader<Community>('members')

/** The communities of some groups with the uuids of their members. */
export const listCommunities = async ({ db }: StoreContext, groups: Groups): Promise<Community[]> => {
  const scope = inGroups(db, 'c.group_id', groups)
  const rows = await db.all(
    `SELECT c.uuid, c.group_id AS "group", c.name, c.summary, c.created_at AS "createdAt", (SELECT ${db.dialect.jsonArrayOf('n.uuid', 'n.id')} FROM community_member m
      JOIN entity n ON n.id = m.entity_id WHERE m.community_id = c.id) AS members
      FROM community c WHERE ${scope.sql} ORDER BY c.id`,
    ...scope.values,
  )
  return rows.map(communityOf)
}

const MEMBERS: InsertTarget = {
  table: 'community_member',
  columns: { community_id: 'integer', entity_id: 'integer' },
}

/** Stores one community; members that are not in its group are skipped. */
export const addCommunity = async (
  { db, now }: StoreContext,
  found: Omit<Community, 'uuid' | 'createdAt'> & Partial<Community>,
): Promise<void> => {
  const id = await insertRow(db, 'community', {
    uuid: found.uuid ?? newUuid(now()),
    group_id: found.group,
    name: found.name,
    summary: found.summary,
    created_at: found.createdAt ?? now(),
  })
  const sql = `SELECT id, group_id FROM entity WHERE ${db.dialect.inList('uuid')}`
  const entities = await db.all<{ id: number; group_id: string }>(sql, found.members)
  const members = entities.filter(({ group_id }) => group_id === found.group).map(entity => [id, entity.id])
  await db.insertAll(MEMBERS, members)
}

/** Replaces the communities of the groups. */
export const replaceCommunities = async (
  context: StoreContext,
  groups: Groups,
  found: readonly Pick<Community, 'group' | 'name' | 'summary' | 'members'>[],
): Promise<Community[]> => {
  const scope = inGroups(context.db, 'group_id', groups)
  await context.db.run(`DELETE FROM community WHERE ${scope.sql}`, ...scope.values)
  for (const community of found) await addCommunity(context, community)
  return listCommunities(context, groups)
}
