import { useEffect, useMemo, useState } from 'preact/hooks'
import type { ClientInfo, ClientList } from '../../../admin/api/clients.ts'
import { gatewayUrl } from '../../api.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Icon } from '../../parts/icon.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { mcpToken } from '../../session.ts'
import { ClientDetail } from './client-detail.tsx'
import { type ClientRow, clientRows, verdictOf } from './client-rows.ts'
import { NewTokenDialog } from './new-token-dialog.tsx'
import { OtherDetail } from './other-detail.tsx'

export interface ClientsTabProps {
  readonly list: ClientList
  readonly search: string
  readonly selected: string | undefined
  readonly onSelect: (id: string | undefined) => void
  readonly onChanged: () => void
}

const columnsFor = (list: ClientList): readonly TableColumn<ClientRow>[] => [
  {
    id: 'client',
    title: 'Client',
    width: 'minmax(150px, 1.2fr)',
    cell: row => (
      <span class="connect-client-name">
        <Icon name={row.kind === 'known' ? 'connect' : row.client.icon} />
        <span class="truncate">{row.title}</span>
      </span>
    ),
    compare: (a, b) => a.title.localeCompare(b.title),
  },
  {
    id: 'state',
    title: 'State',
    width: 'minmax(120px, 1fr)',
    cell: row => {
      if (row.kind === 'other') return <span class="quiet">{row.client.how}</span>
      const verdict = verdictOf(row.client, list)
      return verdict ? <StateDot {...verdict} /> : <span class="quiet">{transportsOf(row.client)}</span>
    },
  },
  {
    id: 'file',
    title: 'File',
    width: 'minmax(0, 2fr)',
    hideBelow: 620,
    cell: row =>
      row.kind === 'known' && row.client.state ? (
        <code title={row.client.state.file}>{row.client.state.file}</code>
      ) : (
        <span class="quiet">{row.kind === 'other' ? 'By hand' : ''}</span>
      ),
  },
]

const transportsOf = ({ snippets }: ClientInfo): string => (snippets.http === undefined ? 'stdio' : 'HTTP, stdio')

/** The clients that can be connected, and how. */
export const ClientsTab = ({ list, search, selected, onSelect, onChanged }: ClientsTabProps) => {
  const rows = useMemo(() => clientRows(list, search), [list, search])
  const columns = useMemo(() => columnsFor(list), [list])
  const [secrets, setSecrets] = useState<Readonly<Record<string, string>>>({})
  const [isTokenOpen, setTokenOpen] = useState(false)
  const row = useMemo(() => clientRows(list, '').find(({ id }) => id === selected), [list, selected])
  const tool = useFirstTool(row?.id === 'curl' ? list.workspace : undefined)
  const base = list.isHere ? list.origin : (list.publicUrl ?? gatewayUrl('').replace(/\/$/, ''))
  const shared = {
    list,
    base,
    secret: row && secrets[`${row.id} ${list.workspace}`],
    onToken: () => setTokenOpen(true),
  }
  return (
    <>
      <SplitView
        label={row ? row.title : 'Client'}
        storageKey="connect"
        defaultWidth={600}
        onClose={() => onSelect(undefined)}
        detail={
          row &&
          (row.kind === 'known' ? (
            <ClientDetail key={`${row.id} ${list.workspace}`} client={row.client} onChanged={onChanged} {...shared} />
          ) : (
            <OtherDetail client={row.client} tool={tool} {...shared} />
          ))
        }
      >
        <Table
          label="Clients"
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
          selected={selected}
          onSelect={({ id }) => onSelect(id)}
          isMain
          empty={<Empty icon="search" title="No client matches" text="Clear the search to see all of them." />}
        />
      </SplitView>
      {isTokenOpen && row && (
        <NewTokenDialog
          name={row.id}
          workspace={list.workspace}
          onCreated={({ secret }) => {
            setSecrets({ ...secrets, [`${row.id} ${list.workspace}`]: secret })
            onChanged()
          }}
          onClose={() => setTokenOpen(false)}
        />
      )}
    </>
  )
}

interface ToolPaths {
  readonly paths?: Readonly<Record<string, unknown>>
}

/** The name of a tool of a workspace, for an example that works; undefined until it is known, or if there is none. */
const useFirstTool = (workspace: string | undefined): string | undefined => {
  const [tool, setTool] = useState<string | undefined>()
  useEffect(() => {
    setTool(undefined)
    if (workspace === undefined) return
    const abort = new AbortController()
    const load = async (): Promise<void> => {
      const token = await mcpToken()
      const response = await fetch(gatewayUrl(`actions/${encodeURIComponent(workspace)}/openapi.json`), {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        signal: abort.signal,
      })
      const { paths = {} } = (await response.json()) as ToolPaths
      const last = Object.keys(paths)[0]?.split('/').at(-1)
      setTool(last === undefined ? undefined : decodeURIComponent(last))
    }
    load().catch(() => {}) // the snippet has a placeholder instead
    return () => abort.abort()
  }, [workspace])
  return tool
}
