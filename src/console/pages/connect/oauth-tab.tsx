import { useMemo } from 'preact/hooks'
import type { OAuthClientInfo, OAuthClientList } from '../../../admin/api/tokens.ts'
import { Empty } from '../../parts/empty.tsx'
import { Time } from '../../parts/quantities.tsx'
import type { TableColumn } from '../../parts/table.tsx'
import type { FactRow } from './pane-parts.tsx'
import { RevocableList, type Revocation } from './revocable-list.tsx'

export interface OAuthTabProps {
  readonly list: OAuthClientList
  readonly search: string
  readonly selected: string | undefined
  readonly onSelect: (id: string | undefined) => void
  readonly onChanged: () => void
}

const COLUMNS: readonly TableColumn<OAuthClientInfo>[] = [
  {
    id: 'client',
    title: 'Client',
    width: 'minmax(120px, 1.5fr)',
    cell: ({ client }) => client,
    compare: (a, b) => a.client.localeCompare(b.client),
  },
  {
    id: 'principal',
    title: 'Acts for',
    cell: ({ principal }) => principal,
    compare: (a, b) => a.principal.localeCompare(b.principal),
  },
  { id: 'workspace', title: 'Workspace', hideBelow: 520, cell: ({ workspace }) => workspace ?? 'Every one of theirs' },
  {
    id: 'since',
    title: 'Connected',
    width: '110px',
    hideBelow: 620,
    cell: ({ since }) => <Time at={since} />,
    compare: (a, b) => a.since - b.since,
  },
  {
    id: 'refreshed',
    title: 'Last token',
    width: '110px',
    cell: ({ refreshedAt }) => <Time at={refreshedAt} />,
    compare: (a, b) => a.refreshedAt - b.refreshedAt,
  },
]

const factsOf = (client: OAuthClientInfo): readonly FactRow[] => [
  ['Acts for', client.principal],
  ['Workspace', client.workspace ?? 'Every workspace that they may use'],
  ['Scopes', client.scopes.length === 0 ? 'None' : client.scopes.join(', ')],
  ['Returns to', <code class="connect-break">{client.redirectUri}</code>],
  ['Connected', <Time at={client.since} />],
  ['Last token', <Time at={client.refreshedAt} />],
]

const DISCONNECT: Revocation<OAuthClientInfo> = {
  action: 'Disconnect',
  path: ({ id }) => `admin/oauth-clients/${encodeURIComponent(id)}`,
  question: ({ client }) => `Disconnect ${client}?`,
  done: ({ client }) => `Disconnected ${client}`,
  warning: ({ principal }) => (
    <p>Its tokens for {principal} are no longer valid. The client must log in again, and it asks for consent again.</p>
  ),
}

/** The clients that people have allowed to act for them, at the authorization server of the gateway. */
export const OAuthTab = ({ list, search, selected, onSelect, onChanged }: OAuthTabProps) => {
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase()
    return list.clients.filter(({ client, principal }) => `${client} ${principal}`.toLowerCase().includes(wanted))
  }, [list, search])
  const chosen = list.clients.find(({ id }) => id === selected)
  return (
    <RevocableList
      label="OAuth clients"
      columns={COLUMNS}
      rows={rows}
      chosen={chosen}
      title={chosen?.client ?? 'Client'}
      facts={factsOf}
      revocation={DISCONNECT}
      empty={<NoClients hasOthers={list.clients.length > 0} />}
      onSelect={onSelect}
      onChanged={onChanged}
    />
  )
}

const NoClients = ({ hasOthers }: { readonly hasOthers: boolean }) =>
  hasOthers ? (
    <Empty icon="search" title="No client matches" text="Clear the search to see all." />
  ) : (
    <Empty
      icon="connect"
      title="No client has logged in"
      text="Clients such as Claude.ai and ChatGPT appear here after a person has allowed them to act for them."
    />
  )
