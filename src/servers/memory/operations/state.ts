import type { MemoryJob, MemoryStats } from '../../../protocol/memory-views.ts'
import type { Job } from '../model.ts'
import type { MemoryStore } from '../store.ts'

const MOST_JOBS = 500
const MOST_CHANGES = 50

const jobView = ({ id, kind, state, group, episode, attempts, nextAt, error }: Job): MemoryJob => ({
  id,
  kind,
  state: state === 'leased' ? 'running' : state,
  group,
  episode,
  attempts,
  nextAt,
  error,
})

/** Counts, and the latest entries of the audit log. */
export const readMemoryStats = async (store: MemoryStore): Promise<MemoryStats> => {
  const { driver, bytes, groups, docs, sagas, communities, vectors, jobs, firstAt, lastAt } = await store.stats()
  const changes = await store.audit(MOST_CHANGES)
  return {
    driver,
    bytes,
    groups,
    passages: docs,
    sagas,
    communities,
    vectors,
    jobs: { waiting: jobs.waiting, running: jobs.leased, failed: jobs.failed },
    firstAt,
    lastAt,
    changes: changes.map(({ at, actor, op, ids }) => ({ at, actor, action: op, ids: ids.length })),
  }
}

/** The background jobs that wait, run or have failed. */
export const readMemoryJobs = async (store: MemoryStore): Promise<readonly MemoryJob[]> =>
  (await store.jobs({ groups: 'all', limit: MOST_JOBS })).map(jobView)
