import { useMemo, useState } from 'preact/hooks'
import { StateDot, type StateDotProps } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { formatCount } from '../../parts/format.ts'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { hrefTo, navigate } from '../../router.ts'
import { AddServer } from './add-server.tsx'
import { type ServerRow, serverRows } from './entries.ts'
import { nameColumn } from './name-column.tsx'
import { ServerDetail } from './server-detail.tsx'
import { ServerMenu } from './server-menu.tsx'
import { canEdit, draft, status } from './store.ts'

const DOTS: Readonly<Record<string, StateDotProps['state']>> = {
  ready: 'ok',
  connecting: 'busy',
  degraded: 'warn',
  down: 'error',
  unavailable: 'error',
  untried: 'off',
  disabled: 'off',
}

const stateOf = (row: ServerRow): string => (row.isDisabled ? 'disabled' : (row.status?.state ?? 'not saved'))

const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

const COLUMNS: readonly TableColumn<ServerRow>[] = [
  nameColumn('Server'),
  {
    id: 'state',
    title: 'State',
    width: '110px',
    compare: (a, b) => stateOf(a).localeCompare(stateOf(b)),
    cell: row => <StateDot state={DOTS[stateOf(row)] ?? 'off'} label={capitalized(stateOf(row))} />,
  },
  {
    id: 'target',
    title: 'Address or command',
    width: 'minmax(0, 3fr)',
    hideBelow: 520,
    cell: row => <span class="mono">{row.target}</span>,
  },
  {
    id: 'tools',
    title: 'Tools',
    width: '64px',
    isNumber: true,
    hideBelow: 620,
    cell: row => (row.status?.tools === undefined || row.isDisabled ? '' : formatCount(row.status.tools)),
  },
]

/** The servers of the configuration, and the form of the one that is chosen. */
export const ServersTab = ({ selected }: { readonly selected: string | undefined }) => {
  const { root, value } = draft.value
  const servers = status.value?.servers
  const rows = useMemo(() => serverRows(root, value, servers ?? []), [root, value, servers])
  const [isAdding, setAdding] = useState(false)
  const row = rows.find(({ name }) => name === selected)
  const open = (name?: string): void =>
    navigate(hrefTo('configuration', name === undefined ? ['servers'] : ['servers', name]))
  const addButton = (
    <Button kind="primary" icon="plus" disabled={!canEdit.value} onClick={() => setAdding(true)}>
      Add server
    </Button>
  )
  return (
    <>
      <SplitView
        label="Server"
        title={row?.name ?? selected}
        storageKey="configuration"
        defaultWidth={520}
        onClose={() => open()}
        actions={row && canEdit.value && <ServerMenu row={row} onRenamed={open} />}
        detail={
          selected === undefined ? undefined : row ? (
            <ServerDetail key={row.path.join('/')} row={row} />
          ) : (
            <Gone name={selected} />
          )
        }
      >
        <div class="config-actions">{addButton}</div>
        <Table
          label="Servers"
          isMain
          columns={COLUMNS}
          rows={rows}
          keyOf={each => each.name}
          selected={row?.name}
          onSelect={each => open(each.name)}
          empty={
            <Empty
              icon="configuration"
              title="No servers"
              text="Add a server by its URL, its command, or what its page shows for another client."
            >
              {addButton}
            </Empty>
          }
        />
      </SplitView>
      {isAdding && <AddServer onClose={() => setAdding(false)} onAdded={open} />}
    </>
  )
}

const Gone = ({ name }: { readonly name: string }) => (
  <Empty
    icon="info"
    title={`No server "${name}"`}
    text="It was removed or renamed. Choose another one from the list."
  />
)
