import { useMemo, useState } from 'preact/hooks'
import type { OAuthClientInfo, OAuthClientList } from '../../../admin/api/tokens.ts'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Time } from '../../parts/quantities.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { toast } from '../../parts/toast.tsx'
import { Facts } from './pane-parts.tsx'

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

/** The clients that people have allowed to act for them, at the authorization server of the gateway. */
export const OAuthTab = ({ list, search, selected, onSelect, onChanged }: OAuthTabProps) => {
  const [isAsking, setAsking] = useState(false)
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase()
    return list.clients.filter(({ client, principal }) => `${client} ${principal}`.toLowerCase().includes(wanted))
  }, [list, search])
  const found = list.clients.find(({ id }) => id === selected)

  const disconnect = async ({ id, client }: OAuthClientInfo): Promise<void> => {
    setAsking(false)
    try {
      await api.delete(`admin/oauth-clients/${encodeURIComponent(id)}`)
      toast(`Disconnected ${client}`, { kind: 'ok' })
      onSelect(undefined)
    } catch (error) {
      toast(messageOf(error), { kind: 'error' })
    }
    onChanged()
  }

  return (
    <>
      <SplitView
        label={found?.client ?? 'Client'}
        storageKey="connect-token"
        defaultWidth={420}
        onClose={() => onSelect(undefined)}
        detail={
          found && (
            <div class="connect-pane">
              <Facts
                rows={[
                  ['Acts for', found.principal],
                  ['Workspace', found.workspace ?? 'Every workspace that they may use'],
                  ['Scopes', found.scopes.length === 0 ? 'None' : found.scopes.join(', ')],
                  ['Returns to', <code class="connect-break">{found.redirectUri}</code>],
                  ['Connected', <Time at={found.since} />],
                  ['Last token', <Time at={found.refreshedAt} />],
                ]}
              />
              <p class="connect-pane-actions">
                <Button kind="danger" icon="trash" onClick={() => setAsking(true)}>
                  Disconnect…
                </Button>
              </p>
            </div>
          )
        }
      >
        <Table
          label="OAuth clients"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ id }) => id}
          selected={selected}
          onSelect={({ id }) => onSelect(id)}
          isMain
          empty={
            list.clients.length > 0 ? (
              <Empty icon="search" title="No client matches" text="Clear the search to see all." />
            ) : (
              <Empty
                icon="connect"
                title="No client has logged in"
                text="Clients such as Claude.ai and ChatGPT appear here after a person has allowed them to act for them."
              />
            )
          }
        />
      </SplitView>
      {isAsking && found && (
        <Confirm
          title={`Disconnect ${found.client}?`}
          action="Disconnect"
          isDanger
          onConfirm={() => void disconnect(found)}
          onClose={() => setAsking(false)}
        >
          <p>
            Its tokens for {found.principal} are no longer valid. The client must log in again, and it asks for consent
            again.
          </p>
        </Confirm>
      )}
    </>
  )
}
