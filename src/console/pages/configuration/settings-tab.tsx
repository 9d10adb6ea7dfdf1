import { useMemo } from 'preact/hooks'
import { valueAt } from '../../form/form-value.ts'
import { isObject } from '../../mcp/messages.ts'
import { Badge } from '../../parts/badge.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { hrefTo, navigate } from '../../router.ts'
import { objectAt, withValue } from './edits.ts'
import { FieldList, ValueField } from './fields.tsx'
import { shownText } from './hidden.ts'
import { type SettingRow, settingRows } from './settings.ts'
import { canEdit, change, draft, file, issues, schema } from './store.ts'

const COLUMNS: readonly TableColumn<SettingRow>[] = [
  { id: 'name', title: 'Setting', width: 'minmax(150px, 1fr)', cell: row => <span class="mono">{row.at}</span> },
  {
    id: 'value',
    title: 'Value',
    width: 'minmax(80px, 1fr)',
    cell: row => <span class="mono">{shownText(row.text)}</span>,
  },
  {
    id: 'source',
    title: 'From',
    width: '96px',
    cell: row =>
      row.source === 'default' || row.source === 'not set' ? (
        <span class="quiet">{row.source}</span>
      ) : (
        <Badge kind={row.isChanged ? 'accent' : 'neutral'}>{row.source}</Badge>
      ),
  },
  {
    id: 'about',
    title: 'What it is',
    width: 'minmax(0, 3fr)',
    hideBelow: 720,
    cell: row => <span class="quiet">{row.about}</span>,
  },
]

/** All other settings: their values, and whether the file, a flag or the default gives them. */
export const SettingsTab = ({ selected }: { readonly selected: string | undefined }) => {
  const { root, value } = draft.value
  const running = file.value?.running
  const rows = useMemo(() => settingRows(schema.value, root, value, running), [schema.value, root, value, running])
  const section = selected?.split('.')[0]
  const open = (at?: string): void =>
    navigate(hrefTo('configuration', at === undefined ? ['settings'] : ['settings', at]))
  const sectionSchema = section === undefined ? undefined : schema.value?.properties?.[section]
  return (
    <SplitView
      label="Settings"
      title={section}
      storageKey="configuration"
      defaultWidth={520}
      onClose={() => open()}
      detail={
        section === undefined || sectionSchema === undefined ? undefined : (
          <form class="config-detail" onSubmit={event => event.preventDefault()}>
            <p class="quiet">{sectionSchema.description} Changes take effect after a restart.</p>
            <fieldset key={section} class="config-plain" disabled={!canEdit.value}>
              <legend class="visually-hidden">{section}</legend>
              {sectionSchema.properties &&
              (valueAt(value, [section]) === undefined || isObject(valueAt(value, [section]))) ? (
                <FieldList
                  path={[section]}
                  fields={Object.entries(sectionSchema.properties)}
                  value={objectAt(value, [section])}
                  issues={issues.value}
                  onChange={next =>
                    change(now => ({
                      ...now,
                      value: withValue(now.value, [section], Object.keys(next).length > 0 ? next : undefined),
                    }))
                  }
                />
              ) : (
                <ValueField
                  name={section}
                  path={[section]}
                  schema={sectionSchema}
                  value={valueAt(value, [section])}
                  issues={issues.value}
                  onChange={next => change(now => ({ ...now, value: withValue(now.value, [section], next) }))}
                />
              )}
            </fieldset>
          </form>
        )
      }
    >
      <Table
        label="Settings"
        isMain
        columns={COLUMNS}
        rows={rows}
        keyOf={row => row.at}
        selected={selected}
        onSelect={row => open(row.at)}
      />
    </SplitView>
  )
}
