import { useMemo } from 'preact/hooks'
import type { ConfigObject } from '../../../admin/api/config.ts'
import type { TableColumn } from '../../parts/table.tsx'
import { objectAt, withValue } from './edits.ts'
import { type EntryRow, policyRows } from './entries.ts'
import { FieldList } from './fields.tsx'
import { EntryIssues } from './issue-list.tsx'
import { nameColumn } from './name-column.tsx'
import { NamedTab } from './named-tab.tsx'
import { entrySchema } from './schema.ts'
import { canEdit, change, draft, issues, schema } from './store.ts'

const patternsIn = (entry: ConfigObject, rule: string): string =>
  Object.entries(objectAt(entry, [rule]))
    .flatMap(([kind, patterns]) =>
      Array.isArray(patterns) ? patterns.map(pattern => `${kind} ${String(pattern)}`) : [],
    )
    .join(', ')

const COLUMNS: readonly TableColumn<EntryRow>[] = [
  nameColumn('Policy'),
  {
    id: 'allow',
    title: 'Allows',
    width: 'minmax(0, 2fr)',
    cell: row => patternsIn(row.entry, 'allow') || 'everything',
  },
  { id: 'deny', title: 'Denies', width: 'minmax(0, 2fr)', hideBelow: 520, cell: row => patternsIn(row.entry, 'deny') },
  {
    id: 'readOnly',
    title: 'Read-only',
    width: '90px',
    hideBelow: 620,
    cell: row => (row.entry.readOnly === true ? 'yes' : ''),
  },
]

/** The policies that workspaces and tokens name. */
export const PoliciesTab = ({ selected }: { readonly selected: string | undefined }) => {
  const { root, value } = draft.value
  const rows = useMemo(() => policyRows(root, value), [root, value])
  return (
    <NamedTab
      section="policies"
      noun="policy"
      rows={rows}
      columns={COLUMNS}
      selected={selected}
      first={{ readOnly: true }}
      nameHint="Workspaces name it in “policy”, tokens with --policy."
      empty="A policy says what callers see and use. Add one, and name it in a workspace or for a token."
      detail={row => <PolicyDetail key={row.name} row={row} />}
    />
  )
}

const PolicyDetail = ({ row: { path, entry } }: { readonly row: EntryRow }) => {
  const { properties = {} } = entrySchema(schema.value, 'policies')
  return (
    <form class="config-detail" onSubmit={event => event.preventDefault()}>
      <EntryIssues path={path} />
      <fieldset class="config-plain" disabled={!canEdit.value}>
        <legend class="visually-hidden">Policy</legend>
        <FieldList
          path={path}
          fields={Object.entries(properties)}
          value={entry}
          issues={issues.value}
          onChange={next => change(now => ({ ...now, value: withValue(now.value, path, next) }))}
        />
      </fieldset>
    </form>
  )
}
