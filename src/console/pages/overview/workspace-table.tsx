import type { WorkspaceStatus } from '../../../protocol/status.ts'
import { isLargeList, tokenText } from '../../../protocol/tool-size.ts'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { formatCount, plural } from '../../parts/format.ts'
import { Table, type TableColumn } from '../../parts/table.tsx'

const readyIn = ({ servers }: WorkspaceStatus): number => servers.filter(({ state }) => state === 'ready').length

const toolsIn = ({ servers }: WorkspaceStatus): number => servers.reduce((sum, { tools = 0 }) => sum + tools, 0)

const COLUMNS: readonly TableColumn<WorkspaceStatus>[] = [
  {
    id: 'name',
    title: 'Workspace',
    width: 'minmax(96px, 1fr)',
    cell: ({ name }) => <span class="truncate">{name}</span>,
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  {
    id: 'ready',
    title: 'Ready',
    width: '112px',
    cell: workspace => {
      const [ready, all] = [readyIn(workspace), workspace.servers.length]
      return <span class={ready < all ? 'tone-warn' : undefined}>{`${ready} of ${plural(all, 'server')}`}</span>
    },
    compare: (a, b) => readyIn(a) - readyIn(b),
  },
  {
    id: 'tools',
    title: 'Tools',
    width: '64px',
    isNumber: true,
    hideBelow: 420,
    cell: workspace => formatCount(toolsIn(workspace)),
    compare: (a, b) => toolsIn(a) - toolsIn(b),
  },
  {
    id: 'tokens',
    title: 'Tokens listed',
    width: '104px',
    isNumber: true,
    hideBelow: 520,
    cell: ({ toolList }) => {
      if (!toolList) return '–'
      const isLarge = isLargeList(toolList)
      const title = isLarge ? 'A large list: set a budget for this workspace' : undefined
      return (
        <span class={isLarge ? 'tone-warn' : undefined} title={title}>
          {tokenText(toolList.listed.tokens)}
        </span>
      )
    },
    compare: (a, b) => (a.toolList?.listed.tokens ?? -1) - (b.toolList?.listed.tokens ?? -1),
  },
  {
    id: 'url',
    title: 'URL for clients',
    width: 'minmax(160px, 2fr)',
    cell: ({ url }) => (
      <span class="workspace-url">
        <span class="mono truncate" title={url}>
          {url}
        </span>
        {/* Copying does not choose the row. */}
        <span role="none" onClick={event => event.stopPropagation()}>
          <CopyButton text={url} label="Copy the URL" />
        </span>
      </span>
    ),
  },
]

interface WorkspaceTableProps {
  readonly workspaces: readonly WorkspaceStatus[]
  readonly selected: string | undefined
  readonly onSelect: (workspace: WorkspaceStatus) => void
}

/** All workspaces; choosing one shows its servers. */
export const WorkspaceTable = ({ workspaces, selected, onSelect }: WorkspaceTableProps) => (
  <Table
    label="Workspaces"
    columns={COLUMNS}
    rows={workspaces}
    keyOf={({ name }) => name}
    selected={selected}
    onOpen={onSelect}
    onSelect={onSelect}
    isMain
    empty={
      <Empty icon="overview" title="No workspaces" text="Add a server under Configuration: it gets a workspace." />
    }
  />
)
