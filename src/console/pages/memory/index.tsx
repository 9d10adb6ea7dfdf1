import type { ComponentChildren } from 'preact'
import type { MemoryServerInfo, MemoryServerList } from '../../../admin/api/memory.ts'
import type { MemoryStats } from '../../../protocol/memory-views.ts'
import { gatewayUrl } from '../../api.ts'
import { Empty } from '../../parts/empty.tsx'
import { PageFrame } from '../../parts/page-frame.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { navigate, type PageProps } from '../../router.ts'
import { EntityPane } from './entity-pane.tsx'
import { EpisodePane } from './episode-pane.tsx'
import { GraphView } from './graph/graph-view.tsx'
import { type MemoryPlace, memoryHref, memoryQuery, readMemoryPlace } from './memory-address.ts'
import { useMemoryData } from './memory-client.ts'
import { MemoryFailure, MemoryLoading, NoMemoryServer, NothingStored } from './memory-states.tsx'
import { MemoryToolbar } from './memory-toolbar.tsx'
import { SearchView } from './search-view.tsx'
import { StatisticsView } from './statistics-view.tsx'
import { TimelineView } from './timeline-view.tsx'
import { useFollowing } from './use-following.ts'

const LIST = 'admin/memory'

/** The page Memory: what agents have stored, searched and edited. */
export const MemoryPage = ({ path, query }: PageProps) => {
  const place = readMemoryPlace(path, query)
  const { data: list, error } = useMemoryData<MemoryServerList>(LIST)
  const framed = (content: ComponentChildren, toolbar?: ComponentChildren) => (
    <PageFrame title="Memory" toolbar={toolbar}>
      {content}
    </PageFrame>
  )
  if (error !== undefined) return framed(<MemoryFailure message={error} />)
  if (!list) return framed(<MemoryLoading />)
  const server = list.servers.find(({ name }) => name === place.server) ?? list.servers[0]
  if (!server) return framed(<NoMemoryServer />)
  if (server.unavailable !== undefined)
    return framed(
      <Empty
        icon="warning"
        title="The memory is not available here"
        text={`The memory server “${server.name}” ${server.unavailable}.`}
      />,
    )
  const tenant = server.tenants.find(({ id }) => id === (place.tenant ?? server.tenant))
  if (!tenant)
    return framed(
      <Empty
        icon="warning"
        title="There is no such memory"
        text="You may not see it, or nothing was ever stored in it."
      />,
    )
  return <OneMemory key={`${server.name} ${tenant.id}`} {...{ list, server, place }} isEmpty={tenant.isEmpty} />
}

interface OneMemoryProps {
  readonly list: MemoryServerList
  readonly server: MemoryServerInfo
  readonly place: MemoryPlace
  readonly isEmpty: boolean
}

const TABS = [
  { id: 'search', label: 'Search' },
  { id: 'timeline', label: 'Timeline' },
  { id: 'graph', label: 'Graph' },
  { id: 'statistics', label: 'Statistics' },
] as const

type TabId = (typeof TABS)[number]['id']

/** An entity or an episode belongs to the search. */
const tabOf = ({ view }: MemoryPlace): TabId => TABS.find(({ id }) => id === view)?.id ?? 'search'

const OneMemory = ({ list, server, place, isEmpty }: OneMemoryProps) => {
  const path = `admin/memory/stats${memoryQuery({ ...place, group: undefined, asOf: undefined })}`
  const { data: stats, error } = useMemoryData<MemoryStats>(isEmpty ? undefined : path)
  const hasNothing = isEmpty || (stats !== undefined && stats.groups.length === 0)
  useFollowing({
    server: server.name,
    ...(isEmpty ? { path: LIST, known: list } : { path, known: stats }),
    isOn: hasNothing || place.view !== 'graph', // which would be arranged anew under the eyes of its reader
  })
  const toolbar = <MemoryToolbar {...{ list, server, place }} stats={hasNothing ? undefined : stats} />
  return (
    <PageFrame title="Memory" detail={tabTitle(place)} toolbar={toolbar}>
      {error !== undefined && <MemoryFailure message={error} />}
      {hasNothing && <NothingStored url={actionUrl(server, place)} />}
      {!hasNothing && error === undefined && (
        <Tabs
          label="Views of the memory"
          tabs={TABS}
          value={tabOf(place)}
          onChange={view => navigate(memoryHref({ ...place, view, id: undefined }))}
        >
          {stats ? <MemoryContent {...{ place, server, stats }} /> : <MemoryLoading />}
        </Tabs>
      )}
    </PageFrame>
  )
}

const tabTitle = (place: MemoryPlace): string | undefined => TABS.find(({ id }) => id === place.view)?.label

const WORKSPACE = 'workspace:'

/** Where the tools of this memory are called over REST. */
const actionUrl = ({ workspaces, tenant: first }: MemoryServerInfo, { tenant = first }: MemoryPlace): string => {
  const name = tenant?.startsWith(WORKSPACE) ? tenant.slice(WORKSPACE.length) : (workspaces[0] ?? 'default')
  return gatewayUrl(name === 'default' ? 'actions/add_memory' : `actions/${encodeURIComponent(name)}/add_memory`)
}

interface ContentProps {
  readonly place: MemoryPlace
  readonly server: MemoryServerInfo
  readonly stats: MemoryStats
}

const MemoryContent = ({ place, server, stats }: ContentProps) => {
  switch (place.view) {
    case 'search':
      return <SearchView place={place} />
    case 'timeline':
      return <TimelineView place={place} />
    case 'graph':
      return <GraphView place={place} />
    case 'statistics':
      return <StatisticsView place={place} server={server} stats={stats} />
    case 'entity':
      return <EntityPane key={place.id} place={place} />
    case 'episode':
      return <EpisodePane key={place.id} place={place} />
  }
}
