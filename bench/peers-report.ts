import type { FirstAnswer } from './first-answer.ts'
import { figure, spread, table } from './markdown.ts'
import type { Sections } from './page.ts'
import { type Cell, type Facts, factsLine } from './results.ts'
import type { ScenarioName } from './scenarios.ts'
import { type Summary, summarize } from './statistics.ts'

export interface PeerTiming extends Cell {
  readonly pass: number // within a round
}

/** What was measured of one contestant in one round besides its calls. */
export interface PeerRound {
  readonly contestant: string
  readonly round: number
  readonly start: FirstAnswer
  readonly sessionMicros?: number | undefined // CPU to open one; none: the dialect has no sessions
}

export interface PeersResults extends Facts {
  readonly rounds: number
  readonly passes: number
  readonly secondsPerTiming: number
  readonly connections: number
  readonly contestants: Readonly<Record<string, string>> // name → what it is
  readonly beside: Readonly<Record<string, string>> // name → the gateway of ours with the same dialect and upstream
  readonly skipped: Readonly<Record<string, string>> // name → why
  readonly cells: readonly PeerTiming[]
  readonly others: readonly PeerRound[]
}

const BASE = 'bytes-proxy'

const of = (results: PeersResults, name: string, scenario: ScenarioName): PeerTiming[] =>
  results.cells.filter(cell => cell.contestant === name && cell.scenario === scenario)

/** The ratios of turns that are neighbours: those of the same round and pass. */
const ratio = (results: PeersResults, name: string, base: string, scenario: ScenarioName): Summary => {
  const bases = of(results, base, scenario)
  return summarize(
    of(results, name, scenario).flatMap(cell => {
      const other = bases.find(each => each.round === cell.round && each.pass === cell.pass)
      return other ? [cell.cpuMicrosPerCall / other.cpuMicrosPerCall] : []
    }),
  )
}

/** A dash where nothing was measured. */
const shown = (values: Summary, show: (values: Summary) => string): string =>
  Number.isNaN(values.median) ? '–' : show(values)

const calls = (results: PeersResults, name: string): string[] => {
  const cpu = (scenario: ScenarioName) => summarize(of(results, name, scenario).map(cell => cell.cpuMicrosPerCall))
  const ours = results.beside[name]
  const times = (base: string | undefined, scenario: ScenarioName): string =>
    base === undefined || base === name ? '–' : shown(ratio(results, name, base, scenario), spread)
  return [
    name,
    shown(cpu('echo'), spread),
    times(BASE, 'echo'),
    times(ours, 'echo'),
    shown(cpu('big'), spread),
    times(BASE, 'big'),
    times(ours, 'big'),
  ]
}

const lastRss = (results: PeersResults, name: string): Summary => {
  const byRound = new Map<number, number>()
  for (const cell of results.cells) if (cell.contestant === name) byRound.set(cell.round, cell.rssMiB)
  return summarize([...byRound.values()])
}

const rest = (results: PeersResults, name: string): string[] => {
  const rounds = results.others.filter(each => each.contestant === name)
  const sessions = rounds.flatMap(({ sessionMicros }) => (sessionMicros === undefined ? [] : [sessionMicros]))
  return [
    name,
    shown(summarize(rounds.map(({ start }) => start.wallMs)), spread),
    shown(summarize(rounds.map(({ start }) => start.cpuMs)), spread),
    shown(summarize(sessions), spread),
    shown(lastRss(results, name), values => figure(values.median)),
  ]
}

/** The section on other gateways. */
export const peersSection = (results: PeersResults): Sections => {
  const names = Object.keys(results.contestants)
  const abouts = names.map(name => {
    const ours = results.beside[name]
    return `- **${name}**: ${results.contestants[name]}${ours === undefined ? '' : `; beside ${ours}`}`
  })
  const skipped = Object.entries(results.skipped).map(([name, why]) => `- skipped **${name}**: ${why}`)
  const text = `${factsLine(results)}

Other gateways in front of the same answers, on ${results.connections} connections. ${results.rounds} rounds with fresh processes; each contestant is warmed up,
then all are timed ${results.passes} times for ${results.secondsPerTiming} s, turn by turn in rotated order, after an answer was found right. CPU is that of the
gateway’s process, not of stdio servers that it starts; ratios are those of the same turn. ÷ dragoman is the ratio to this
gateway with the same dialect and kind of upstream. Median with lowest and highest.

${[...abouts, ...skipped].join('\n')}

${table(
  ['CPU µs per call', 'echo', `echo ÷ ${BASE}`, 'echo ÷ dragoman', 'big (10 KB)', `big ÷ ${BASE}`, 'big ÷ dragoman'],
  names.map(name => calls(results, name)),
)}

A start is timed from the start of the process to the first right answer to a small call. Opening a session is \`initialize\` and
\`notifications/initialized\`. RSS is that after the last timing.

${table(
  ['contestant', 'start, wall ms', 'start, CPU ms', 'CPU µs per session opened', 'RSS MiB'],
  names.map(name => rest(results, name)),
)}`
  return { 'Other gateways': text }
}
