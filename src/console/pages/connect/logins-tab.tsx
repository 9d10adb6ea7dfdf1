import { useMemo, useState } from 'preact/hooks'
import type { LoginList } from '../../../admin/api/logins.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { clock, Time } from '../../parts/quantities.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { LoginDialog } from './login-dialog.tsx'
import { type LoginRow, loginRows, loginVerdict, ownerOf } from './login-rows.ts'
import { LoginStepsView } from './login-steps.tsx'
import { LogoutDialog } from './logout-dialog.tsx'
import { Facts } from './pane-parts.tsx'

export interface LoginsTabProps {
  readonly list: LoginList
  readonly search: string
  readonly selected: string | undefined
  readonly onSelect: (key: string | undefined) => void
  readonly onChanged: () => void
}

const LOCAL = 'local'

const columnsFor = (list: LoginList): readonly TableColumn<LoginRow>[] => [
  {
    id: 'server',
    title: 'Server',
    width: 'minmax(110px, 1fr)',
    cell: ({ server }) => server.name,
    compare: (a, b) => a.server.name.localeCompare(b.server.name),
  },
  {
    id: 'owner',
    title: 'For',
    width: 'minmax(120px, 1.2fr)',
    hideBelow: 420,
    cell: row => ownerOf(row, list) ?? <Dash />,
  },
  { id: 'state', title: 'State', width: '176px', cell: row => <LoginState row={row} /> },
  {
    id: 'issuer',
    title: 'Authorization server',
    width: 'minmax(0, 1.4fr)',
    hideBelow: 640,
    cell: ({ login }) => login?.issuer ?? <Dash />,
  },
  {
    id: 'since',
    title: 'Since',
    width: '110px',
    hideBelow: 560,
    cell: ({ login }) => (login ? <Time at={login.since} /> : <Dash />),
    compare: (a, b) => (a.login?.since ?? 0) - (b.login?.since ?? 0),
  },
]

const Dash = () => <span class="quiet">—</span>
const LoginState = ({ row }: { readonly row: LoginRow }) => <StateDot {...loginVerdict(row, clock.value)} />

/** Who is logged in at which server. */
export const LoginsTab = ({ list, search, selected, onSelect, onChanged }: LoginsTabProps) => {
  const rows = useMemo(() => loginRows(list, search), [list, search])
  const columns = useMemo(() => columnsFor(list), [list])
  const all = useMemo(() => loginRows(list, ''), [list])
  // A login that has just come or gone has another key: its server is still meant.
  const row =
    all.find(({ key }) => key === selected) ?? all.find(({ server }) => server.name === selected?.split(' ')[0])
  const [dialog, setDialog] = useState<'login' | 'logout' | undefined>()
  const close = (): void => setDialog(undefined)
  return (
    <>
      <SplitView
        label={row?.server.name ?? 'Login'}
        storageKey="connect-login"
        defaultWidth={440}
        onClose={() => onSelect(undefined)}
        detail={
          row && (
            <LoginDetail
              row={row}
              list={list}
              onLogin={() => setDialog('login')}
              onLogout={() => setDialog('logout')}
            />
          )
        }
      >
        <Table
          label="Logins"
          columns={columns}
          rows={rows}
          keyOf={({ key }) => key}
          selected={row?.key}
          onSelect={({ key }) => onSelect(key)}
          isMain
          empty={<NoLogins list={list} />}
        />
      </SplitView>
      {row && dialog === 'login' && (
        <LoginDialog
          server={row.server}
          principals={list.principals}
          principal={row.login?.principal ?? LOCAL}
          onChanged={onChanged}
          onClose={close}
        />
      )}
      {row && dialog === 'logout' && <LogoutDialog row={row} list={list} onChanged={onChanged} onClose={close} />}
    </>
  )
}

interface LoginDetailProps {
  readonly row: LoginRow
  readonly list: LoginList
  readonly onLogin: () => void
  readonly onLogout: () => void
}

const LoginDetail = ({ row, list, onLogin, onLogout }: LoginDetailProps) => {
  const { server, login } = row
  return (
    <div class="connect-pane">
      <Facts
        rows={[
          ['State', <LoginState row={row} />],
          ['URL', <code class="connect-break">{server.url}</code>],
          ['For', ownerOf(row, list) ?? 'Each user logs in with an account of their own'],
          ['Authorization', login && <code class="connect-break">{login.issuer}</code>],
          ['Scopes', login && (login.scopes.length === 0 ? 'None named' : login.scopes.join(', '))],
          ['Since', login && <Time at={login.since} />],
          ['Access token', login && <TokenEnd expires={login.expires} canRefresh={login.canRefresh} />],
        ]}
      />
      <p class="connect-pane-actions">
        <Button kind={login ? 'plain' : 'primary'} icon="sign-in" onClick={onLogin}>
          {login ? 'Log in again…' : 'Log in…'}
        </Button>
        {login && (
          <Button kind="danger" icon="sign-out" onClick={onLogout}>
            Log out…
          </Button>
        )}
      </p>
      <LoginStepsView key={server.name} server={server.name} />
    </div>
  )
}

const TokenEnd = ({ expires, canRefresh }: { readonly expires: number | undefined; readonly canRefresh: boolean }) => {
  if (expires === undefined) return <>No end is known</>
  return (
    <>
      {expires > clock.value ? 'Expires ' : 'Expired '}
      <Time at={expires} />
      {canRefresh ? ', renewed by itself' : ', cannot be renewed'}
    </>
  )
}

const NoLogins = ({ list }: { readonly list: LoginList }) =>
  list.servers.length > 0 ? (
    <Empty icon="search" title="No login matches" text="Clear the search to see all." />
  ) : (
    <Empty
      icon="sign-in"
      title="No server uses OAuth"
      text="Servers at a URL without a token in the configuration appear here. Add one:"
      command="dragoman add NAME https://example.com/mcp"
    />
  )
