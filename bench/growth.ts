// `node bench/start.mjs growth [--rounds N] [--ms N] [--calls N]`: what a call costs as everything else grows in number.
import { parseArgs } from 'node:util'
import { type GrowthResults, growthSection } from './growth-report.ts'
import { calledNames, TOOLS } from './many-servers.ts'
import { publish } from './page.ts'
import { facts, save } from './results.ts'
import { type CaseCell, type TimedCase, timeCases } from './time-cases.ts'
import { timeUptime } from './uptime.ts'
import { SERVER_CASES } from './workspace-cases.ts'

const WHOLE = { rounds: 7, milliseconds: 800, calls: 1_000_000 }
const CONNECTIONS = 16
const WARM_MS = 1_500
const WARM_TURNS = 4
const SESSIONS = [1, 100, 1_000, 10_000]
const FEWEST_TOOLS = 10

const number = (value: number): string => value.toLocaleString('en')

const withSessions = (sessions: number): [string, TimedCase] => [
  `sessions-${sessions}`,
  { contestant: 'dragoman-sessions', about: number(sessions), sessions },
]

// As many names are called with every number of tools, so that nothing but the list differs.
const withTools = (tools: number): [string, TimedCase] => [
  `tools-${tools}`,
  {
    contestant: tools === TOOLS ? 'workspace-direct' : `tools-${tools}`,
    about: number(tools),
    tools,
    names: calledNames(1, 'one', 'plain').slice(0, FEWEST_TOOLS),
  },
]

const GROUPS: readonly { readonly what: string; readonly cases: Readonly<Record<string, TimedCase>> }[] = [
  { what: 'idle sessions', cases: Object.fromEntries(SESSIONS.map(withSessions)) },
  { what: 'tools of one server', cases: Object.fromEntries([FEWEST_TOOLS, 100, 1_000, TOOLS].map(withTools)) },
  {
    what: `servers, ${number(TOOLS)} tools`,
    cases: Object.fromEntries(Object.entries(SERVER_CASES).map(([name, each]) => [`servers-${name}`, each])),
  },
]

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, ms: { type: 'string' }, calls: { type: 'string' } },
})
const rounds = Number(values.rounds ?? WHOLE.rounds)
const milliseconds = Number(values.ms ?? WHOLE.milliseconds)
const calls = Number(values.calls ?? WHOLE.calls)
const warmMs = Math.min(WARM_MS, 2 * milliseconds)

const known = facts()
const cells: CaseCell[] = []
const cases = Object.assign({}, ...GROUPS.map(group => group.cases)) as Record<string, TimedCase>
const timing = { connections: CONNECTIONS, milliseconds, warmMs, warmTurns: WARM_TURNS }
for (let round = 0; round < rounds; round++) cells.push(...(await timeCases(cases, round, timing)))
const results: GrowthResults = {
  ...known,
  rounds,
  secondsPerTiming: milliseconds / 1000,
  connections: CONNECTIONS,
  groups: GROUPS.map(group => ({
    what: group.what,
    cases: Object.fromEntries(Object.entries(group.cases).map(([name, { about }]) => [name, about])),
  })),
  cells,
  uptime: await timeUptime(calls),
}
const section = growthSection(results)
save('growth', results)
if (rounds >= WHOLE.rounds && milliseconds >= WHOLE.milliseconds && calls >= WHOLE.calls) publish({ Growth: section })
console.log(section)
