import { useEffect, useRef, useState } from 'preact/hooks'
import type { TriedServer } from '../../../admin/api/config.ts'
import { api, messageOf } from '../../api.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { Duration } from '../../parts/quantities.tsx'
import { isOwner } from '../../session.ts'
import type { ServerRow } from './entries.ts'
import { draft, edits } from './store.ts'

type Trial =
  | { readonly kind: 'busy' }
  | { readonly kind: 'failed'; readonly text: string }
  | { readonly kind: 'done'; readonly result: TriedServer }

/** Connects once to a server as the draft has it, before it is saved; leaving the form cancels it. */
export const TryServer = ({ row }: { readonly row: ServerRow }) => {
  const [trial, setTrial] = useState<Trial | undefined>()
  const pending = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => pending.current?.abort(), [])
  if (!isOwner.value) return null

  const run = async (): Promise<void> => {
    pending.current?.abort()
    const abort = new AbortController()
    pending.current = abort
    setTrial({ kind: 'busy' })
    try {
      const body = { name: row.name, text: draft.value.text, edits: edits.value }
      const result = await api.post<TriedServer>('admin/config/try', body, { signal: abort.signal })
      setTrial({ kind: 'done', result })
    } catch (error) {
      setTrial(abort.signal.aborted ? undefined : { kind: 'failed', text: messageOf(error) })
    }
  }
  return (
    <section class="config-try" aria-label="Try the server">
      <div class="config-try-row">
        {trial?.kind === 'busy' ? (
          <Button icon="stop" onClick={() => pending.current?.abort()}>
            Cancel
          </Button>
        ) : (
          <Button icon="play" onClick={() => void run()}>
            Try it
          </Button>
        )}
        <span role="status">
          {trial === undefined && <span class="quiet">Connects once, as the form has it. Calls no tool.</span>}
          {trial?.kind === 'busy' && <StateDot state="busy" label="connecting, at most 30 s" />}
          {trial?.kind === 'failed' && <span class="config-error">{trial.text}</span>}
          {trial?.kind === 'done' && <Outcome result={trial.result} />}
        </span>
      </div>
      {trial?.kind === 'done' && <Printed result={trial.result} />}
    </section>
  )
}

const Outcome = ({ result }: { readonly result: TriedServer }) => {
  const { state, transport, revision, tools, prompts, resources, ms, reason } = result
  if (state !== 'ready' && state !== 'degraded')
    return (
      <>
        <StateDot state={state === 'down' || state === 'unavailable' ? 'error' : 'off'} label={state} /> {reason}
      </>
    )
  const counts = [plural(tools ?? 0, 'tool'), plural(prompts ?? 0, 'prompt'), plural(resources ?? 0, 'resource')]
  return (
    <>
      <StateDot state={state === 'ready' ? 'ok' : 'warn'} label={state === 'ready' ? 'It works' : 'degraded'} />
      <span class="quiet">
        {' '}
        {revision} over {transport}, {counts.join(', ')}, {ms !== undefined && <Duration ms={ms} />}
      </span>
      {reason && ` ${reason}`}
    </>
  )
}

/** What the server printed, which often says why it fails, and flaws of its lists. */
const Printed = ({ result: { stderr = [], flaws = [] } }: { readonly result: TriedServer }) => (
  <>
    {flaws.length > 0 && (
      <ul class="config-flaws">
        {flaws.map(flaw => (
          <li key={flaw}>{flaw}</li>
        ))}
      </ul>
    )}
    {stderr.length > 0 && (
      <details class="config-stderr" open>
        <summary>{plural(stderr.length, 'line')} on stderr</summary>
        <pre tabIndex={0}>{stderr.join('\n')}</pre>
      </details>
    )}
  </>
)
