import type { ConfigObject } from '../../../admin/api/config.ts'
import { Badge } from '../../parts/badge.tsx'
import { withValue } from './edits.ts'
import { type ServerRow, serverKeys } from './entries.ts'
import { FieldList } from './fields.tsx'
import { EntryIssues } from './issue-list.tsx'
import { entrySchema } from './schema.ts'
import { canEdit, change, issues, schema } from './store.ts'
import { TryServer } from './try-server.tsx'

/** The form of one server: what it is, then its options. */
export const ServerDetail = ({ row }: { readonly row: ServerRow }) => {
  const { path, entry, kind } = row
  const { properties = {} } = entrySchema(schema.value, 'mcpServers')
  const { main, options } = serverKeys(kind, Object.keys(properties), entry)
  const fieldsOf = (keys: readonly string[]) => keys.map(key => [key, properties[key] ?? {}] as const)
  const set = (next: ConfigObject): void => change(now => ({ ...now, value: withValue(now.value, path, next) }))
  const isSet = options.some(key => entry[key] !== undefined)
  const foreign = Object.keys(entry).filter(key => !(key in properties))
  return (
    <form class="config-detail" onSubmit={event => event.preventDefault()}>
      <EntryIssues path={path} />
      <TryServer row={row} />
      <fieldset class="config-plain" disabled={!canEdit.value}>
        <legend class="visually-hidden">{row.name}</legend>
        <FieldList path={path} fields={fieldsOf(main)} value={entry} issues={issues.value} onChange={set} />
        <details class="config-options" open={isSet}>
          <summary>
            <strong>Options</strong>{' '}
            <span class="quiet">{options.filter(key => entry[key] !== undefined).join(', ')}</span>
          </summary>
          <FieldList path={path} fields={fieldsOf(options)} value={entry} issues={issues.value} onChange={set} />
        </details>
      </fieldset>
      {foreign.length > 0 && (
        <p class="quiet">
          Other keys of this entry, for other programs:{' '}
          {foreign.map(key => (
            <Badge key={key}>{key}</Badge>
          ))}
        </p>
      )}
    </form>
  )
}
