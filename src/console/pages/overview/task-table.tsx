import type { TaskInfo } from '../../../protocol/task-info.ts'
import { StateDot } from '../../parts/badge.tsx'
import type { EmptyProps } from '../../parts/empty.tsx'
import { Time } from '../../parts/quantities.tsx'
import type { TableColumn } from '../../parts/table.tsx'
import { type FilteredRows, FilteredTable } from './filtered-table.tsx'

const NO_TASKS: EmptyProps = {
  icon: 'clock',
  title: 'No tasks',
  text: 'A task is a call whose result is fetched later. Clients start them, and so does “Run as task” in Explore.',
  command: 'dragoman call SERVER/TOOL --task',
}

/** How the states of a task are shown. */
export const TASK_STATES = {
  working: { state: 'busy', label: 'Working' },
  input_required: { state: 'warn', label: 'Asks' },
  completed: { state: 'ok', label: 'Completed' },
  failed: { state: 'error', label: 'Failed' },
  cancelled: { state: 'off', label: 'Cancelled' },
} as const

const COLUMNS: readonly TableColumn<TaskInfo>[] = [
  {
    id: 'tool',
    title: 'Tool',
    width: 'minmax(96px, 1.2fr)',
    cell: ({ tool }) => <span class="mono truncate">{tool}</span>,
    compare: (a, b) => a.tool.localeCompare(b.tool),
  },
  {
    id: 'server',
    title: 'Server',
    width: 'minmax(80px, 1fr)',
    hideBelow: 420,
    cell: ({ server }) => <span class="truncate">{server}</span>,
    compare: (a, b) => a.server.localeCompare(b.server),
  },
  {
    id: 'status',
    title: 'State',
    width: '108px',
    cell: ({ status }) => <StateDot {...TASK_STATES[status]} />,
    compare: (a, b) => a.status.localeCompare(b.status),
  },
  {
    id: 'started',
    title: 'Started',
    width: '104px',
    cell: ({ createdAt }) => <Time at={createdAt} />,
    compare: (a, b) => a.createdAt - b.createdAt,
  },
  {
    id: 'user',
    title: 'User',
    width: 'minmax(72px, 0.8fr)',
    hideBelow: 620,
    cell: ({ principal }) => principal ?? <span class="quiet">anonymous</span>,
  },
  {
    id: 'message',
    title: 'Message',
    width: 'minmax(100px, 2fr)',
    hideBelow: 760,
    cell: ({ message = '' }) => (
      <span class="truncate quiet" title={message}>
        {message}
      </span>
    ),
  },
]

/** The tasks of this gateway, newest first. */
export const TaskTable = (props: FilteredRows<TaskInfo>) => (
  <FilteredTable {...props} noun="task" columns={COLUMNS} keyOf={({ id }) => id} empty={NO_TASKS} />
)
