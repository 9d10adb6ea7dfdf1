// `npm run bench [-- --quick] [--only a,b] [--rounds N]`: times every contestant turn by turn and writes the report.
import { parseArgs } from 'node:util'
import { startContestant, startUpstream, stopAll, worker } from './children.ts'
import type { Ready } from './contestant.ts'
import type { Figures, Job } from './load.ts'
import { publish, render } from './page.ts'
import { report } from './report.ts'
import { type Cell, facts, type Results, save } from './results.ts'
import { SCENARIOS } from './scenarios.ts'
import { rotate, type Warm, warmUp } from './warm-up.ts'

interface Plan {
  readonly contestants: readonly string[]
  readonly connections: readonly number[]
  readonly rounds: number
  readonly milliseconds: number // of one timing
  readonly warm: Warm
  readonly isWhole: boolean // only a whole run may write the page in docs/
}

const INFORMATION = new Set(['dragoman-2025', 'dragoman-cross', 'dragoman-stdio']) // timed at one number of connections only
const ALL = ['direct', 'bytes-proxy', 'parse-proxy', 'sdk-v2-proxy', 'dragoman', ...INFORMATION]
const REFERENCE = 16

const readPlan = (): Plan => {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean' }, only: { type: 'string' }, rounds: { type: 'string' } },
  })
  const contestants = values.only?.split(',') ?? (values.quick ? ALL.filter(name => !INFORMATION.has(name)) : ALL)
  const unknown = contestants.filter(name => !ALL.includes(name))
  if (unknown.length > 0) throw new Error(`no contestant ${unknown.join(', ')}; there are ${ALL.join(', ')}`)
  const size = values.quick
    ? { connections: [REFERENCE], rounds: 3, milliseconds: 400, warm: { calls: 1_000, leastMs: 800, mostMs: 1_600 } }
    : {
        connections: [1, REFERENCE, 64],
        rounds: 5,
        milliseconds: 600,
        warm: { calls: 4_000, leastMs: 1_200, mostMs: 4_500 },
      }
  const rounds = Number(values.rounds ?? size.rounds)
  return { ...size, contestants, rounds, isWhole: !values.quick && !values.only && rounds >= size.rounds }
}

const timings = function* (plan: Plan, round: number) {
  for (const { name: scenario } of SCENARIOS) {
    for (const connections of plan.connections) {
      for (const contestant of rotate(plan.contestants, round)) {
        if (connections === REFERENCE || !INFORMATION.has(contestant))
          yield { round, scenario, connections, contestant }
      }
    }
  }
}

const print = (cell: Cell): void => {
  const { round, scenario, connections, contestant, cpuMicrosPerCall, callsPerSecond } = cell
  const label = `${round + 1}  ${scenario.padEnd(5)} ${String(connections).padStart(2)}  ${contestant.padEnd(15)}`
  console.error(
    `${label} ${cpuMicrosPerCall.toFixed(0).padStart(6)} µs/call ${callsPerSecond.toFixed(0).padStart(7)} calls/s`,
  )
}

// Every round has fresh processes: what V8 makes of the same code differs by a tenth from one to the next.
const timeRound = async (plan: Plan, round: number): Promise<{ ready: Map<string, Ready>; cells: Cell[] }> => {
  const ready = new Map<string, Ready>()
  const cells: Cell[] = []
  try {
    const upstream = await startUpstream()
    const time = worker<Job, Figures>('load')
    for (const name of plan.contestants) {
      const target = await startContestant(name, upstream)
      await warmUp(target, time, REFERENCE, plan.warm)
      ready.set(name, target)
    }
    for (const step of timings(plan, round)) {
      const target = ready.get(step.contestant)
      if (!target) continue
      const { scenario, connections } = step
      const job = { target, dialect: target.dialect, scenario, connections, milliseconds: plan.milliseconds }
      const cell = { ...step, ...(await time(job)) }
      cells.push(cell)
      print(cell)
    }
  } finally {
    await stopAll()
  }
  return { ready, cells }
}

const timeAll = async (plan: Plan): Promise<Results> => {
  const known = { ...facts(), rounds: plan.rounds }
  const cells: Cell[] = []
  const contestants: Record<string, string> = {}
  for (let round = 0; round < plan.rounds; round++) {
    const timed = await timeRound(plan, round)
    cells.push(...timed.cells)
    for (const [name, { about }] of timed.ready) contestants[name] = about
  }
  return { ...known, secondsPerTiming: plan.milliseconds / 1000, contestants, cells }
}

const plan = readPlan()
const results = await timeAll(plan)
const sections = report(results)
save('calls', results)
if (plan.isWhole) publish(sections)
console.log(render(sections))
