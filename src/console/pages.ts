import type { ComponentType } from 'preact'
import type { IconName } from './parts/icon.tsx'
import type { PageId, PageProps } from './router.ts'

/** A page of the navigation. */
export interface ConsolePage {
  readonly id: PageId
  readonly title: string
  readonly icon: IconName
  readonly key: string // after `g`
  /** Its code is a file of its own, loaded when it is first shown. */
  readonly load: () => Promise<ComponentType<PageProps>>
}

export const PAGES: readonly ConsolePage[] = [
  {
    id: 'overview',
    title: 'Overview',
    icon: 'overview',
    key: 'o',
    load: async () => (await import('./pages/overview/index.tsx')).OverviewPage,
  },
  {
    id: 'explore',
    title: 'Explore',
    icon: 'explore',
    key: 'e',
    load: async () => (await import('./pages/explore/index.tsx')).ExplorePage,
  },
  {
    id: 'recorder',
    title: 'Recorder',
    icon: 'recorder',
    key: 'r',
    load: async () => (await import('./pages/recorder/index.tsx')).RecorderPage,
  },
  {
    id: 'memory',
    title: 'Memory',
    icon: 'memory',
    key: 'm',
    load: async () => (await import('./pages/memory/index.tsx')).MemoryPage,
  },
  {
    id: 'connect',
    title: 'Connect',
    icon: 'connect',
    key: 'c',
    load: async () => (await import('./pages/connect/index.tsx')).ConnectPage,
  },
  {
    id: 'configuration',
    title: 'Configuration',
    icon: 'configuration',
    key: 's',
    load: async () => (await import('./pages/configuration/index.tsx')).ConfigurationPage,
  },
]
