import { regroup, summarise } from './grouping.ts'
import type { Handle } from './worker.ts'

/** Groups the entities of the job's group anew. */
export const regroupJob: Handle = async (store, { group }) => {
  await regroup(store, [group])
}

/** Brings the summary of a saga up to date. */
export const summariseJob: Handle = async (store, { group, payload }) => {
  if (typeof payload.saga === 'string') await summarise(store, group, payload.saga)
}
