import { figure, spread, table } from './markdown.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'
import { summarize } from './statistics.ts'
import type { CaseCell } from './time-cases.ts'

export interface WorkspaceResults extends Facts {
  readonly rounds: number
  readonly secondsPerTiming: number
  readonly connections: number
  readonly cases: Readonly<Record<string, string>> // name → what it is
  readonly cells: readonly CaseCell[]
}

const of = (results: WorkspaceResults, name: string): readonly CaseCell[] =>
  results.cells.filter(cell => cell.name === name)

const cpu = (results: WorkspaceResults, name: string) => summarize(of(results, name).map(cell => cell.cpuMicrosPerCall))

/** By how much more a call costs than with one server, round by round. */
const ratio = (results: WorkspaceResults, name: string): string => {
  const one = of(results, '1')
  return spread(
    summarize(of(results, name).map((cell, at) => cell.cpuMicrosPerCall / (one[at]?.cpuMicrosPerCall ?? Number.NaN))),
  )
}

const held = (results: WorkspaceResults, names: readonly string[]): string => {
  const { max } = cpu(results, '1')
  const medians = names.map(name => cpu(results, name).median)
  const isWithin = medians.every(median => median <= max)
  return `${medians.map(figure).join(' and ')} µs at the median, ${isWithin ? 'met' : '**missed**'}`
}

/** Both readings of the bar: servers that are merely there, and servers that are all used. */
const verdict = (results: WorkspaceResults): string => {
  const { min, max } = cpu(results, '1')
  return `Bar: no trend beyond the spread of the rounds with one server, ${figure(min)} to ${figure(max)} µs.

- One of 20 and of 200 servers is called: ${held(results, ['20', '200'])}.
- Calls go to all of 20 and to 50 of 200 in turn: ${held(results, ['20-all', '200-all'])}; ${ratio(results, '20-all')} × and
  ${ratio(results, '200-all')} × one server’s CPU, round by round. Each server called has connections of its own.`
}

/** The section on many servers behind one URL. */
export const workspaceSection = (results: WorkspaceResults): string => {
  const rows = Object.entries(results.cases).map(([name, about]) => {
    const cells = of(results, name)
    const column = (read: (cell: CaseCell) => number) => spread(summarize(cells.map(read)))
    return [
      about,
      column(cell => cell.cpuMicrosPerCall),
      column(cell => cell.callsPerSecond),
      column(cell => cell.p99Micros),
      figure(summarize(cells.map(cell => cell.rssMiB)).median),
    ]
  })
  return `${factsLine(results, OURS_ALONE)}

Small calls of 2026-07-28 to 50 different tools in turn, on ${results.connections} connections; all servers are one process elsewhere.
${results.rounds} rounds with fresh processes, warmed up, each case timed for ${results.secondsPerTiming} s turn by turn and in rotated order. CPU is that
of the gateway’s process; median with lowest and highest.

${table(['workspace', 'CPU µs per call', 'calls/s', 'p99 µs', 'RSS MiB'], rows)}

${verdict(results)}`
}
