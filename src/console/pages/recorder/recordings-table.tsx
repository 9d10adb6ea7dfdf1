import { type Signal, signal } from '@preact/signals'
import type { RecordedServer, RecordingSummary } from '../../../admin/api/recorder.ts'
import { StateDot } from '../../parts/badge.tsx'
import { formatAbsolute, formatDuration } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { Bytes } from '../../parts/quantities.tsx'
import type { TableColumn } from '../../parts/table.tsx'
import { endingText, OUTCOMES } from './filters.ts'

const CLOCK = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})

/** The time of day to the millisecond. */
export const formatClock = (at: number): string => CLOCK.format(at)

/** The longest duration in sight: bars are relative to it. */
export const longestInSight = signal(0)

const Duration = ({ ms, longest }: { readonly ms: number | undefined; readonly longest: Signal<number> }) => {
  if (ms === undefined) return <span class="quiet">…</span>
  const share = longest.value > 0 ? Math.max(0.02, Math.min(1, ms / longest.value)) : 0
  return (
    <span class="rec-duration" title={`${ms.toLocaleString('en')} ms`}>
      <span class="rec-bar" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
      <span class="rec-duration-text">{formatDuration(ms)}</span>
    </span>
  )
}

interface DialectNameProps extends Omit<RecordedServer, 'name'> {
  readonly name: string | undefined
}

/** A name, and in which revision and how it is spoken to. */
export const DialectName = ({ name, dialect, revision }: DialectNameProps) => (
  <span class="rec-party" title={[name, revision, dialect].filter(Boolean).join(' ')}>
    {name !== undefined && <span class="truncate">{name}</span>}
    <span class="quiet rec-dialect">{[revision, dialect].filter(Boolean).join(' ')}</span>
  </span>
)

/** The same in a column: what the name leaves no room for is the title. */
const RevisionName = ({ name, dialect, revision }: DialectNameProps) => (
  <span class="rec-party" title={[name, revision, dialect].filter(Boolean).join(' ')}>
    <span class="truncate">{name ?? dialect}</span>
    <span class="quiet rec-dialect">{revision}</span>
  </span>
)

/** The columns of the list. One object for the life of the page. */
export const RECORDING_COLUMNS: readonly TableColumn<RecordingSummary>[] = [
  {
    id: 'time',
    title: 'Time',
    width: '106px',
    cell: ({ at }) => (
      <time class="mono" dateTime={new Date(at).toISOString()} title={formatAbsolute(at)}>
        {formatClock(at)}
      </time>
    ),
  },
  {
    id: 'client',
    title: 'Client',
    width: 'minmax(120px, 2fr)',
    hideBelow: 860,
    cell: ({ client, dialect, revision }) => <RevisionName name={client} dialect={dialect} revision={revision} />,
  },
  { id: 'method', title: 'Method', width: '174px', hideBelow: 520, cell: ({ method }) => method },
  {
    id: 'subject',
    title: 'Subject',
    width: 'minmax(100px, 1.9fr)',
    cell: ({ subject, method }) => (
      <span title={subject ?? method} class={subject === undefined ? 'quiet rec-no-subject' : undefined}>
        {subject ?? method}
      </span>
    ),
  },
  {
    id: 'translated',
    title: '',
    width: '24px',
    cell: ({ isTranslated }) =>
      isTranslated && (
        <span class="rec-translated" role="img" aria-label="Translated" title="Translated between revisions">
          <Icon name="swap" />
        </span>
      ),
  },
  {
    id: 'servers',
    title: 'Server',
    width: 'minmax(110px, 1.65fr)',
    hideBelow: 720,
    cell: ({ servers }) => {
      const [first, ...more] = servers
      if (!first) return <span class="quiet">gateway</span>
      if (more.length > 0) return servers.map(({ name }) => name).join(', ')
      return <RevisionName name={first.name} dialect={first.dialect} revision={first.revision} />
    },
  },
  {
    id: 'outcome',
    title: 'Outcome',
    width: '96px',
    cell: summary => (
      <span title={endingText(summary)}>
        <StateDot {...OUTCOMES[summary.outcome]} />
      </span>
    ),
  },
  {
    id: 'duration',
    title: 'Duration',
    width: '120px',
    isNumber: true,
    hideBelow: 460,
    cell: ({ durationMs }) => <Duration ms={durationMs} longest={longestInSight} />,
  },
  {
    id: 'bytes',
    title: 'Size',
    width: '72px',
    isNumber: true,
    hideBelow: 1180, // names of tools come first; the exchange says its size, too
    cell: ({ bytes }) => <Bytes value={bytes} />,
  },
]
