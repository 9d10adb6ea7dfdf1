import { BARS, type Bar, ratios } from './bars.ts'
import { figure, spread, table } from './markdown.ts'
import type { Sections } from './page.ts'
import { type Cell, factsLine, type Results } from './results.ts'
import { SCENARIOS, type ScenarioName } from './scenarios.ts'
import { summarize } from './statistics.ts'

const OURS = 'dragoman'
const REFERENCE = 16

const select = (results: Results, contestant: string, scenario: ScenarioName, connections: number): Cell[] =>
  results.cells.filter(
    cell => cell.contestant === contestant && cell.scenario === scenario && cell.connections === connections,
  )

const COLUMNS: readonly [head: string, show: (cells: readonly Cell[]) => string][] = [
  ['CPU µs per call', cells => spread(summarize(cells.map(cell => cell.cpuMicrosPerCall)))],
  ['calls/s', cells => spread(summarize(cells.map(cell => cell.callsPerSecond)))],
  ['p50 µs', cells => spread(summarize(cells.map(cell => cell.p50Micros)))],
  ['p99 µs', cells => spread(summarize(cells.map(cell => cell.p99Micros)))],
  ['RSS MiB', cells => figure(summarize(cells.map(cell => cell.rssMiB)).median)],
]

const figuresTable = (results: Results, scenario: ScenarioName, connections: number): string => {
  const rows = Object.keys(results.contestants).flatMap(name => {
    const cells = select(results, name, scenario, connections)
    return cells.length > 0 ? [[name, ...COLUMNS.map(([, show]) => show(cells))]] : []
  })
  return table(['contestant', ...COLUMNS.map(([head]) => head)], rows)
}

const connectionsIn = (results: Results): number[] =>
  [...new Set(results.cells.map(cell => cell.connections))].sort((a, b) => a - b)

const allFigures = (results: Results): string =>
  SCENARIOS.flatMap(({ name }) =>
    connectionsIn(results).map(
      connections =>
        `### ${name}, ${connections} connection${connections === 1 ? '' : 's'}\n\n${figuresTable(results, name, connections)}`,
    ),
  ).join('\n\n')

const verdict = (bar: Bar, results: Results): string[] => {
  const summary = summarize(ratios(results, bar, REFERENCE))
  const isMet = bar.atMost === undefined ? summary.median >= (bar.atLeast ?? 0) : summary.median <= bar.atMost
  const limit = bar.atMost === undefined ? `≥ ${bar.atLeast}` : `≤ ${bar.atMost}`
  const elsewhere = connectionsIn(results)
    .filter(connections => connections !== REFERENCE)
    .map(connections => [connections, summarize(ratios(results, bar, connections)).median] as const)
    .filter(([, median]) => !Number.isNaN(median))
    .map(([connections, median]) => `${figure(median)} at ${connections}`)
  return [bar.what, limit, spread(summary), isMet ? 'met' : '**missed**', elsewhere.join(', ') || '–']
}

const barsTable = (results: Results): string => {
  const rows = BARS.filter(bar => ratios(results, bar, REFERENCE).length > 0).map(bar => verdict(bar, results))
  if (rows.length === 0) return 'This run lacks the contestants that the bars compare.'
  return table(['CPU per call', 'bar', `ratio at ${REFERENCE} connections`, 'verdict', 'at other numbers'], rows)
}

const LOSABLE: readonly [what: string, of: (cell: Cell) => number][] = [
  ['CPU per call', cell => cell.cpuMicrosPerCall],
  ['p50', cell => cell.p50Micros],
  ['p99', cell => cell.p99Micros],
  ['RSS', cell => cell.rssMiB],
]

const lossesTo = (results: Results, name: string, scenario: ScenarioName, connections: number): string[] => {
  const theirs = select(results, name, scenario, connections)
  const ours = select(results, OURS, scenario, connections)
  return LOSABLE.flatMap(([what, of]) => {
    const factor = summarize(ours.map((cell, index) => of(cell) / of(theirs[index] ?? cell))).median
    return theirs.length > 0 && factor > 1.05 ? [`${what} ${figure(factor)} ×`] : []
  })
}

const losses = (results: Results): string => {
  const rivals = Object.keys(results.contestants).filter(name => name !== 'direct' && !name.startsWith(OURS))
  const rows = rivals.flatMap(name =>
    SCENARIOS.flatMap(({ name: scenario }) =>
      connectionsIn(results).flatMap(connections => {
        const lost = lossesTo(results, name, scenario, connections)
        return lost.length > 0 ? [[name, scenario, String(connections), lost.join(', ')]] : []
      }),
    ),
  )
  if (rows.length === 0) return 'Nowhere by more than 5 %.'
  return table(['to', 'scenario', 'connections', 'we need'], rows)
}

const method = (results: Results): string => `${factsLine(results)}

Every contestant, the upstream and the load client run in a process of their own, on loopback, with keep-alive. Each of
the ${results.rounds} rounds starts them afresh and warms them up; then every contestant is timed for ${results.secondsPerTiming} s in each case, turn by
turn and in rotated order, after its answer was found right. CPU is user and system time of the contestant’s process (of
all its threads) divided by calls: the figure that survives a busy machine. Figures are the median over the rounds with
the lowest and the highest; ratios are taken within each round, then their median. *echo* is a \`tools/call\` of 2026-07-28
with ~100 bytes in and out, *big* one whose result holds 10 KB of structured content. Raw values are in \`bench/results/\`.`

/** What a run has to say about calls: bars first, then where we lose, then everything. */
export const report = (results: Results): Sections => {
  const contestants = Object.entries(results.contestants).map(([name, about]) => `- **${name}**: ${about}`)
  return {
    '': `${method(results)}\n\n${contestants.join('\n')}`,
    Bars: barsTable(results),
    'Where we lose': losses(results),
    Figures: allFigures(results),
  }
}
