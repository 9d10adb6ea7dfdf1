import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ClientList } from '../../../admin/api/clients.ts'
import type { LoginList } from '../../../admin/api/logins.ts'
import type { OAuthClientList, TokenList } from '../../../admin/api/tokens.ts'
import { useShortcuts } from '../../keys.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { PageFrame, SkeletonRows } from '../../parts/page-frame.tsx'
import { Search } from '../../parts/search.tsx'
import { Select } from '../../parts/select.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { hrefTo, navigate, type PageProps } from '../../router.ts'
import { isOwner } from '../../session.ts'
import { ClientsTab } from './clients-tab.tsx'
import { LoginsTab } from './logins-tab.tsx'
import { NewTokenDialog } from './new-token-dialog.tsx'
import { OAuthTab } from './oauth-tab.tsx'
import { NEEDS_OWNER, ownerTitle } from './pane-parts.tsx'
import { TokensTab } from './tokens-tab.tsx'
import { type LoadedAnswer, useAnswer } from './use-answer.ts'

const TAB_IDS = ['clients', 'tokens', 'oauth', 'logins'] as const
type TabId = (typeof TAB_IDS)[number]

/** The page Connect: clients, API tokens, OAuth clients, logins at servers. */
export const ConnectPage = ({ path, query }: PageProps) => {
  const tab: TabId = TAB_IDS.find(id => id === path[0]) ?? 'clients'
  const selected = path[1]
  const workspace = query.get('workspace') ?? 'default'
  const [search, setSearch] = useState('')
  const [isTokenOpen, setTokenOpen] = useState(false)
  const owners = (address: string): string | undefined => (isOwner.value ? address : undefined)
  const clients = useAnswer<ClientList>(`admin/clients?workspace=${encodeURIComponent(workspace)}`, 'tokens')
  const tokens = useAnswer<TokenList>(owners('admin/tokens'), 'tokens')
  const oauth = useAnswer<OAuthClientList>(owners('admin/oauth-clients'))
  const logins = useAnswer<LoginList>(owners('admin/logins/servers'), 'logins')
  useEffect(() => {
    setSearch('')
    oauth.reload() // no event tells of its changes
  }, [tab])

  const go = (next: TabId, id?: string, replace = false): void =>
    navigate(hrefTo('connect', [next, ...(id === undefined ? [] : [id])], queryOf(workspace)), { replace })
  const onSelect = (id: string | undefined): void => go(tab, id, id !== undefined && selected !== undefined)
  const reloadAll = (): void => {
    clients.reload()
    tokens.reload()
  }
  useShortcuts('Connect', isOwner.value ? [{ keys: 'n', label: 'New token', run: () => setTokenOpen(true) }] : [])
  const shared = { search, selected, onSelect }
  const content: Readonly<Record<TabId, () => ComponentChildren>> = {
    clients: () => show(clients, list => <ClientsTab list={list} onChanged={reloadAll} {...shared} />),
    tokens: () =>
      show(tokens, list => (
        <TokensTab list={list} onChanged={reloadAll} onNew={() => setTokenOpen(true)} {...shared} />
      )),
    oauth: () => show(oauth, list => <OAuthTab list={list} onChanged={oauth.reload} {...shared} />),
    logins: () => show(logins, list => <LoginsTab list={list} onChanged={logins.reload} {...shared} />),
  }
  const hasOAuth = oauth.value?.isOn === true || tab === 'oauth'
  /** A server that may ask for a login counts when it has asked, or when a user is logged in. */
  const needed = logins.value?.servers.filter(({ isDemanded, logins: own }) => isDemanded || own.length > 0).length
  return (
    <PageFrame
      title="Connect"
      detail={TITLES[tab]}
      toolbar={
        <>
          {tab === 'clients' && (
            <span class="connect-workspace">
              <span class="quiet" aria-hidden="true">
                Workspace
              </span>
              <Select
                label="Workspace"
                value={workspace}
                options={optionsOf(clients.value?.workspaces ?? [workspace], workspace)}
                onChange={next => navigate(hrefTo('connect', path, queryOf(next)))}
              />
            </span>
          )}
          {tab === 'tokens' && (
            <Button
              kind="primary"
              icon="plus"
              keys="n"
              disabled={!isOwner.value || tokens.value?.unusable !== undefined}
              title={ownerTitle() ?? tokens.value?.unusable}
              onClick={() => setTokenOpen(true)}
            >
              New token
            </Button>
          )}
          <Search label={`Search ${TITLES[tab].toLowerCase()}`} value={search} onInput={setSearch} />
        </>
      }
    >
      <Tabs
        label="What to connect"
        value={tab}
        onChange={next => go(next)}
        tabs={[
          { id: 'clients', label: TITLES.clients },
          { id: 'tokens', label: TITLES.tokens, count: tokens.value?.tokens.length },
          ...(hasOAuth ? [{ id: 'oauth' as const, label: TITLES.oauth, count: oauth.value?.clients.length }] : []),
          { id: 'logins', label: TITLES.logins, count: needed },
        ]}
      >
        {tab !== 'clients' && !isOwner.value ? <OwnersOnly tab={tab} /> : content[tab]()}
      </Tabs>
      {isTokenOpen && <NewTokenDialog onCreated={reloadAll} onClose={() => setTokenOpen(false)} />}
    </PageFrame>
  )
}

const TITLES: Readonly<Record<TabId, string>> = {
  clients: 'Clients',
  tokens: 'Tokens',
  oauth: 'OAuth clients',
  logins: 'Logins',
}

const queryOf = (workspace: string): Readonly<Record<string, string | undefined>> => ({
  workspace: workspace === 'default' ? undefined : workspace,
})

/** The workspace of the address is in the list even if there is none of that name: the page says so. */
const optionsOf = (names: readonly string[], current: string) =>
  (names.includes(current) ? names : [...names, current]).map(name => ({ value: name, label: name }))

const show = <T,>({ value, error, reload }: LoadedAnswer<T>, render: (value: T) => ComponentChildren) => {
  if (error !== undefined)
    return (
      <Empty icon="warning" title="This could not be read" text={error}>
        <Button icon="restart" onClick={reload}>
          Try again
        </Button>
      </Empty>
    )
  return value === undefined ? <SkeletonRows /> : render(value)
}

const OwnersOnly = ({ tab }: { readonly tab: TabId }) => (
  <Empty icon="eye" title={`${TITLES[tab]} are for the owner`} text={NEEDS_OWNER} command="dragoman console" />
)
