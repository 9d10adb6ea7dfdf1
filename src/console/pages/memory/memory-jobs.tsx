import { useState } from 'preact/hooks'
import type { MemoryJob } from '../../../protocol/memory-views.ts'
import { api, messageOf } from '../../api.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { toast } from '../../parts/toast.tsx'
import { isOwner } from '../../session.ts'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { memoryChanged, useMemoryData } from './memory-client.ts'

const STATES = { waiting: 'off', running: 'busy', failed: 'error' } as const

/** The background jobs of a memory; failed ones can be retried. */
export const MemoryJobs = ({ place }: { readonly place: MemoryPlace }) => {
  const query = memoryQuery({ ...place, group: undefined, asOf: undefined })
  const { data, error } = useMemoryData<{ readonly jobs: readonly MemoryJob[] }>(`admin/memory/jobs${query}`)
  const [isBusy, setBusy] = useState(false)
  const jobs = data?.jobs ?? []
  const failed = jobs.filter(({ state }) => state === 'failed').length
  const retry = async (job?: number): Promise<void> => {
    setBusy(true)
    await api.post(`admin/memory/jobs/retry${query}`, job === undefined ? {} : { job }).then(
      () => memoryChanged(),
      (thrown: unknown) => toast(messageOf(thrown), { kind: 'error' }),
    )
    setBusy(false)
  }
  return (
    <>
      <h3 class="memory-row">
        Background jobs
        {failed > 0 && (
          <Button icon="restart" isBusy={isBusy} disabled={!isOwner.value} onClick={() => void retry()}>
            Retry {plural(failed, 'failed job')}
          </Button>
        )}
      </h3>
      {error !== undefined && <p class="memory-error">{error}</p>}
      {data && jobs.length === 0 && <p class="quiet">None waits, runs or has failed.</p>}
      <ul class="memory-jobs">
        {jobs.map(job => (
          <li key={job.id}>
            <StateDot state={STATES[job.state]} label={job.state} />
            <span>{job.kind}</span>
            <span class="quiet">{job.group}</span>
            {job.episode !== undefined && (
              <a href={memoryHref({ ...place, view: 'episode', id: job.episode })}>episode</a>
            )}
            <span class="quiet">{plural(job.attempts, 'attempt')}</span>
            <span class="truncate memory-job-error">{job.error}</span>
            {job.state === 'failed' && (
              <button type="button" class="link" disabled={!isOwner.value} onClick={() => void retry(job.id)}>
                Retry
              </button>
            )}
          </li>
        ))}
      </ul>
    </>
  )
}
