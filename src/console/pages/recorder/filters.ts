import type { RecordingOutcome, RecordingSummary } from '../../../admin/api/recorder.ts'

/** What the list shows. Everything in it is part of the address. */
export interface RecordingFilter {
  readonly search?: string | undefined
  readonly method?: string | undefined
  readonly server?: string | undefined
  readonly workspace?: string | undefined
  readonly outcome?: string | undefined
  readonly translated?: string | undefined // `yes`: only those
}

const KEYS = [
  'search',
  'method',
  'server',
  'workspace',
  'outcome',
  'translated',
] as const satisfies readonly (keyof RecordingFilter)[]

/** The outcomes, with the words for them. */
export const OUTCOMES: Readonly<Record<RecordingOutcome, { readonly label: string; readonly state: OutcomeState }>> = {
  running: { label: 'Running', state: 'busy' },
  ok: { label: 'OK', state: 'ok' },
  tool_error: { label: 'Tool error', state: 'warn' },
  error: { label: 'Error', state: 'error' },
  denied: { label: 'Denied', state: 'error' },
  cancelled: { label: 'Cancelled', state: 'off' },
  input_required: { label: 'Asked', state: 'warn' },
}

type OutcomeState = 'ok' | 'warn' | 'error' | 'off' | 'busy'

export const readFilter = (query: URLSearchParams): RecordingFilter =>
  Object.fromEntries(KEYS.flatMap(key => (query.get(key) ? [[key, query.get(key)]] : [])))

/** The filter as a query, for the address of the page and for the admin API. Empty values are left out. */
export const filterQuery = (filter: RecordingFilter): Readonly<Record<string, string>> =>
  Object.fromEntries(KEYS.flatMap(key => (filter[key] ? [[key, filter[key]]] : [])))

export const isFiltered = (filter: RecordingFilter): boolean => Object.keys(filterQuery(filter)).length > 0

/** Whether a row belongs into the list. The gateway alone can search: texts of messages are not here. */
export const matchesFilter = (summary: RecordingSummary, filter: RecordingFilter): boolean =>
  (!filter.method || summary.method === filter.method) &&
  (!filter.server || summary.servers.some(({ name }) => name === filter.server)) &&
  (!filter.workspace || summary.workspace === filter.workspace) &&
  (!filter.outcome || summary.outcome === filter.outcome) &&
  (!filter.translated || summary.isTranslated)

/** The values that occur in a column, sorted; the chosen one is always among them. */
export const valuesOf = (
  rows: readonly RecordingSummary[],
  read: (row: RecordingSummary) => readonly string[],
  chosen: string | undefined,
): readonly string[] => {
  const found = new Set(chosen ? [chosen] : [])
  for (const row of rows) for (const value of read(row)) found.add(value)
  return [...found].sort()
}
