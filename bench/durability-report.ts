import { figure, spread, table } from './markdown.ts'
import type { Memory } from './probed.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'
import { quantile, type Summary, summarize } from './statistics.ts'
import type { Start } from './stored-starts.ts'

/** One timing of one case. */
export interface DurabilityCell {
  readonly name: string
  readonly round: number
  readonly cpuMicrosPerCall: number
  readonly calls: number
}

export interface DurabilityResults extends Facts {
  readonly rounds: number
  readonly cells: readonly DurabilityCell[]
  readonly statements: { readonly calls: number; readonly during: number; readonly idle: number }
  readonly starts: readonly {
    readonly sessions: number
    readonly stored: readonly Start[]
    readonly empty: readonly Start[]
  }[]
  readonly takeover: { readonly killed: readonly number[]; readonly hung: readonly number[] } // milliseconds
  readonly idle: { readonly sessions: number; readonly streams: number; readonly each: Memory }
}

interface Ratio {
  readonly what: string
  readonly of: string
  readonly to: string
  readonly atMost: number
}

const RATIOS: readonly Ratio[] = [
  { what: 'modern call, replica ÷ no store', of: 'modern, one of two replicas', to: 'modern, no store', atMost: 1.03 },
  { what: 'call of a session, SQLite ÷ memory', of: 'session, SQLite', to: 'session, memory', atMost: 1.03 },
  { what: 'call of a session, forwarded ÷ at home', of: 'session, forwarded', to: 'session, at home', atMost: 2 },
  { what: 'call of 20 events, SQLite ÷ memory', of: '20 events, SQLite', to: '20 events, memory', atMost: 1.15 },
]

const LEASE_MS = 6_000
const MOST_TAKEOVER_MS = 1_000
const MOST_START = 1.2
/** A statement or two may fall into either window by chance. */
const HEARTBEAT_SLACK = 2

const cpuOf = ({ cells }: DurabilityResults, name: string): Map<number, number> =>
  new Map(cells.filter(cell => cell.name === name).map(cell => [cell.round, cell.cpuMicrosPerCall]))

/** The ratio in each round, both sides timed within the same minute. */
const ratioOf = (results: DurabilityResults, { of, to }: Ratio): Summary => {
  const base = cpuOf(results, to)
  return summarize([...cpuOf(results, of)].map(([round, value]) => value / (base.get(round) ?? Number.NaN)))
}

const verdict = (isMet: boolean): string => (isMet ? 'met' : '**missed**')

/** Both sides of a ratio vary from process to process: a median above the bar by less than that is no finding. */
const judged = ({ median, min, max }: Summary, atMost: number): string => {
  if (median <= atMost) return verdict(true)
  return min <= atMost && max > atMost ? 'within the noise' : verdict(false)
}

const ratioRows = (results: DurabilityResults): string[][] =>
  RATIOS.map(ratio => {
    const summary = ratioOf(results, ratio)
    return [ratio.what, `≤ ${ratio.atMost}`, spread(summary), judged(summary, ratio.atMost)]
  })

const START_FIGURES = [
  ['CPU', 'cpuMs'],
  ['time until it serves', 'wallMs'],
] as const

const startRows = ({ starts }: DurabilityResults): string[][] =>
  starts.flatMap(({ sessions, stored, empty }) =>
    START_FIGURES.map(([name, key]) => {
      const ratios = summarize(stored.map((start, at) => start[key] / (empty[at]?.[key] ?? Number.NaN)))
      const what = `start with ${sessions.toLocaleString('en')} stored sessions ÷ none, ${name}`
      return [what, `≤ ${MOST_START}`, spread(ratios), judged(ratios, MOST_START)]
    }),
  )

const takeoverRow = (what: string, milliseconds: readonly number[], mostMs: number): string[] => {
  const sorted = Float64Array.from(milliseconds).sort()
  const p99 = quantile(sorted, 0.99)
  const shown = `${figure(p99)} ms (p50 ${figure(quantile(sorted, 0.5))}, ${sorted.length} sessions)`
  return [`${what}, p99`, `≤ ${mostMs.toLocaleString('en')} ms`, shown, verdict(p99 <= mostMs)]
}

const statementRow = ({ statements: { calls, during, idle } }: DurabilityResults): string[] => [
  `store statements in ${calls.toLocaleString('en')} modern calls, heartbeat subtracted`,
  '0',
  `${Math.max(0, during - idle)} (${during}, and ${idle} in as long without calls)`,
  verdict(during - idle <= HEARTBEAT_SLACK),
]

const casesTable = (results: DurabilityResults): string =>
  table(
    ['case', 'CPU µs per call'],
    [...new Set(results.cells.map(({ name }) => name))].map(name => [
      name,
      spread(summarize([...cpuOf(results, name).values()])),
    ]),
  )

/** The section on stored sessions and replicas. */
export const durabilitySection = (results: DurabilityResults): string => {
  const { killed, hung } = results.takeover
  const rows = [
    ...ratioRows(results),
    statementRow(results),
    ...startRows(results),
    takeoverRow('kill of the home to the next answer elsewhere', killed, MOST_TAKEOVER_MS),
    takeoverRow('SIGSTOP of the home to the next answer elsewhere', hung, LEASE_MS + MOST_TAKEOVER_MS),
  ]
  const { sessions, streams, each } = results.idle
  const open =
    streams < sessions ? `${streams.toLocaleString('en')} of them, as many open files as this machine allows` : 'each'
  return `${factsLine(results, OURS_ALONE)}

${results.rounds} rounds with fresh processes, each warmed up by as many calls, the cases timed nine times (those of events three times) turn by turn in rotated order on 16 connections; ratios are those of
the medians of a round: median with lowest and highest. CPU is that of all replicas. Two replicas share one PostgreSQL; \`memory\` is \`--ephemeral\`.
The same code differs by a tenth from process to process, so a ratio is above its bar only if it is in every round.

${table(['bar', 'at most', 'measured', 'verdict'], rows)}

${casesTable(results)}

${sessions.toLocaleString('en')} idle sessions with a GET stream (${open}), on SQLite: ${figure(each.rss)} KB RSS and ${figure(each.heap)} KB heap per session.`
}
