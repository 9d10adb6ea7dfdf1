import type { VNode } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { ConfigObject } from '../../../admin/api/config.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Menu } from '../../parts/menu.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { hrefTo, navigate } from '../../router.ts'
import { objectAt, renameKey, withValue } from './edits.ts'
import type { EntryRow } from './entries.ts'
import { NameDialog } from './name-dialog.tsx'
import { canEdit, change, draft } from './store.ts'

export interface NamedTabProps {
  readonly section: 'workspaces' | 'policies'
  readonly noun: string
  readonly rows: readonly EntryRow[]
  readonly columns: readonly TableColumn<EntryRow>[]
  readonly selected: string | undefined
  readonly first: ConfigObject // the value of a new entry
  readonly nameHint: string
  readonly namePattern?: RegExp | undefined
  readonly empty: string // what to do next
  readonly detail: (row: EntryRow) => VNode
}

/** Entries with names: workspaces and policies. They are created, renamed and removed in the draft. */
export const NamedTab = (props: NamedTabProps) => {
  const { section, noun, rows, columns, selected, first, nameHint, namePattern, empty, detail } = props
  const [asked, setAsked] = useState<'new' | 'rename' | undefined>()
  const row = rows.find(({ name }) => name === selected)
  const taken = useMemo(() => rows.map(({ name }) => name), [rows])
  const open = (name?: string): void =>
    navigate(hrefTo('configuration', name === undefined ? [section] : [section, name]))
  const create = (name: string): void => {
    change(now => ({ ...now, value: withValue(now.value, [section, name], first) }))
    setAsked(undefined)
    open(name)
  }
  const rename = (to: string): void => {
    if (row) change(now => ({ ...now, ...renameKey(now, row.path, to) }))
    setAsked(undefined)
    open(to)
  }
  const remove = (): void => {
    if (!row) return
    const isLast = Object.keys(objectAt(draft.value.value, [section])).length === 1
    change(now => ({ ...now, value: withValue(now.value, isLast ? [section] : row.path, undefined) }))
    open()
  }
  const addButton = (
    <Button icon="plus" disabled={!canEdit.value} onClick={() => setAsked('new')}>
      Add {noun}
    </Button>
  )
  return (
    <>
      <SplitView
        label={noun}
        title={row?.name ?? selected}
        storageKey="configuration"
        defaultWidth={520}
        onClose={() => open()}
        actions={
          row &&
          canEdit.value && (
            <Menu
              label={`Actions for ${row.name}`}
              items={[
                { label: 'Rename…', icon: 'edit', onSelect: () => setAsked('rename') },
                { label: 'Remove', icon: 'trash', isDanger: true, onSelect: remove },
              ]}
            />
          )
        }
        detail={
          selected === undefined ? undefined : row ? (
            detail(row)
          ) : (
            <Empty icon="info" title={`No ${noun} "${selected}"`} />
          )
        }
      >
        <div class="config-actions">{addButton}</div>
        <Table
          label={section === 'workspaces' ? 'Workspaces' : 'Policies'}
          isMain
          columns={columns}
          rows={rows}
          keyOf={each => each.name}
          selected={row?.name}
          onSelect={each => open(each.name)}
          empty={<Empty icon="configuration" title={`No ${section} in the file`} text={empty} />}
        />
      </SplitView>
      {asked !== undefined && (
        <NameDialog
          title={asked === 'new' ? `Add ${noun}` : `Rename ${row?.name ?? ''}`}
          label="Name"
          action={asked === 'new' ? 'Add' : 'Rename'}
          hint={nameHint}
          value={asked === 'rename' ? row?.name : undefined}
          taken={taken}
          pattern={namePattern}
          onClose={() => setAsked(undefined)}
          onName={asked === 'new' ? create : rename}
        />
      )}
    </>
  )
}
