import { useState } from 'preact/hooks'
import { isRevision, type Revision, SERVED } from '../../../protocol/revisions.ts'
import { type ClientSettings, DEFAULT_SETTINGS, isSameClient } from '../../mcp/client-settings.ts'
import { IconButton } from '../../parts/button.tsx'
import { Search } from '../../parts/search.tsx'
import { Select } from '../../parts/select.tsx'
import { silenceMs } from './calls.ts'
import { ClientDialog } from './client-dialog.tsx'
import { clientSettings, connection, reloadAll } from './connection.ts'
import { readChoices, targets } from './targets.ts'

export interface ExploreToolbarProps {
  readonly target: string
  readonly server: string | undefined // of the workspace, whose items alone are shown
  readonly revision: Revision
  readonly search: string
  readonly count: { readonly shown: number; readonly total: number } | null
  readonly onTarget: (target: string, server: string | undefined) => void
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
  const { target, server, revision, search, count, onTarget, onRevision, onSettings, onSearch, onLeaveSearch } = props
  const [isChoosing, setChoosing] = useState(false)
  const { isPaged, meta } = clientSettings.value
  const isSame = isSameClient(clientSettings.value, DEFAULT_SETTINGS)
  const isDefault = isSame && !isPaged && Object.keys(meta).length === 0
  const choices = readChoices(targets.value ?? [])
  const chosen = choices.findIndex(each => each.target === target && each.server === server)
  const gone = { value: '-1', label: `${server === undefined ? target : `${target} › ${server}`} (gone)` }
  const options = choices.map(({ label }, at) => ({ value: String(at), label }))
  const choose = (value: string): void => {
    const choice = choices[Number(value)]
    if (choice) onTarget(choice.target, choice.server)
  }
  return (
    <>
      <Select
        label="Workspace or server"
        value={String(chosen)}
        options={chosen < 0 ? [gone, ...options] : options}
        onChange={choose}
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
