import { tokenText } from '../../../protocol/tool-size.ts'
import { StateDot } from '../../parts/badge.tsx'
import type { EmptyProps } from '../../parts/empty.tsx'
import { formatCount, formatDuration, formatShare } from '../../parts/format.ts'
import { Sparkline } from '../../parts/sparkline.tsx'
import type { TableColumn } from '../../parts/table.tsx'
import { type FilteredRows, FilteredTable } from './filtered-table.tsx'
import { byUrgency, errorShare, type OverviewRow } from './overview-rows.ts'

const NO_SERVERS: EmptyProps = {
  icon: 'overview',
  title: 'No servers yet',
  text: 'Add one, here under Configuration or with a command.',
  command: 'dragoman add everything -- npx -y @modelcontextprotocol/server-everything',
}

const COLUMNS: readonly TableColumn<OverviewRow>[] = [
  {
    id: 'name',
    title: 'Server',
    width: 'minmax(96px, 1.4fr)',
    cell: ({ name }) => <span class="truncate">{name}</span>,
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  {
    id: 'state',
    title: 'State',
    width: '104px',
    cell: ({ dot, word }) => <StateDot state={dot} label={word} />,
    compare: byUrgency,
  },
  {
    id: 'transport',
    title: 'Transport',
    width: '76px',
    hideBelow: 620,
    cell: ({ status }) => <span class="quiet">{status.transport ?? '–'}</span>,
    compare: (a, b) => (a.status.transport ?? '').localeCompare(b.status.transport ?? ''),
  },
  {
    id: 'revision',
    title: 'Revision',
    width: '104px',
    hideBelow: 680,
    cell: ({ status }) => <span class="mono">{status.revision ?? '–'}</span>,
    compare: (a, b) => (a.status.revision ?? '').localeCompare(b.status.revision ?? ''),
  },
  {
    id: 'tools',
    title: 'Tools',
    width: '56px',
    isNumber: true,
    hideBelow: 420,
    cell: ({ status }) => (status.tools === undefined ? '–' : formatCount(status.tools)),
    compare: (a, b) => (a.status.tools ?? -1) - (b.status.tools ?? -1),
  },
  {
    id: 'tokens',
    title: 'Tokens',
    width: '64px',
    isNumber: true,
    hideBelow: 720,
    cell: ({ status }) => (status.toolSize ? tokenText(status.toolSize.tokens) : '–'),
    compare: (a, b) => (a.status.toolSize?.tokens ?? -1) - (b.status.toolSize?.tokens ?? -1),
  },
  {
    id: 'calls',
    title: 'Requests',
    width: '72px',
    isNumber: true,
    hideBelow: 520,
    cell: ({ calls }) => formatCount(calls),
    compare: (a, b) => a.calls - b.calls,
  },
  {
    id: 'errors',
    title: 'Errors',
    width: '60px',
    isNumber: true,
    cell: row => {
      const share = errorShare(row)
      if (share === undefined) return '–'
      return <span class={share > 0 ? 'tone-error' : undefined}>{formatShare(share)}</span>
    },
    compare: (a, b) => (errorShare(a) ?? -1) - (errorShare(b) ?? -1),
  },
  {
    id: 'latency',
    title: 'Latency',
    width: '72px',
    isNumber: true,
    cell: ({ meanMs }) => (meanMs === undefined ? '–' : formatDuration(meanMs)),
    compare: (a, b) => (a.meanMs ?? -1) - (b.meanMs ?? -1),
  },
  {
    id: 'trend',
    title: '10 minutes',
    width: '112px',
    hideBelow: 780,
    cell: ({ status }) => (
      <Sparkline values={status.activity?.history?.ms ?? []} label="Latency, 10 min" format={formatDuration} />
    ),
  },
  {
    id: 'problem',
    title: 'Last error',
    width: 'minmax(120px, 2fr)',
    hideBelow: 920,
    cell: ({ problem, dot }) => (
      <span class={dot === 'ok' || dot === 'off' ? 'truncate quiet' : 'truncate'} title={problem}>
        {problem ?? ''}
      </span>
    ),
  },
]

/** All servers, one line each. */
export const ServerTable = (props: FilteredRows<OverviewRow>) => (
  <FilteredTable {...props} noun="server" columns={COLUMNS} keyOf={({ name }) => name} empty={NO_SERVERS} />
)
