import { useMemo } from 'preact/hooks'
import type { TokenInfo, TokenList } from '../../../admin/api/tokens.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Time } from '../../parts/quantities.tsx'
import type { TableColumn } from '../../parts/table.tsx'
import { session } from '../../session.ts'
import type { FactRow } from './pane-parts.tsx'
import { RevocableList, type Revocation } from './revocable-list.tsx'

export interface TokensTabProps {
  readonly list: TokenList
  readonly search: string
  readonly selected: string | undefined
  readonly onSelect: (id: string | undefined) => void
  readonly onNew: () => void
  readonly onChanged: () => void
}

const ROLES = { owner: 'Owner', viewer: 'Viewer', none: '—' } as const

const workspacesText = ({ workspaces }: Pick<TokenInfo, 'workspaces'>): string =>
  workspaces.includes('*') ? 'Every workspace' : workspaces.join(', ')

const byTime = (a: string | undefined, b: string | undefined): number => (a ?? '').localeCompare(b ?? '')

const COLUMNS: readonly TableColumn<TokenInfo>[] = [
  {
    id: 'name',
    title: 'Name',
    width: 'minmax(120px, 1.5fr)',
    cell: ({ name, isExpired }) => (
      <>
        {name} {isExpired && <Badge kind="warn">expired</Badge>}
      </>
    ),
    compare: (a, b) => a.name.localeCompare(b.name),
  },
  { id: 'workspaces', title: 'Workspaces', width: 'minmax(110px, 1fr)', hideBelow: 420, cell: workspacesText },
  { id: 'policy', title: 'Policy', hideBelow: 720, cell: ({ policy }) => policy ?? <span class="quiet">None</span> },
  { id: 'role', title: 'Console', width: '80px', hideBelow: 820, cell: ({ role }) => ROLES[role] },
  {
    id: 'created',
    title: 'Created',
    width: '100px',
    hideBelow: 620,
    cell: ({ created }) => <Time at={created} />,
    compare: (a, b) => byTime(a.created, b.created),
  },
  {
    id: 'used',
    title: 'Last used',
    width: '100px',
    cell: ({ lastUsed }) => (lastUsed === undefined ? <span class="quiet">Never</span> : <Time at={lastUsed} />),
    compare: (a, b) => byTime(a.lastUsed, b.lastUsed),
  },
  {
    id: 'expires',
    title: 'Expires',
    width: '100px',
    hideBelow: 520,
    cell: ({ expires }) => (expires === undefined ? <span class="quiet">Never</span> : <Time at={expires} />),
    compare: (a, b) => byTime(a.expires, b.expires),
  },
]

const CONSOLE_TEXTS = {
  owner: 'Owner: it may change everything',
  viewer: 'Viewer: it may look, and changes nothing',
  none: 'No access, because it is limited',
} as const

const factsOf = (token: TokenInfo): readonly FactRow[] => [
  ['Id', <code>{token.id}</code>],
  ['Principal', token.principal === token.id ? 'Its own' : token.principal],
  ['Workspaces', workspacesText(token)],
  ['Policy', token.policy ?? 'None: it may use every tool'],
  ['Console', CONSOLE_TEXTS[token.role]],
  ['Created', <Time at={token.created} />],
  ['Last used', token.lastUsed === undefined ? 'Never' : <Time at={token.lastUsed} />],
  ['Expires', token.expires === undefined ? 'Never' : <Time at={token.expires} />],
]

const REVOKE: Revocation<TokenInfo> = {
  action: 'Revoke',
  path: ({ id }) => `admin/tokens/${encodeURIComponent(id)}`,
  question: ({ name }) => `Revoke the token ${name}?`,
  done: ({ name }) => `Revoked the token ${name}`,
  warning: ({ principal }) => (
    <>
      <p>It is refused from then on. Sessions and streams that were opened with it end at once.</p>
      <p>This cannot be undone: its clients need another token.</p>
      {session.value?.principal === principal && (
        <Callout kind="warn">You are signed in with a token of this principal: your session may end, too.</Callout>
      )}
    </>
  ),
}

/** The API tokens: who may call the gateway. */
export const TokensTab = ({ list, search, selected, onSelect, onNew, onChanged }: TokensTabProps) => {
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase()
    return list.tokens.filter(({ name, id, principal }) => `${name} ${id} ${principal}`.toLowerCase().includes(wanted))
  }, [list, search])
  const token = list.tokens.find(({ id }) => id === selected)
  return (
    <>
      {list.unusable !== undefined && <Callout kind="warn">{list.unusable}.</Callout>}
      <RevocableList
        label="Tokens"
        columns={COLUMNS}
        rows={rows}
        chosen={token}
        title={token?.name ?? 'Token'}
        facts={factsOf}
        revocation={REVOKE}
        empty={<NoTokens list={list} onNew={onNew} />}
        onSelect={onSelect}
        onChanged={onChanged}
      />
    </>
  )
}

const NoTokens = ({ list, onNew }: { readonly list: TokenList; readonly onNew: () => void }) => {
  if (list.tokens.length > 0)
    return <Empty icon="search" title="No token matches" text="Clear the search to see all." />
  const text = list.isRequired
    ? 'Every caller needs a token, and there is none: create one for each client.'
    : 'Callers on this machine need none. The first token turns authentication on.'
  return (
    <Empty icon="connect" title="No tokens" text={text} command="dragoman token create NAME">
      <Button icon="plus" disabled={list.unusable !== undefined} title={list.unusable} onClick={onNew}>
        New token
      </Button>
    </Empty>
  )
}
