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

const ENDINGS: Readonly<Record<string, string>> = {
  cancelled: 'The client has cancelled it.',
  gone: 'The client has disconnected.',
  expired: 'The client did not come back in time.',
  closing: 'The gateway was shutting down.',
  moved: 'Its session belongs to another replica now.',
}

/** Why an exchange did not succeed, as a sentence; undefined if it did. */
export const endingText = ({ outcome, error }: Pick<RecordingSummary, 'outcome' | 'error'>): string | undefined =>
  outcome === 'cancelled' && error !== undefined ? (ENDINGS[error] ?? error) : error

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

const MOST_VALUES = 500 // clients can invent methods

/** The values that occur in a column, and those that did before, sorted; the chosen one is always among them. */
export const valuesOf = (
  rows: readonly RecordingSummary[],
  read: (row: RecordingSummary) => readonly string[],
  { chosen, before = [] }: { readonly chosen: string | undefined; readonly before?: readonly string[] | undefined },
): readonly string[] => {
  const found = new Set(chosen ? [chosen] : [])
  for (const row of rows) for (const value of read(row)) found.add(value)
  for (const value of before) if (found.size < MOST_VALUES) found.add(value)
  return [...found].sort()
}
