import { useEffect, useState } from 'preact/hooks'
import type { GatewayStatus } from '../../../protocol/status.ts'
import { onFeed } from '../../events.ts'
import { useShortcuts } from '../../keys.ts'
import { Button } from '../../parts/button.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { PageFrame, SkeletonRows } from '../../parts/page-frame.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { hrefTo, navigate, type PageProps } from '../../router.ts'
import { ConflictDialog } from './conflict-dialog.tsx'
import { DraftBar } from './draft-bar.tsx'
import { objectAt } from './edits.ts'
import { FileTab } from './file-tab.tsx'
import { Notices } from './notices.tsx'
import { PoliciesTab } from './policies-tab.tsx'
import { ReviewDialog } from './review-dialog.tsx'
import { ServersTab } from './servers-tab.tsx'
import { SettingsTab } from './settings-tab.tsx'
import { draft, file, isDirty, loadError, loadSchema, loadStatus, refresh, status } from './store.ts'
import { WorkspacesTab } from './workspaces-tab.tsx'

const TABS = ['servers', 'workspaces', 'policies', 'settings', 'file'] as const
type TabId = (typeof TABS)[number]

/** The page Configuration: the file in use, and everything in it, to look at and to change. */
export const ConfigurationPage = ({ path }: PageProps) => {
  const [shown, setShown] = useState<'review' | 'conflict' | undefined>()
  useEffect(() => {
    const reload = (): void => {
      void refresh()
      void loadStatus()
    }
    const whenSeen = (): void => (document.hidden ? undefined : reload())
    const warn = (event: Event): void => (isDirty.peek() ? event.preventDefault() : undefined)
    reload()
    void loadSchema()
    document.addEventListener('visibilitychange', whenSeen)
    addEventListener('beforeunload', warn)
    const ends = [
      onFeed('config', reload),
      onFeed('status', data => {
        status.value = data as GatewayStatus
      }),
    ]
    return () => {
      document.removeEventListener('visibilitychange', whenSeen)
      removeEventListener('beforeunload', warn)
      for (const end of ends) end()
    }
  }, [])
  useShortcuts('Configuration', [
    {
      keys: 'mod+s',
      label: 'Review and save the changes',
      isGlobal: true,
      run: () => isDirty.value && setShown('review'),
    },
  ])

  const [given, ...rest] = path
  const tab = TABS.find(id => id === given) ?? 'servers'
  const selected = rest.length > 0 ? rest.join('/') : undefined
  const { value } = draft.value
  const place = file.value?.file ?? file.value?.suggestedFile
  const countOf = (...sections: readonly string[]): number =>
    sections.reduce((sum, section) => sum + Object.keys(objectAt(value, [section])).length, 0)
  return (
    <PageFrame
      title="Configuration"
      detail={selected}
      toolbar={
        place !== undefined && (
          <span class="config-place">
            {file.value?.file === undefined && <span class="quiet">no file yet:</span>}
            <code class="truncate" title={place}>
              {place}
            </code>
            <CopyButton text={place} label="Copy the path" />
          </span>
        )
      }
    >
      {file.value === undefined ? (
        <Loading />
      ) : (
        <>
          <Notices onCompare={() => setShown('conflict')} />
          <Tabs<TabId>
            label="Parts of the configuration"
            value={tab}
            onChange={id => navigate(hrefTo('configuration', [id]))}
            tabs={[
              { id: 'servers', label: 'Servers', count: countOf('mcpServers', 'servers') },
              { id: 'workspaces', label: 'Workspaces', count: countOf('workspaces') },
              { id: 'policies', label: 'Policies', count: countOf('policies') },
              { id: 'settings', label: 'Settings' },
              { id: 'file', label: 'File' },
            ]}
          >
            {tab === 'servers' && <ServersTab selected={selected} />}
            {tab === 'workspaces' && <WorkspacesTab selected={selected} />}
            {tab === 'policies' && <PoliciesTab selected={selected} />}
            {tab === 'settings' && <SettingsTab selected={selected} />}
            {tab === 'file' && <FileTab />}
          </Tabs>
          <DraftBar onReview={() => setShown('review')} />
        </>
      )}
      {shown === 'review' && (
        <ReviewDialog onClose={() => setShown(undefined)} onConflict={() => setShown('conflict')} />
      )}
      {shown === 'conflict' && <ConflictDialog onClose={() => setShown(undefined)} />}
    </PageFrame>
  )
}

const Loading = () =>
  loadError.value === undefined ? (
    <SkeletonRows />
  ) : (
    <Empty icon="warning" title="The configuration was not loaded" text={loadError.value}>
      <Button onClick={() => void refresh()}>Try again</Button>
    </Empty>
  )
