import type { GatewayStatus, ServerState, ServerStatus } from '../../../protocol/status.ts'

/** A server as the table shows it. */
export interface OverviewRow {
  readonly name: string
  readonly status: ServerStatus
  readonly word: string // its state
  readonly dot: 'ok' | 'warn' | 'error' | 'off' | 'busy'
  readonly workspaces: readonly string[]
  readonly calls: number // all requests of the last ten minutes, also lists and health checks; as the figures below
  readonly errors: number
  readonly meanMs: number | undefined
  readonly problem: string | undefined // why it is not ready, or its last error
}

const STATES: Readonly<Record<ServerState, { readonly word: string; readonly dot: OverviewRow['dot'] }>> = {
  ready: { word: 'Ready', dot: 'ok' },
  connecting: { word: 'Connecting', dot: 'busy' },
  untried: { word: 'Not tried', dot: 'off' },
  degraded: { word: 'Degraded', dot: 'warn' },
  down: { word: 'Down', dot: 'error' },
  disabled: { word: 'Disabled', dot: 'off' },
  unavailable: { word: 'Unavailable', dot: 'error' },
}

/** Those that need attention come first when the table is sorted by state. */
const URGENCY: readonly ServerState[] = [
  'down',
  'unavailable',
  'degraded',
  'connecting',
  'untried',
  'disabled',
  'ready',
]

const sum = (numbers: readonly number[] = []): number => numbers.reduce((total, number) => total + number, 0)

/** The mean of all calls, from the means of the buckets. */
const meanOf = ({ history }: NonNullable<ServerStatus['activity']>): number | undefined => {
  if (!history) return undefined
  const total = history.ms.reduce<number>((ms, mean, at) => ms + (mean ?? 0) * (history.calls[at] ?? 0), 0)
  return total / sum(history.calls)
}

const rowOf = (status: ServerStatus, workspaces: readonly string[]): OverviewRow => {
  const { name, state, isStopped = false, reason, activity } = status
  return {
    name,
    status,
    ...(isStopped ? { word: 'Stopped', dot: 'off' } : STATES[state]),
    workspaces,
    calls: sum(activity?.history?.calls),
    errors: sum(activity?.history?.errors),
    meanMs: activity && meanOf(activity),
    problem: state === 'ready' ? activity?.lastError?.message : (reason ?? activity?.lastError?.message),
  }
}

/** The servers in the order of the configuration. */
export const overviewRows = ({ servers, workspaces }: GatewayStatus): readonly OverviewRow[] => {
  const placesOf = new Map<string, string[]>()
  for (const workspace of workspaces)
    for (const { name } of workspace.servers) placesOf.set(name, [...(placesOf.get(name) ?? []), workspace.name])
  return servers.map(status => rowOf(status, placesOf.get(status.name) ?? []))
}

/** The rows of one workspace whose name, state, transport, revision or problem has the text. */
export const filterServers = (
  rows: readonly OverviewRow[],
  { text, workspace }: { readonly text: string; readonly workspace: string | undefined },
): readonly OverviewRow[] => {
  const wanted = text.trim().toLowerCase()
  return rows.filter(({ name, word, status, workspaces, problem = '' }) => {
    if (workspace !== undefined && !workspaces.includes(workspace)) return false
    const { transport = '', revision = '' } = status
    return [name, word, transport, revision, problem].some(part => part.toLowerCase().includes(wanted))
  })
}

export const byUrgency = (a: OverviewRow, b: OverviewRow): number =>
  URGENCY.indexOf(a.status.state) - URGENCY.indexOf(b.status.state) || a.name.localeCompare(b.name)

/** The share of calls that failed, from 0 to 1; undefined without calls. */
export const errorShare = ({ calls, errors }: Pick<OverviewRow, 'calls' | 'errors'>): number | undefined =>
  calls === 0 ? undefined : errors / calls
