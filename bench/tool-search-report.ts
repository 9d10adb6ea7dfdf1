import { type BudgetCalls, CALL_CASES, type CallCase, TURNS } from './budget-calls.ts'
import { figure, spread, table } from './markdown.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'
import { type Summary, summarize } from './statistics.ts'
import type { Latency, ToolLatency } from './tool-latency.ts'
import type { SearchTask } from './tool-search-tasks.ts'

/** The list of a workspace, as `/readyz` counts it. */
export interface WorkspaceSize {
  readonly name: string
  readonly tools: number
  readonly listedTools: number
  readonly listed: { readonly tokens: number; readonly bytes: number }
}

export interface TaskResult extends SearchTask {
  readonly half: 'for tuning' | 'kept aside'
  readonly place: number // 0: it was not found
}

export interface ToolSearchResults extends Facts {
  readonly servers: readonly string[]
  readonly sizes: readonly WorkspaceSize[]
  readonly tasks: readonly TaskResult[]
  readonly among: number // results of a search
  readonly latencies: readonly ToolLatency[]
  readonly calls: readonly BudgetCalls[]
}

const AT_MOST = 1.03 // of the CPU of a call without a budget

const recallTable = ({ tasks, among }: ToolSearchResults): string => {
  const recall = (half: string, most: number): string => {
    const ofHalf = tasks.filter(task => task.half === half)
    const found = ofHalf.filter(({ place }) => place > 0 && place <= most).length
    return `${Math.round((100 * found) / ofHalf.length)} % of ${ofHalf.length}`
  }
  return table(
    ['tasks', 'first', `among the first ${among}`],
    ['for tuning', 'kept aside'].map(half => [half, recall(half, 1), recall(half, among)]),
  )
}

const sizeTable = ({ sizes }: ToolSearchResults): string =>
  table(
    ['workspace', 'tools', 'listed', 'tokens'],
    sizes.map(({ name, tools, listedTools, listed }) => [name, tools, listedTools, listed.tokens].map(String)),
  )

const latencyTable = ({ latencies }: ToolSearchResults): string => {
  const shown = ({ median, p99 }: Latency): string[] => [figure(median), figure(p99)]
  return table(
    ['tools', 'search ms', 'search p99 ms', 'list ms', 'list p99 ms', 'p99, search ÷ list'],
    latencies.map(({ tools, searchMs, listMs }) => [
      String(tools),
      ...shown(searchMs),
      ...shown(listMs),
      figure(searchMs.p99 / listMs.p99),
    ]),
  )
}

const callTable = ({ calls }: ToolSearchResults): string => {
  const of = (each: CallCase, value: (cell: BudgetCalls) => number): Summary =>
    summarize(calls.filter(cell => cell.case === each).map(value))
  const rows = (Object.keys(CALL_CASES) as CallCase[]).map(each => {
    const ratio = of(each, cell => cell.ratio)
    const verdict = ratio.median <= AT_MOST ? 'met' : ratio.min <= AT_MOST ? 'within the spread' : '**missed**'
    const micros = [of(each, cell => cell.without), of(each, cell => cell.with)].map(spread)
    return [CALL_CASES[each].about, ...micros, spread(ratio), `≤ ${figure(AT_MOST)}`, verdict]
  })
  return table(['workspace', 'without, CPU µs', 'with, CPU µs', 'with ÷ without', 'bar', 'verdict'], rows)
}

export const toolSearchSection = (results: ToolSearchResults): string => {
  const { servers, tasks, calls } = results
  const rounds = new Set(calls.map(({ round }) => round)).size
  return [
    factsLine(results, OURS_ALONE),
    `${servers.length} servers of npm and PyPI in one workspace, listed in \`bench/tool-servers.ts\`. For each of ${tasks.length} written tasks
one search, without favourites: whether a tool that does it is among the first results.
The tasks were written from the names of the tools. One half is for tuning weights, which has not been needed; the other is kept aside.`,
    recallTable(results),
    'The list with budgets that are filled with favourites, and with trimming.',
    sizeTable(results),
    `One search beside one list of all tools, with all its pages, in turn. The definitions are those of these servers, repeated
under other names.`,
    latencyTable(results),
    `Small calls of a tool by its name, on 16 connections, in two workspaces of the same servers: one without a budget, one above its
budget, whose favourites are the most used tools. ${TURNS} turns of 400 ms each in a round, ${rounds} rounds with fresh processes. A round counts the
median of the ratios of neighbouring turns; each answer is checked. Median with lowest and highest.`,
    callTable(results),
  ].join('\n\n')
}
