import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { isRevision, MODERN, type Revision } from '../../../protocol/revisions.ts'
import type { ClientSettings } from '../../mcp/client-settings.ts'
import { Empty } from '../../parts/empty.tsx'
import { PageFrame, SkeletonRows } from '../../parts/page-frame.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { hrefTo, navigate, type PageProps } from '../../router.ts'
import { askOutside, calls, isAnyRunning, latestCall } from './calls.ts'
import { CallDetail, CallsTable } from './calls-view.tsx'
import { clientSettings, connection, connectTo, leaveConnection, lists, reloadAll } from './connection.ts'
import { ExploreNotices } from './explore-notices.tsx'
import { ExploreToolbar } from './explore-toolbar.tsx'
import { ExploreDetail } from './item-detail.tsx'
import { ExploreList } from './item-list.tsx'
import { type ExploreKind, type ExploreView, itemsOf, KIND_INFO, KINDS, searchItems, VIEWS } from './kinds.ts'
import { ServerView } from './server-view.tsx'
import { targets, targetsError, useTargets } from './targets.ts'

const QUICK_MS = 800 // a selection that follows so soon replaces the last one in the history

/** The page Explore: an MCP client of the gateway. Its address is `explore/<target>/<kind>/<name>?revision=&server=`. */
export const ExplorePage = ({ path, query }: PageProps) => {
  useTargets()
  const [first] = targets.value ?? []
  const target = path[0] ?? first?.name
  if (target === undefined)
    return (
      <PageFrame title="Explore">
        {targetsError.value !== undefined ? (
          <Empty icon="warning" title="The targets could not be read" text={targetsError.value} />
        ) : targets.value === undefined ? (
          <SkeletonRows />
        ) : (
          <Empty
            icon="explore"
            title="No servers to explore"
            text="Add a server, then call its tools here."
            command="dragoman add demo --builtin demo"
          />
        )}
      </PageFrame>
    )
  const given = query.get('revision') ?? undefined
  return (
    <ExploreTargetPage
      target={target}
      view={VIEWS.find(each => each === path[1]) ?? 'tools'}
      name={path[2]}
      server={query.get('server') ?? undefined}
      revision={isRevision(given) ? given : MODERN}
    />
  )
}

interface TargetPageProps {
  readonly target: string
  readonly view: ExploreView
  readonly name: string | undefined
  readonly server: string | undefined // only its items are shown
  readonly revision: Revision
}

const isKind = (view: ExploreView): view is ExploreKind => KINDS.some(kind => kind === view)

const ExploreTargetPage = ({ target, view, name, server, revision }: TargetPageProps) => {
  const [search, setSearch] = useState('')
  const selectedAt = useRef(0)
  const page = useRef<HTMLDivElement>(null)
  const connect = (): void => connectTo(target, revision, question => askOutside(target, revision, question))
  useEffect(connect, [target, revision])
  const changeSettings = (next: ClientSettings): void => {
    const isReread = next.isPaged !== clientSettings.peek().isPaged
    clientSettings.value = next
    connect()
    if (isReread && connection.peek()?.state === 'ready') reloadAll()
  }
  useEffect(() => () => leaveConnection(isAnyRunning), [])

  const queryOf = (next: { readonly revision: Revision; readonly server: string | undefined }) => ({
    ...(next.revision !== MODERN && { revision: next.revision }),
    ...(next.server !== undefined && { server: next.server }),
  })
  const query = queryOf({ revision, server })
  const go = (next: readonly string[], options?: { readonly replace: boolean }): void =>
    navigate(hrefTo('explore', next, query), options)
  const select = (next: string): void => {
    const now = Date.now()
    go([target, view, next], { replace: name !== undefined && now - selectedAt.current < QUICK_MS })
    selectedAt.current = now
  }
  const list = isKind(view) ? lists.value[view] : undefined
  const listed = useMemo(() => (list ? itemsOf(list.items, server) : []), [list, server])
  const shown = useMemo(() => searchItems(listed, search), [listed, search])
  const record = view === 'calls' ? calls.value.find(({ id }) => String(id) === name) : undefined
  const shownCall = record ?? (isKind(view) && name !== undefined ? latestCall(target, view, name) : undefined)
  /** The first field of the details, or the button that sends. */
  const focusDetail = (): void => {
    requestAnimationFrame(() => {
      const detail = page.current?.querySelector('.item-detail')
      const first = detail?.querySelector<HTMLElement>('.arguments :is(input, textarea, select)')
      ;(first ?? detail?.querySelector<HTMLElement>('.call-actions button'))?.focus()
    })
  }

  return (
    <PageFrame
      title="Explore"
      detail={name ?? target}
      toolbar={
        <ExploreToolbar
          target={target}
          server={server}
          revision={revision}
          search={search}
          count={listed.length > 0 ? { shown: shown.length, total: listed.length } : null}
          onTarget={(next, only) =>
            navigate(
              hrefTo(
                'explore',
                isKind(view) || view === 'server' ? [next, view] : [next],
                queryOf({ revision, server: only }),
              ),
            )
          }
          onRevision={next =>
            navigate(
              hrefTo(
                'explore',
                [target, view, ...(name === undefined ? [] : [name])],
                queryOf({ revision: next, server }),
              ),
            )
          }
          onSettings={changeSettings}
          onSearch={setSearch}
          onLeaveSearch={() => page.current?.querySelector<HTMLElement>('.list')?.focus()}
        />
      }
    >
      <ExploreNotices target={target} shownCall={shownCall?.id} />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: Esc leaves the field that has the focus */}
      <div ref={page} class="explore" onKeyDown={leaveField}>
        <Tabs
          label="What the target offers"
          value={view}
          onChange={next => go([target, next])}
          tabs={[
            ...KINDS.map(kind => ({
              id: kind,
              label: KIND_INFO[kind].title,
              count: itemsOf(lists.value[kind].items, server).length,
            })),
            { id: 'server' as const, label: 'Server' },
            { id: 'calls' as const, label: 'Calls', count: calls.value.length },
          ]}
        >
          {view === 'server' ? (
            <ServerView />
          ) : (
            <SplitView
              label={isKind(view) ? KIND_INFO[view].noun : 'Call'}
              title={<span class="mono">{record?.subject ?? name}</span>}
              storageKey="explore"
              defaultWidth={720}
              onClose={() => go([target, view])}
              detail={
                name === undefined ? undefined : isKind(view) ? (
                  <ExploreDetail kind={view} name={name} target={target} />
                ) : record ? (
                  <CallDetail record={record} />
                ) : (
                  <Empty
                    icon="clock"
                    title="This call is no longer kept"
                    text="The page keeps its calls until it is closed."
                  />
                )
              }
            >
              {isKind(view) && list ? (
                <ExploreList
                  kind={view}
                  list={list}
                  shown={shown}
                  search={search}
                  selected={name}
                  onSelect={({ key }) => select(key)}
                  onOpen={focusDetail}
                />
              ) : (
                <CallsTable selected={name} onSelect={select} />
              )}
            </SplitView>
          )}
        </Tabs>
      </div>
    </PageFrame>
  )
}

/** The key does nothing else: it must not cancel a call whose question is being answered. */
const leaveField = (event: KeyboardEvent): void => {
  const { key, target } = event
  if (
    key !== 'Escape' ||
    !(target instanceof HTMLElement) ||
    !target.matches('.item-detail :is(input, textarea, select)')
  )
    return
  event.preventDefault()
  target.blur()
  target.closest<HTMLElement>('.split-body')?.focus()
}
