import type { ComponentType } from 'preact'
import type { PageId, PageProps } from './router.ts'

/** A page of the navigation. */
export interface ConsolePage {
  readonly id: PageId // also the name of its icon
  readonly title: string
  readonly key: string // after `g`
  /** Its code is a file of its own, loaded when it is first shown. */
  readonly load: () => Promise<ComponentType<PageProps>>
}

const page = (id: PageId, title: string, key: string, load: ConsolePage['load']): ConsolePage => ({
  id,
  title,
  key,
  load,
})

export const PAGES: readonly ConsolePage[] = [
  page('overview', 'Overview', 'o', async () => (await import('./pages/overview/index.tsx')).OverviewPage),
  page('explore', 'Explore', 'e', async () => (await import('./pages/explore/index.tsx')).ExplorePage),
  page('recorder', 'Recorder', 'r', async () => (await import('./pages/recorder/index.tsx')).RecorderPage),
  page('memory', 'Memory', 'm', async () => (await import('./pages/memory/index.tsx')).MemoryPage),
  page('connect', 'Connect', 'c', async () => (await import('./pages/connect/index.tsx')).ConnectPage),
  page(
    'configuration',
    'Configuration',
    's',
    async () => (await import('./pages/configuration/index.tsx')).ConfigurationPage,
  ),
]
