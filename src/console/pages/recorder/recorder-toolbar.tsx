import { useMemo, useRef, useState } from 'preact/hooks'
import type { RecordingSummary } from '../../../admin/api/recorder.ts'
import { api, messageOf, send } from '../../api.ts'
import { IconButton } from '../../parts/button.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { formatBytes, formatCount, plural } from '../../parts/format.ts'
import { downloadText } from '../../parts/json-text.tsx'
import { Menu } from '../../parts/menu.tsx'
import { Search } from '../../parts/search.tsx'
import { Select } from '../../parts/select.tsx'
import { Switch } from '../../parts/switch.tsx'
import { toast } from '../../parts/toast.tsx'
import { isOwner } from '../../session.ts'
import { switchRecorder } from './empty-states.tsx'
import { filterQuery, OUTCOMES, type RecordingFilter, valuesOf } from './filters.ts'
import { RECORDINGS, type RecorderFacts, type RecordingsModel } from './recordings-model.ts'

export interface RecorderFiltersProps {
  readonly model: RecordingsModel
  readonly filter: RecordingFilter
  readonly onFilter: (filter: RecordingFilter) => void
}

export interface RecorderToolbarProps extends RecorderFiltersProps {
  readonly isPaused: boolean
  readonly onPause: (isPaused: boolean) => void
}

const WHY_OWNER = 'Only the owner may do this: dragoman console'

/** Saves recordings as a file for `dragoman replay`. */
export const exportRecordings = async (query: URLSearchParams, name: string): Promise<void> => {
  try {
    const response = await send('GET', `${RECORDINGS}/export?${query}`)
    downloadText(await response.blob(), name)
  } catch (error) {
    toast(messageOf(error), { kind: 'error' })
  }
}

type ColumnFilter = 'method' | 'server' | 'workspace'
const COLUMN_FILTERS: readonly {
  readonly key: ColumnFilter
  readonly label: string
  readonly read: (row: RecordingSummary) => readonly string[]
}[] = [
  { key: 'method', label: 'All methods', read: ({ method }) => [method] },
  { key: 'server', label: 'All servers', read: ({ servers }) => servers.map(({ name }) => name) },
  { key: 'workspace', label: 'All workspaces', read: ({ workspace }) => [workspace] },
]

/** The filters, in a row above the list. */
export const RecorderFilters = ({ model, filter, onFilter }: RecorderFiltersProps) => {
  const rows = model.rows.value
  const skipped = model.facts.value?.skipped ?? 0
  const change = (part: RecordingFilter): void => onFilter({ ...filter, ...part })
  const before = useRef<readonly (readonly string[])[]>([]) // the rows of a filter have lost the other choices
  const columns = useMemo(
    () =>
      COLUMN_FILTERS.map((each, at) => ({
        ...each,
        values: valuesOf(rows, each.read, { chosen: filter[each.key], before: before.current[at] }),
      })),
    [rows, filter],
  )
  before.current = columns.map(({ values }) => values)
  return (
    <div class="rec-filters">
      {columns.map(({ key, label, values }) => (
        <Select
          key={key}
          label={label}
          value={filter[key] ?? ''}
          options={[{ value: '', label }, ...values.map(value => ({ value, label: value }))]}
          onChange={value => change({ [key]: value })}
        />
      ))}
      <Select
        label="All outcomes"
        value={filter.outcome ?? ''}
        options={[
          { value: '', label: 'All outcomes' },
          ...Object.entries(OUTCOMES).map(([value, { label }]) => ({ value, label })),
        ]}
        onChange={outcome => change({ outcome })}
      />
      <Switch
        label="Translated"
        title="Only exchanges with a server of another revision"
        isOn={filter.translated !== undefined}
        onChange={isOn => change({ translated: isOn ? 'yes' : undefined })}
      />
      {skipped > 0 && (
        <span class="quiet" title="Of a burst of exchanges, a part is recorded, and up to 250 failures a second">
          {plural(skipped, 'exchange')} of bursts not recorded
        </span>
      )}
    </div>
  )
}

/** The search, and what can be done with the list. */
export const RecorderToolbar = (props: RecorderToolbarProps) => {
  const { model, filter, onFilter, isPaused, onPause } = props
  const [isClearing, setClearing] = useState(false)
  const rows = model.rows.value
  const facts = model.facts.value
  const change = (part: RecordingFilter): void => onFilter({ ...filter, ...part })
  const clear = (): void => {
    setClearing(false)
    api.delete<RecorderFacts>(RECORDINGS).then(
      next => model.empty(next),
      (error: unknown) => void toast(messageOf(error), { kind: 'error' }),
    )
  }
  return (
    <>
      <Search
        label="Search messages"
        value={filter.search ?? ''}
        onInput={search => change({ search })}
        {...(facts && { count: { shown: rows.length, total: Math.max(rows.length, facts.kept) } })}
      />
      <IconButton
        icon={isPaused ? 'play' : 'pause'}
        label={isPaused ? 'Resume (p)' : 'Pause (p)'}
        isPressed={isPaused}
        onClick={() => onPause(!isPaused)}
      />
      <Switch
        label="Record"
        isOn={facts?.isOn ?? false}
        disabled={!isOwner.value || !facts}
        title={isOwner.value ? recorderTitle(facts) : WHY_OWNER}
        onChange={isOn => switchRecorder(model, isOn)}
      />
      <Menu
        label="More actions"
        items={[
          {
            label: 'Export what is shown',
            icon: 'download',
            disabled: !isOwner.value || rows.length === 0,
            onSelect: () => void exportRecordings(exportQuery(filter, rows), 'recordings.jsonl'),
          },
          {
            label: 'Clear …',
            icon: 'trash',
            isDanger: true,
            disabled: !isOwner.value || rows.length === 0,
            onSelect: () => setClearing(true),
          },
        ]}
      />
      {isClearing && (
        <Confirm
          title="Clear the recorder"
          action="Clear"
          isDanger
          onConfirm={clear}
          onClose={() => setClearing(false)}
        >
          <p>
            {plural(facts?.kept ?? rows.length, 'exchange')} will be forgotten, not only those that the filter shows.
            This cannot be undone.
          </p>
        </Confirm>
      )}
    </>
  )
}

const recorderTitle = (facts: RecorderFacts | undefined): string =>
  facts
    ? `${formatCount(facts.kept)} exchanges in memory, ${formatBytes(facts.keptBytes)} of ${formatBytes(facts.maxBytes)}${
        facts.forgotten > 0 ? `; ${formatCount(facts.forgotten)} older ones were forgotten` : ''
      }`
    : ''

const MOST_IDS = 200 // in one address

/** The gateway knows every filter but that for translated ones: those are named one by one. */
const exportQuery = (filter: RecordingFilter, rows: readonly RecordingSummary[]): URLSearchParams => {
  if (filter.translated === undefined) return new URLSearchParams(filterQuery(filter))
  return new URLSearchParams(rows.slice(0, MOST_IDS).map(({ id }) => ['id', id]))
}
