import type { MemoryStore } from './store.ts'

// Jobs that are retried leave the list of failed ones, so the first page is read again until it does not change.
const PAGE = 500

/** Retries one failed job or all; returns how many there were. */
export const retryJobs = async (store: MemoryStore, which: number | 'all'): Promise<number> => {
  if (which !== 'all') return (await store.retry(which)) ? 1 : 0
  for (let count = 0; ; ) {
    const failed = await store.jobs({ groups: 'all', limit: PAGE, states: ['failed'] })
    const before = count
    for (const { id } of failed) count += Number(await store.retry(id))
    if (count === before) return count
  }
}
