import type { ComponentChildren } from 'preact'
import { isModern, isRevision } from '../../../protocol/revisions.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Callout } from '../../parts/callout.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { formatCount, formatDuration, formatRelative, formatShare, plural } from '../../parts/format.ts'
import { clock, Time } from '../../parts/quantities.tsx'
import { Sparkline } from '../../parts/sparkline.tsx'
import { hrefTo } from '../../router.ts'
import { isOwner } from '../../session.ts'
import { Facts, NEEDS_OWNER, PaneSection } from '../connect/pane-parts.tsx'
import { errorShare, type OverviewRow } from './overview-rows.ts'
import { ServerActions } from './server-actions.tsx'
import { ServerLog, useServerLog } from './server-log.tsx'
import { ToolSafety } from './tool-safety.tsx'

const STDERR_LINES = 8
const SOON_MS = 3000
const CHART = { width: 132, height: 28 }

/** One server: its state, its figures, what went wrong, and its log. */
export const OverviewDetail = ({ row }: { readonly row: OverviewRow }) => {
  const log = useServerLog(row.name)
  const stderr = log.lines.filter(({ level }) => level === 'stderr').slice(-STDERR_LINES)
  return (
    <div class="server-pane">
      <ServerActions row={row} />
      {!isOwner.value && <p class="quiet">{NEEDS_OWNER}</p>}
      <StateNote row={row} />
      <Charts row={row} />
      <PaneSection title="Figures">
        <Facts rows={factsOf(row)} />
      </PaneSection>
      <LastError row={row} stderr={stderr.map(({ text }) => text)} />
      <ToolSafety status={row.status} />
      <PaneSection title="Workspaces">
        <p class="server-links">
          {row.workspaces.map(workspace => (
            <a key={workspace} href={hrefTo('overview', [], { workspace })}>
              {workspace}
            </a>
          ))}
          {row.workspaces.length === 0 && <span class="quiet">It is in no workspace.</span>}
        </p>
      </PaneSection>
      <PaneSection title="Log">
        <ServerLog {...log} />
      </PaneSection>
    </div>
  )
}

/** Why the server is not ready, and when it is tried again. */
const StateNote = ({ row: { status, dot } }: { readonly row: OverviewRow }) => {
  const { state, reason, retryAt } = status
  if (state === 'ready' || reason === undefined) return null
  const next =
    retryAt === undefined ? '' : retryAt - clock.value < SOON_MS ? 'now' : formatRelative(retryAt, clock.value)
  return (
    <Callout kind={dot === 'error' ? 'error' : dot === 'warn' ? 'warn' : 'info'}>
      <p class="server-reason">{reason}</p>
      {next !== '' && <p class="quiet">The gateway tries again {next}.</p>}
    </Callout>
  )
}

const Charts = ({ row }: { readonly row: OverviewRow }) => {
  const { calls, ms, errors } = row.status.activity?.history ?? { calls: [], ms: [], errors: [] }
  const share = errorShare(row)
  return (
    <div class="server-charts">
      <Chart title="Latency" value={row.meanMs === undefined ? '–' : formatDuration(row.meanMs)}>
        <Sparkline values={ms} label="Latency, 10 min" format={formatDuration} {...CHART} />
      </Chart>
      <Chart title="Requests" value={formatCount(row.calls)}>
        <Sparkline values={calls} label="Requests in 10 s" format={formatCount} {...CHART} />
      </Chart>
      <Chart title="Errors" value={share === undefined ? '–' : formatShare(share)}>
        <Sparkline values={errors} label="Errors in 10 s" format={formatCount} tone="error" {...CHART} />
      </Chart>
    </div>
  )
}

interface ChartProps {
  readonly title: string
  readonly value: string
  readonly children: ComponentChildren
}

const Chart = ({ title, value, children }: ChartProps) => (
  <figure>
    <figcaption>
      <span>{title}</span>
      <strong>{value}</strong>
    </figcaption>
    {children}
  </figure>
)

const eraText = (revision: string): string =>
  isRevision(revision) ? `${revision} (${isModern(revision) ? 'modern' : 'legacy'})` : revision

const factsOf = ({ status, dot, word }: OverviewRow): readonly (readonly [string, ComponentChildren])[] => {
  const { state, since, transport, revision, tools, processes, figures, activity } = status
  const unknown = state === 'disabled' ? 'not known while it does not run' : 'not known yet'
  return [
    ['State', <StateDot key="state" state={dot} label={word} />],
    ['Since', since === undefined ? undefined : <Time key="since" at={since} />],
    ['Transport', transport],
    ['Revision', revision === undefined ? unknown : eraText(revision)],
    ['Tools', tools === undefined ? unknown : formatCount(tools)],
    ['Processes', processes === undefined ? undefined : plural(processes, 'process', 'processes')],
    // Lists, discovery and health checks are among them.
    ['Requests', activity ? `${plural(activity.calls, 'request')}, ${plural(activity.errors, 'error')}` : 'none yet'],
    ['In progress', figures?.running === undefined ? undefined : plural(figures.running, 'request')],
    ['In the queue', figures ? plural(figures.waiting, 'request') : undefined],
    ['Went down', figures ? plural(figures.openings, 'time') : undefined],
    ['Sent again', figures ? plural(figures.retries, 'request') : undefined],
  ]
}

const LastError = ({ row, stderr }: { readonly row: OverviewRow; readonly stderr: readonly string[] }) => {
  const { lastError } = row.status.activity ?? {}
  if (!lastError && (row.status.state === 'ready' || stderr.length === 0)) return null
  const text = [...(lastError ? [lastError.message] : []), ...stderr].join('\n')
  return (
    <PaneSection title="Last error" actions={<CopyButton text={text} label="Copy the error" />}>
      {lastError && (
        <p class="server-reason">
          {lastError.message}{' '}
          <span class="quiet">
            <Time at={lastError.at} />
          </span>
        </p>
      )}
      {stderr.length > 0 && (
        <pre class="server-stderr" role="group" tabIndex={0} aria-label="The last lines of stderr">
          {stderr.join('\n')}
        </pre>
      )}
    </PaneSection>
  )
}
