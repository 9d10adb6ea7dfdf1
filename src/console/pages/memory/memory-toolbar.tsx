import { useState } from 'preact/hooks'
import type { MemoryServerInfo, MemoryServerList } from '../../../admin/api/memory.ts'
import type { MemoryStats } from '../../../protocol/memory-views.ts'
import { Button, IconButton } from '../../parts/button.tsx'
import { Menu } from '../../parts/menu.tsx'
import { Search } from '../../parts/search.tsx'
import { Select } from '../../parts/select.tsx'
import { navigate } from '../../router.ts'
import { isOwner } from '../../session.ts'
import { AddMemory } from './add-memory.tsx'
import { ExportDialog } from './export-dialog.tsx'
import { ForgetDialog } from './forget-dialog.tsx'
import { ImportDialog } from './import-dialog.tsx'
import { type MemoryPlace, memoryHref } from './memory-address.ts'

export interface MemoryToolbarProps {
  readonly list: MemoryServerList
  readonly server: MemoryServerInfo
  readonly place: MemoryPlace
  readonly stats: MemoryStats | undefined // undefined: nothing is stored yet
}

/** Which memory and which part of it is shown; what can be done with all of it. */
export const MemoryToolbar = ({ list, server, place, stats }: MemoryToolbarProps) => {
  const go = (change: Partial<MemoryPlace>): void => navigate(memoryHref({ ...place, ...change }))
  const groups = stats?.groups.map(({ group }) => group) ?? []
  const search = (query: string): void => {
    // The graph highlights what is searched; the other views lead to the results.
    const view = place.view === 'graph' || query === '' ? place.view : 'search'
    navigate(memoryHref({ ...place, view, id: view === place.view ? place.id : undefined, query }), {
      replace: view === place.view,
    })
  }
  const focusFirst = (): void =>
    document.querySelector<HTMLElement>('.memory-result, .page-body [role=listbox]')?.focus()
  return (
    <>
      {list.servers.length > 1 && (
        <Select
          label="Memory server"
          value={server.name}
          options={list.servers.map(({ name }) => ({ value: name, label: name }))}
          onChange={name => go({ server: name, tenant: undefined, group: undefined, view: 'search', id: undefined })}
        />
      )}
      {server.tenants.length > 1 && (
        <Select
          label="Whose memory"
          value={place.tenant ?? server.tenant ?? ''}
          options={server.tenants.map(({ id, label, isEmpty }) => ({
            value: id,
            label: isEmpty ? `${label} (empty)` : label,
          }))}
          onChange={tenant =>
            go({ tenant, group: undefined, view: place.id === undefined ? place.view : 'search', id: undefined })
          }
        />
      )}
      {groups.length > 1 && (
        <Select
          label="Group"
          value={place.group ?? ''}
          options={[{ value: '', label: 'All groups' }, ...groups.map(group => ({ value: group, label: group }))]}
          onChange={group => go({ group: group || undefined })}
        />
      )}
      {stats && <AsOf value={place.asOf} onChange={asOf => go({ asOf })} />}
      {stats && <Search label="Search the memory" value={place.query} onInput={search} onLeave={focusFirst} />}
      <MemoryActions {...{ list, server, place, stats }} />
    </>
  )
}

interface AsOfProps {
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}

const AsOf = ({ value, onChange }: AsOfProps) => (
  <span class="as-of">
    <label>
      As of
      <input
        type="date"
        title="What was true on this day"
        value={value ?? ''}
        onChange={({ currentTarget }) => onChange(currentTarget.value || undefined)}
      />
    </label>
    <IconButton
      icon="close"
      label="Show what is true now"
      disabled={value === undefined}
      onClick={() => onChange(undefined)}
    />
  </span>
)

/** Buttons for the whole memory, with their dialogs. */
const MemoryActions = ({ list, server, place, stats }: MemoryToolbarProps) => {
  const [open, setOpen] = useState<'add' | 'import' | 'export' | 'forget' | undefined>()
  const close = (): void => setOpen(undefined)
  const readOnly = isOwner.value
    ? undefined
    : 'Only the owner may change the memory: open the link that “dragoman console” prints'
  const items = [
    { label: 'Import…', icon: 'upload', disabled: !isOwner.value, onSelect: () => setOpen('import') },
    { label: 'Export…', icon: 'download', disabled: !stats, onSelect: () => setOpen('export') },
    {
      label: 'Forget…',
      icon: 'trash',
      isDanger: true,
      disabled: !isOwner.value || !stats,
      onSelect: () => setOpen('forget'),
    },
  ] as const
  return (
    <>
      <Button kind="primary" icon="plus" disabled={!isOwner.value} title={readOnly} onClick={() => setOpen('add')}>
        Add
      </Button>
      <Menu label="Import, export, forget" items={items} />
      {open === 'add' && <AddMemory place={place} defaultGroup={server.group} onClose={close} />}
      {open === 'import' && (
        <ImportDialog place={place} formats={list.formats} mostBytes={list.mostImportBytes} onClose={close} />
      )}
      {open === 'export' && stats && <ExportDialog place={place} groups={stats.groups} onClose={close} />}
      {open === 'forget' && <ForgetDialog place={place} onClose={close} />}
    </>
  )
}
