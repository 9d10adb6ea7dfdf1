import { useMemo } from 'preact/hooks'
import type { ConfigObject } from '../../../admin/api/config.ts'
import type { TableColumn } from '../../parts/table.tsx'
import { objectAt, withValue } from './edits.ts'
import { type EntryRow, membersOf, serverRows, workspaceRows } from './entries.ts'
import { FieldList } from './fields.tsx'
import { EntryIssues } from './issue-list.tsx'
import { MemberPicker } from './member-picker.tsx'
import { nameColumn } from './name-column.tsx'
import { NamedTab } from './named-tab.tsx'
import { entrySchema } from './schema.ts'
import { canEdit, change, draft, issues, schema } from './store.ts'
import { ToolPicker } from './tool-picker.tsx'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

const membersText = (entry: ConfigObject): string => {
  const members = membersOf(entry)
  return members === '*' ? 'all that are not disabled' : members.join(', ')
}

const pickable = (members: '*' | readonly string[], servers: readonly string[]): readonly string[] =>
  members === '*' ? servers : members

const policyText = ({ policy }: ConfigObject): string =>
  typeof policy === 'string' ? policy : policy === undefined ? '' : 'its own'

const COLUMNS: readonly TableColumn<EntryRow>[] = [
  nameColumn('Workspace'),
  { id: 'servers', title: 'Servers', width: 'minmax(0, 3fr)', cell: row => membersText(row.entry) },
  { id: 'names', title: 'Names', width: '90px', hideBelow: 520, cell: row => String(row.entry.names ?? '') },
  { id: 'policy', title: 'Policy', width: '110px', hideBelow: 620, cell: row => policyText(row.entry) },
]

/** The workspaces of the file: their members, the style of names and the policy. */
export const WorkspacesTab = ({ selected }: { readonly selected: string | undefined }) => {
  const { root, value } = draft.value
  const rows = useMemo(() => workspaceRows(root, value), [root, value])
  return (
    <NamedTab
      section="workspaces"
      noun="workspace"
      rows={rows}
      columns={COLUMNS}
      selected={selected}
      first={{ servers: '*' }}
      namePattern={NAME}
      nameHint="Part of its URL: letters, digits, “.”, “_” and “-”, starting with a letter or digit, at most 64."
      empty="Without any, /mcp has every server that is not disabled, and each server has a workspace of its own name. Add one to choose yourself; it then counts alone."
      detail={row => <WorkspaceDetail key={row.name} row={row} />}
    />
  )
}

const WorkspaceDetail = ({ row: { path, entry } }: { readonly row: EntryRow }) => {
  const { value } = draft.value
  const { properties = {} } = entrySchema(schema.value, 'workspaces')
  const set = (next: ConfigObject): void => change(now => ({ ...now, value: withValue(now.value, path, next) }))
  const servers = useMemo(() => serverRows(value, value, []).map(({ name }) => name), [value])
  const policies = Object.keys(objectAt(value, ['policies']))
  const { servers: _, policy, ...others } = properties
  const fields = [
    ...Object.entries(others),
    // The name of a policy is a choice; one that is written here is edited as JSON.
    [
      'policy',
      typeof entry.policy === 'object'
        ? (policy ?? {})
        : { type: 'string', enum: policies, description: policy?.description },
    ] as const,
  ]
  return (
    <form class="config-detail" onSubmit={event => event.preventDefault()}>
      <EntryIssues path={path} />
      <fieldset class="config-plain" disabled={!canEdit.value}>
        <legend class="visually-hidden">Workspace</legend>
        <MemberPicker
          members={membersOf(entry)}
          servers={servers}
          error={
            issues.value.find(issue => issue.path.slice(0, 3).join('\n') === [...path, 'servers'].join('\n'))?.message
          }
          onChange={members => set({ ...entry, servers: members })}
        />
        <ToolPicker entry={entry} servers={pickable(membersOf(entry), servers)} onChange={set} />
        <FieldList path={path} fields={fields} value={entry} issues={issues.value} onChange={set} />
      </fieldset>
    </form>
  )
}
