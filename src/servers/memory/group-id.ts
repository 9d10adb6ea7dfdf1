import { Refusal } from './refusal.ts'

const GROUP_ID = /^[A-Za-z0-9_-]{1,255}$/

/** Whether a group may be called so. */
export const isGroupId = (id: string): boolean => GROUP_ID.test(id)

/** A group's name, or a refusal that says how one is written. */
export const checkedGroup = (id: string): string => {
  if (isGroupId(id)) return id
  throw new Refusal(
    `group_id ${JSON.stringify(id.slice(0, 80))} must contain only letters, digits, dashes and underscores`,
  )
}
