import { useState } from 'preact/hooks'
import { isRevision, type Revision, SERVED } from '../../../protocol/revisions.ts'
import { type ClientSettings, DEFAULT_SETTINGS, isSameClient } from '../../mcp/client-settings.ts'
import { IconButton } from '../../parts/button.tsx'
import { Search } from '../../parts/search.tsx'
import { Select } from '../../parts/select.tsx'
import { silenceMs } from './calls.ts'
import { ClientDialog } from './client-dialog.tsx'
import { clientSettings, connection, reloadAll } from './connection.ts'
import { targets } from './targets.ts'

export interface ExploreToolbarProps {
  readonly target: string
  readonly revision: Revision
  readonly search: string
  readonly count: { readonly shown: number; readonly total: number } | undefined
  readonly onTarget: (target: string) => void
  readonly onRevision: (revision: Revision) => void
  readonly onSettings: (settings: ClientSettings) => void
  readonly onSearch: (search: string) => void
  readonly onLeaveSearch: () => void
}

const LIMITS = [
  { value: '10000', label: 'Limit 10 s' },
  { value: '60000', label: 'Limit 1 min' },
  { value: '300000', label: 'Limit 5 min' },
  { value: '0', label: 'No limit' },
] as const

/** Chooses the target, the revision and the time limit; searches the list. */
export const ExploreToolbar = (props: ExploreToolbarProps) => {
  const { target, revision, search, count, onTarget, onRevision, onSettings, onSearch, onLeaveSearch } = props
  const [isChoosing, setChoosing] = useState(false)
  const isDefault = isSameClient(clientSettings.value, DEFAULT_SETTINGS) && !clientSettings.value.isPaged
  const known = targets.value ?? []
  const options = known.map(({ name, isServer, servers }) => ({
    value: name,
    label: isServer ? name : `${name} (${servers.length === 1 ? '1 server' : `${servers.length} servers`})`,
  }))
  const isUnknown = !known.some(({ name }) => name === target)
  return (
    <>
      <Select
        label="Workspace or server"
        value={target}
        options={isUnknown ? [{ value: target, label: `${target} (gone)` }, ...options] : options}
        onChange={onTarget}
      />
      <Select
        label="Revision of the client"
        value={revision}
        options={SERVED.map(value => ({ value, label: value }))}
        onChange={value => isRevision(value) && onRevision(value)}
      />
      <Select
        label="How long a call may be silent"
        value={String(silenceMs.value)}
        options={LIMITS}
        onChange={value => {
          silenceMs.value = Number(value)
        }}
      />
      <IconButton
        icon="configuration"
        label={`What the client declares${isDefault ? '' : ' (changed)'}`}
        isPressed={isDefault ? undefined : true}
        onClick={() => setChoosing(true)}
      />
      <IconButton
        icon="restart"
        label="Read the lists again"
        disabled={connection.value?.state === 'connecting'}
        onClick={reloadAll}
      />
      <Search label="Search" value={search} onInput={onSearch} count={count} onLeave={onLeaveSearch} />
      {isChoosing && (
        <ClientDialog settings={clientSettings.value} onChange={onSettings} onClose={() => setChoosing(false)} />
      )}
    </>
  )
}
