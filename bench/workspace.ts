// `node bench/start.mjs workspace [--rounds N]`: what a call costs with one, twenty and two hundred servers.
import { parseArgs } from 'node:util'
import { publish } from './page.ts'
import { facts, save } from './results.ts'
import { type CaseCell, timeCases } from './time-cases.ts'
import { WORKSPACE_CASES } from './workspace-cases.ts'
import { type WorkspaceResults, workspaceSection } from './workspace-report.ts'

const LEAST_ROUNDS = 7
const TIMING = { connections: 16, milliseconds: 800, warmMs: 1_500, warmTurns: 4 }

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? LEAST_ROUNDS)
const known = facts()
const cells: CaseCell[] = []
for (let round = 0; round < rounds; round++) cells.push(...(await timeCases(WORKSPACE_CASES, round, TIMING)))
const results: WorkspaceResults = {
  ...known,
  rounds,
  secondsPerTiming: TIMING.milliseconds / 1000,
  connections: TIMING.connections,
  cases: Object.fromEntries(Object.entries(WORKSPACE_CASES).map(([name, { about }]) => [name, about])),
  cells,
}
const section = workspaceSection(results)
save('workspace', results)
if (rounds >= LEAST_ROUNDS) publish({ 'Many servers': section })
console.log(section)
