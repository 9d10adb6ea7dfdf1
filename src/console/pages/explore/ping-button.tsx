import { useState } from 'preact/hooks'
import { isModern } from '../../../protocol/revisions.ts'
import { messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { formatDuration } from '../../parts/format.ts'
import type { ExploreConnection } from './connection.ts'

/** Measures how long the target takes to answer: `ping`, or `server/discover` where there is none. */
export const PingButton = ({ client, revision }: Pick<ExploreConnection, 'client' | 'revision'>) => {
  const [answer, setAnswer] = useState('')
  const [isBusy, setBusy] = useState(false)
  const method = isModern(revision) ? 'server/discover' : 'ping'
  const ping = async (): Promise<void> => {
    setBusy(true)
    const startedAt = performance.now()
    await client.request(method, {}).then(
      () => setAnswer(`${method} answered in ${formatDuration(performance.now() - startedAt)}`),
      (error: unknown) => setAnswer(`${method} failed: ${messageOf(error)}`),
    )
    setBusy(false)
  }
  return (
    <div class="call-actions">
      <Button isBusy={isBusy} onClick={() => void ping()}>
        Ping
      </Button>
      <span class="explore-note" role="status">
        {answer}
      </span>
    </div>
  )
}
