import { figure, spread, table } from './markdown.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'
import { type Summary, summarize } from './statistics.ts'
import type { CaseCell } from './time-cases.ts'
import type { Tenth } from './uptime.ts'

/** Cases that differ in one number, the smallest first. */
export interface Growth {
  readonly what: string
  readonly cases: Readonly<Record<string, string>> // name → what it is
}

export interface GrowthResults extends Facts {
  readonly rounds: number
  readonly secondsPerTiming: number
  readonly connections: number
  readonly groups: readonly Growth[]
  readonly cells: readonly CaseCell[]
  readonly uptime: readonly Tenth[]
}

const of = (results: GrowthResults, name: string): CaseCell[] => results.cells.filter(cell => cell.name === name)
const cpu = (cells: readonly CaseCell[]): Summary => summarize(cells.map(cell => cell.cpuMicrosPerCall))

/** By how much more a call costs than in the smallest case, round by round. */
const ratio = (cells: readonly CaseCell[], base: readonly CaseCell[]): Summary =>
  summarize(
    cells.map(
      cell => cell.cpuMicrosPerCall / (base.find(({ round }) => round === cell.round)?.cpuMicrosPerCall ?? Number.NaN),
    ),
  )

const groupRows = (results: GrowthResults, { what, cases }: Growth): string[][] => {
  const [first = ''] = Object.keys(cases)
  const base = of(results, first)
  return Object.entries(cases).map(([name, about]) => {
    const cells = of(results, name)
    const isMet = cpu(cells).median <= cpu(base).max
    return [
      `${what}: ${about}`,
      spread(cpu(cells)),
      name === first ? '–' : spread(ratio(cells, base)),
      figure(summarize(cells.map(cell => cell.rssMiB)).median),
      name === first ? '–' : isMet ? 'met' : '**missed**',
    ]
  })
}

const uptimeText = (tenths: readonly Tenth[]): string => {
  const [second, last] = [tenths[1], tenths.at(-1)]
  if (!second || !last) return ''
  const calls = tenths.reduce((sum, tenth) => sum + tenth.calls, 0)
  const rows = (
    [
      ['CPU µs per call', tenth => tenth.cpuMicrosPerCall],
      ['RSS MiB at the end', tenth => tenth.rssMiB],
      ['heap MiB, the least', tenth => tenth.heapMiB],
    ] as readonly [string, (tenth: Tenth) => number][]
  ).map(([what, read]) => [what, figure(read(second)), figure(read(last)), `${figure(read(last) / read(second))} ×`])
  return `**Uptime.** ${calls.toLocaleString('en')} small calls to one process. The first tenth warms it up; the heap is what \`/metrics\` says.

${table(['', 'second tenth', 'last tenth', 'last ÷ second'], rows)}`
}

/** The section on what a call costs as sessions, tools, servers and calls grow in number. */
export const growthSection = (results: GrowthResults): string => `${factsLine(results, OURS_ALONE)}

Small calls on ${results.connections} connections to gateways that hold more and more. ${results.rounds} rounds with fresh processes, warmed up, each case timed
for ${results.secondsPerTiming} s turn by turn and in rotated order. Calls with idle sessions are those of 2025-11-25 sessions, the others are of 2026-07-28.
Bar: the median is within the rounds of the smallest case. Median with lowest and highest; ratios round by round.

${table(
  ['growth', 'CPU µs per call', '÷ the smallest', 'RSS MiB', 'bar'],
  results.groups.flatMap(group => groupRows(results, group)),
)}

${uptimeText(results.uptime)}`
