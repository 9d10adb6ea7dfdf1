import { useEffect, useState } from 'preact/hooks'
import { stringifyExact } from '../../exact-json.ts'
import type { LogMessage, WireLine } from '../../mcp/mcp-client.ts'
import { Badge, StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { formatBytes, formatDuration, formatShare, plural } from '../../parts/format.ts'
import { JsonText } from '../../parts/json-text.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import type { CallRecord, CallState } from './calls.ts'
import { QuestionCard } from './question-card.tsx'
import { ResultView } from './result/result-view.tsx'
import { Segments } from './segments.tsx'

const PHASES = {
  running: { state: 'busy', label: 'Running' },
  done: { state: 'ok', label: 'Done' },
  failed: { state: 'error', label: 'Failed' },
  cancelled: { state: 'off', label: 'Cancelled' },
} as const

/** Not while it asks: the user may have entered an answer. */
export const isCancelledByEsc = (record: CallRecord | undefined): boolean =>
  record?.state.value.phase === 'running' && record.state.value.questions.length === 0

type CallTab = 'result' | 'raw' | 'messages' | 'log'

/** A call: its progress, its questions, its result and all messages. */
export const CallView = ({ record }: { readonly record: CallRecord }) => {
  const state = record.state.value
  const { phase, result, error, logs, wire, questions, dropped } = state
  const [tab, setTab] = useState<CallTab>('result')
  const isToolError = result?.result.isError === true
  const { state: dot, label } = isToolError ? { state: 'error' as const, label: 'Done, with an error' } : PHASES[phase]
  return (
    <section class="call" aria-label="Call">
      <div class="call-head" aria-live="polite">
        <StateDot state={dot} label={questions.length > 0 ? 'Waits for your answer' : label} />
        <Elapsed startedAt={record.startedAt} endedAt={state.endedAt} />
        {result && <span class="quiet">{formatBytes(result.text.length)}</span>}
        <span class="quiet">{record.revision}</span>
        <span class="call-space" />
        {phase === 'running' && record.kind !== 'outside' && (
          <Button icon="stop" keys={isCancelledByEsc(record) ? 'Escape' : undefined} onClick={record.cancel}>
            Cancel
          </Button>
        )}
        {phase !== 'running' && (
          <Segments
            label="Show"
            value={tab}
            onChange={setTab}
            options={[
              { id: 'result', label: error ? 'Error' : 'Result' },
              { id: 'raw', label: 'Raw' },
              { id: 'messages', label: 'Messages', count: wire.length },
              { id: 'log', label: 'Log', count: logs.length },
            ]}
          />
        )}
      </div>
      {phase === 'running' && (questions.length === 0 || state.progress) && <Progress state={state} />}
      {questions.map(open => (
        <QuestionCard key={open.id} open={open} target={record.target} />
      ))}
      {phase === 'running' && logs.length > 0 && <LogLines logs={logs} />}
      {phase !== 'running' && tab === 'result' && (
        <>
          {error && <Failure state={state} />}
          {result && <ResultView target={record.target} result={result.result} />}
        </>
      )}
      {phase !== 'running' && tab === 'raw' && <Raw state={state} />}
      {phase !== 'running' && tab === 'messages' && <Messages wire={wire} dropped={dropped} />}
      {phase !== 'running' && tab === 'log' && <LogLines logs={logs} />}
    </section>
  )
}

const TICK_MS = 100

const Elapsed = ({ startedAt, endedAt }: { readonly startedAt: number; readonly endedAt: number | undefined }) => {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (endedAt !== undefined) return
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [endedAt])
  return <span class="call-time">{formatDuration(Math.max(0, (endedAt ?? now) - startedAt))}</span>
}

const Progress = ({ state: { progress } }: { readonly state: CallState }) => {
  const total = progress?.total
  const share =
    progress && total !== undefined && total > 0 ? Math.min(1, Math.max(0, progress.progress / total)) : undefined
  return (
    <div class="call-progress">
      <progress aria-label="Progress" max={1} {...(share !== undefined && { value: share })} />
      {progress && (
        <p class="explore-note">
          {share === undefined ? progress.progress : `${formatShare(share)} (${progress.progress} of ${total})`}
          {progress.message !== undefined && ` · ${progress.message}`}
        </p>
      )}
    </div>
  )
}

const Failure = ({ state: { error } }: { readonly state: CallState }) => {
  if (!error) return null
  const { reason, code, message, data } = error
  return (
    <div class={reason === 'cancelled' ? 'call-cancelled' : 'call-failure'} role="alert">
      <p>
        {message}
        {code !== undefined && (
          <>
            {' '}
            <Badge kind="error">{reason === 'http' ? `HTTP ${code}` : `code ${code}`}</Badge>
          </>
        )}
      </p>
      {data !== undefined && reason === 'rpc' && <JsonTree value={data} name="data" />}
    </div>
  )
}

const Raw = ({ state: { result, error } }: { readonly state: CallState }) => {
  const text = result?.text ?? error?.text
  if (text === undefined) return <p class="explore-note">No message answered this call.</p>
  return <JsonText text={text} label="the message" />
}

const MOST_MESSAGES = 100

const Messages = ({ wire, dropped }: { readonly wire: readonly WireLine[]; readonly dropped: number }) => {
  const [first] = wire
  return (
    <ol class="wire">
      {dropped > 0 && <li class="explore-note">{plural(dropped, 'older entry', 'older entries')} not kept.</li>}
      {wire.slice(-MOST_MESSAGES).map((line, at) => (
        <li key={at}>
          <p class="explore-note">
            {line.direction === 'sent' ? '→ sent' : '← received'} · {formatDuration(line.at - (first?.at ?? line.at))}
            {line.note !== undefined && ` · ${line.note}`}
          </p>
          {line.text !== '' && <JsonText text={line.text} label={`message ${at + 1}`} />}
        </li>
      ))}
    </ol>
  )
}

const LEVEL_KINDS: Readonly<Record<string, 'neutral' | 'warn' | 'error'>> = {
  warning: 'warn',
  error: 'error',
  critical: 'error',
  alert: 'error',
  emergency: 'error',
}
const MOST_LINES = 200

/** Log messages, oldest first. */
export const LogLines = ({ logs }: { readonly logs: readonly LogMessage[] }) => {
  if (logs.length === 0) return <p class="explore-note">The server has sent no log message.</p>
  return (
    <ol class="log-lines" aria-label="Log messages">
      {logs.slice(-MOST_LINES).map((line, at) => (
        <li key={at}>
          <Badge kind={LEVEL_KINDS[line.level] ?? 'neutral'}>{line.level}</Badge>
          {line.logger !== undefined && <span class="quiet">{line.logger}</span>}
          <span class="mono">{typeof line.data === 'string' ? line.data : stringifyExact(line.data)}</span>
        </li>
      ))}
    </ol>
  )
}
