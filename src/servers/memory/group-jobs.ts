import type { JobKind } from './model.ts'

/** Whether work is about a group rather than the episode that asked for it: one piece of it will do, however many ask. */
export const isOfGroup = (kind: JobKind): boolean => kind === 'communities' || kind === 'summarise'
