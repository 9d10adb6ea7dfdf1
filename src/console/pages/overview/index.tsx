import { useMemo } from 'preact/hooks'
import { feedState } from '../../events.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { Empty } from '../../parts/empty.tsx'
import { PageFrame, SkeletonRows } from '../../parts/page-frame.tsx'
import { Time } from '../../parts/quantities.tsx'
import { Search } from '../../parts/search.tsx'
import { Select } from '../../parts/select.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { hrefTo, navigate, type PageProps } from '../../router.ts'
import { liveStatusAt, useLiveStatus } from './live-status.ts'
import { OverviewDetail } from './overview-detail.tsx'
import { filterServers, overviewRows } from './overview-rows.ts'
import { ServerTable } from './server-table.tsx'
import { TotalsStrip } from './totals-strip.tsx'
import { WorkspaceTable } from './workspace-table.tsx'

type OverviewTab = 'servers' | 'workspaces'

/** The page Overview: servers and workspaces, live. Its address is `overview/<server>?q=&workspace=&tab=`. */
export const OverviewPage = ({ path: [selected], query }: PageProps) => {
  const status = useLiveStatus()
  const text = query.get('q') ?? ''
  const workspace = query.get('workspace') ?? undefined
  const tab: OverviewTab = query.get('tab') === 'workspaces' ? 'workspaces' : 'servers'
  const rows = useMemo(() => (status ? overviewRows(status) : []), [status])
  const shown = useMemo(() => filterServers(rows, { text, workspace }), [rows, text, workspace])
  const row = rows.find(({ name }) => name === selected)

  const go = (server: string | undefined, change: Readonly<Record<string, string | undefined>> = {}): void => {
    const next = { q: text || undefined, workspace, tab: tab === 'servers' ? undefined : tab, ...change }
    navigate(hrefTo('overview', server === undefined ? [] : [server], next), { replace: true })
  }

  const toolbar = (
    <>
      <Select
        label="Workspace"
        value={workspace ?? ''}
        options={[
          { value: '', label: 'All workspaces' },
          ...(status?.workspaces ?? []).map(({ name }) => ({ value: name, label: name })),
        ]}
        onChange={value => go(selected, { workspace: value || undefined, tab: undefined })}
      />
      <Search
        label="Search servers"
        value={text}
        onInput={value => go(selected, { q: value || undefined, tab: undefined })}
        count={{ shown: shown.length, total: rows.length }}
      />
    </>
  )
  if (!status)
    return (
      <PageFrame title="Overview" toolbar={toolbar}>
        <SkeletonRows />
      </PageFrame>
    )
  return (
    <PageFrame title="Overview" detail={selected} toolbar={toolbar}>
      <TotalsStrip status={status} />
      {feedState.value === 'broken' && (
        <Callout kind="warn">
          The gateway does not answer. This is how it was <Time at={liveStatusAt.value} />; the page connects again by
          itself.
        </Callout>
      )}
      <SplitView
        label={selected === undefined ? 'Server' : `Server ${selected}`}
        title={
          selected !== undefined && (
            <>
              {row && <StateDot state={row.dot} label={row.word} isBare />} {selected}
            </>
          )
        }
        detail={
          selected === undefined ? undefined : row ? (
            <OverviewDetail key={selected} row={row} />
          ) : (
            <GoneServer name={selected} onClose={() => go(undefined)} />
          )
        }
        onClose={() => go(undefined)}
        storageKey="overview"
        defaultWidth={460}
      >
        <Tabs
          label="What is shown"
          tabs={[
            { id: 'servers', label: 'Servers', count: rows.length },
            { id: 'workspaces', label: 'Workspaces', count: status.workspaces.length },
          ]}
          value={tab}
          onChange={id => go(selected, { tab: id === 'workspaces' ? id : undefined })}
        >
          {tab === 'servers' ? (
            <ServerTable
              rows={shown}
              selected={selected}
              isFiltered={text !== '' || workspace !== undefined}
              onSelect={({ name }) => go(name)}
            />
          ) : (
            <WorkspaceTable
              workspaces={status.workspaces}
              selected={workspace}
              onSelect={({ name }) => go(undefined, { workspace: name, tab: undefined })}
            />
          )}
        </Tabs>
      </SplitView>
    </PageFrame>
  )
}

const GoneServer = ({ name, onClose }: { readonly name: string; readonly onClose: () => void }) => (
  <Empty
    icon="warning"
    title={`There is no server ${name}`}
    text="It was removed from the configuration, or renamed. Its log is kept while the gateway runs."
    command={`dragoman logs ${name}`}
  >
    <Button onClick={onClose}>Close</Button>
  </Empty>
)
