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
import { filterTasks, useLiveTasks } from './live-tasks.ts'
import { OverviewDetail } from './overview-detail.tsx'
import { filterServers, overviewRows } from './overview-rows.ts'
import { ServerTable } from './server-table.tsx'
import { TaskDetail } from './task-detail.tsx'
import { TaskTable } from './task-table.tsx'
import { TotalsStrip } from './totals-strip.tsx'
import { WorkspaceTable } from './workspace-table.tsx'

const TABS = ['servers', 'workspaces', 'tasks'] as const
type OverviewTab = (typeof TABS)[number]

/** The page Overview: servers, workspaces and tasks, live. Its address is `overview/<server or task>?q=&workspace=&tab=`. */
export const OverviewPage = ({ path: [selected], query }: PageProps) => {
  const status = useLiveStatus()
  const text = query.get('q') ?? ''
  const workspace = query.get('workspace') ?? undefined
  const tab: OverviewTab = TABS.find(id => id === query.get('tab')) ?? 'servers'
  const isTasks = tab === 'tasks'
  const rows = useMemo(() => (status ? overviewRows(status) : []), [status])
  const shown = useMemo(() => filterServers(rows, { text, workspace }), [rows, text, workspace])
  const row = rows.find(({ name }) => name === selected)
  const { value: list, error } = useLiveTasks(isTasks)
  const tasks = useMemo(() => filterTasks(list?.tasks ?? [], { text, workspace }), [list, text, workspace])
  const isFiltered = text !== '' || workspace !== undefined

  const toolOf = (id: string): string => list?.tasks.find(task => task.id === id)?.tool ?? id.slice(0, 12)
  const go = (item: string | undefined, change: Readonly<Record<string, string | undefined>> = {}): void => {
    const next = { q: text || undefined, workspace, tab: tab === 'servers' ? undefined : tab, ...change }
    navigate(hrefTo('overview', item === undefined ? [] : [item], next), { replace: true })
  }

  const listTab = { tab: isTasks ? 'tasks' : undefined } // workspaces are neither searched nor filtered

  const toolbar = (
    <>
      <Select
        label="Workspace"
        value={workspace ?? ''}
        options={[
          { value: '', label: 'All workspaces' },
          ...(status?.workspaces ?? []).map(({ name }) => ({ value: name, label: name })),
        ]}
        onChange={value => go(selected, { workspace: value || undefined, ...listTab })}
      />
      <Search
        label={isTasks ? 'Search tasks' : 'Search servers'}
        value={text}
        onInput={value => go(selected, { q: value || undefined, ...listTab })}
        count={
          isTasks
            ? list
              ? { shown: tasks.length, total: list.tasks.length }
              : null
            : status
              ? { shown: shown.length, total: rows.length }
              : null
        }
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
        label={selected === undefined ? 'Details' : isTasks ? `Task ${toolOf(selected)}` : `Server ${selected}`}
        title={
          selected !== undefined && (
            <>
              {!isTasks && row && <StateDot state={row.dot} label={row.word} isBare />}{' '}
              {isTasks ? toolOf(selected) : selected}
            </>
          )
        }
        detail={
          selected === undefined ? undefined : isTasks ? (
            <TaskDetail key={selected} id={selected} />
          ) : row ? (
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
            { id: 'tasks', label: 'Tasks', count: list?.tasks.length ?? (status.tasks || undefined) },
          ]}
          value={tab}
          onChange={id =>
            go(isTasks || id === 'tasks' ? undefined : selected, { tab: id === 'servers' ? undefined : id })
          }
        >
          {isTasks && error !== undefined && <Callout kind="error">{error}.</Callout>}
          {isTasks ? (
            <TaskTable
              rows={tasks}
              selected={selected}
              isFiltered={isFiltered && (list?.tasks.length ?? 0) > 0}
              onSelect={({ id }) => go(id)}
            />
          ) : tab === 'servers' ? (
            <ServerTable rows={shown} selected={selected} isFiltered={isFiltered} onSelect={({ name }) => go(name)} />
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
    title={`There is no server “${name}”`}
    text="It was removed from the configuration, or renamed. Its log is kept while the gateway runs."
    command={`dragoman logs ${name}`}
  >
    <Button onClick={onClose}>Close</Button>
  </Empty>
)
