// `npm --prefix bench run workers`: what a call costs with two workers, and with one, and how many calls a second they
// answer. The load, the upstream and the gateway share the machine, so for the second question each worker may use only a
// part of a core: what is left is enough for the others.
import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startUpstream, stopAll, worker } from './children.ts'
import { limitCpu } from './cpu-limit.ts'
import type { Figures, Job } from './load.ts'
import { figure, spread, table } from './markdown.ts'
import { publish } from './page.ts'
import type { Target } from './peer.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { startWith } from './start-dragoman.ts'
import { type Summary, summarize } from './statistics.ts'

const CONNECTIONS = 16
const EACH = CONNECTIONS / 2 // for one worker, as many as each of two has
const TIMING_MS = 600
const WARM_MS = 3000
const TURNS = 9 // of each side in one round
const CPU_SHARE = 0.2 // of a core, for each worker
const LIMITED_MS = 1500
const LIMITED_TURNS = 5
const AT_LEAST = 1.7 // times the calls per second of one worker
const WHOLE_ROUNDS = 3
const SIDES = [
  { name: `1 worker, ${CONNECTIONS} connections`, workers: 1, connections: CONNECTIONS },
  { name: `1 worker, ${EACH} connections`, workers: 1, connections: EACH },
  { name: `2 workers, ${CONNECTIONS} connections`, workers: 2, connections: CONNECTIONS },
] as const

/** Where the sessions of a case are: a session that is opened on another connection lives in another worker. */
const CASES = [
  { name: 'modern call', dialect: 'modern', isElsewhere: false },
  { name: 'call of a session, at its home', dialect: 'legacy', isElsewhere: false },
  { name: 'call of a session, never at its home', dialect: 'legacy', isElsewhere: true },
] as const

interface WorkersResults extends Facts {
  readonly rounds: number
  readonly cells: readonly Cell[]
  readonly limited: readonly LimitedCell[] // none: this system does not limit the CPU of a process
}

/** Calls per second of workers that may use only a part of a core. */
interface LimitedCell {
  readonly name: string
  readonly round: number
  readonly one: number
  readonly two: number
}

interface Cell {
  readonly name: string
  readonly side: string
  readonly round: number
  readonly micros: number
  readonly perSecond: number
}

interface StartedGateway extends Target {
  readonly workers: number
  readonly others: readonly number[] // processes
  readonly child: ChildProcess
}

const parentOf = (pid: string): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** The workers of a gateway, once they are there. */
const workersOf = async (main: number, count: number): Promise<number[]> => {
  for (let attempt = 0; ; attempt++) {
    const found = readdirSync('/proc').flatMap(name => {
      try {
        return /^\d+$/.test(name) && parentOf(name) === main ? Number(name) : []
      } catch {
        return [] // it has ended
      }
    })
    if (found.length >= count) return found
    if (attempt >= 100) throw new Error('the workers have not started')
    await sleep(50)
  }
}

const timeRound = async (round: number): Promise<{ cells: Cell[]; limited: LimitedCell[] }> => {
  try {
    const upstream = await startUpstream()
    const config = {
      mcpServers: { modern: { url: upstream.url, era: 'modern' }, legacy: { url: upstream.url, era: 'legacy' } },
      workspaces: { modern: { servers: ['modern'] }, legacy: { servers: ['legacy'] } },
    }
    const time = worker<Job, Figures>('load')
    const gateways: StartedGateway[] = []
    for (const workers of [1, 2]) {
      const gateway = await startWith(config, ['--workers', String(workers)])
      const others = workers === 1 ? [] : await workersOf(gateway.pid, workers - 1)
      gateways.push({ ...gateway, workers, others })
    }
    await sleep(3000) // until the workers are ready
    const cells: Cell[] = []
    for (const { name, dialect, isElsewhere } of CASES) {
      const run = (side: (typeof SIDES)[number], milliseconds: number): Promise<Figures> => {
        const { url, pid, others } = gateways.find(({ workers }) => workers === side.workers) as StartedGateway
        const target = { url: `${url}/${dialect}`, pid }
        const job = { target, dialect, scenario: 'echo', milliseconds, alsoCharged: others } as const
        // Connections are handed out in turn: with an odd number, the second of each caller goes to the other worker.
        if (isElsewhere) return time({ ...job, connections: side.connections - 1, home: target.url })
        return time({ ...job, connections: side.connections })
      }
      const found = SIDES.map(side => ({ side, micros: [] as number[], perSecond: [] as number[] }))
      for (const { side } of found) await run(side, WARM_MS)
      for (let turn = 0; turn < TURNS; turn++)
        for (const { side, micros, perSecond } of turn % 2 === 0 ? found : [...found].reverse()) {
          const figures = await run(side, TIMING_MS)
          micros.push(figures.cpuMicrosPerCall)
          perSecond.push(figures.callsPerSecond)
        }
      for (const { side, ...values } of found) {
        const [micros, perSecond] = [summarize(values.micros).median, summarize(values.perSecond).median]
        console.error(`${round + 1}  ${name}, ${side.name}: ${micros.toFixed(1)} µs, ${perSecond.toFixed(0)}/s`)
        cells.push({ name, side: side.name, round, micros, perSecond })
      }
    }
    const isLimited = gateways.flatMap(({ pid, others }) => [pid, ...others]).every(pid => limitCpu(pid, CPU_SHARE))
    const limited: LimitedCell[] = []
    for (const { name, dialect, isElsewhere } of isLimited ? CASES : []) {
      if (isElsewhere) continue
      const perSecond = new Map(gateways.map(({ workers }) => [workers, [] as number[]]))
      for (let turn = 0; turn < LIMITED_TURNS; turn++)
        for (const { url, pid, workers } of turn % 2 === 0 ? gateways : [...gateways].reverse()) {
          const target = { url: `${url}/${dialect}`, pid }
          const job = { target, dialect, scenario: 'echo', connections: CONNECTIONS, milliseconds: LIMITED_MS } as const
          perSecond.get(workers)?.push((await time(job)).callsPerSecond)
        }
      const [one = 0, two = 0] = gateways.map(({ workers }) => summarize(perSecond.get(workers) ?? []).median)
      console.error(
        `${round + 1}  ${name}, limited: ${one.toFixed(0)}/s and ${two.toFixed(0)}/s, ${(two / one).toFixed(2)}`,
      )
      limited.push({ name, round, one, two })
    }
    for (const { child } of gateways) child.kill()
    return { cells, limited }
  } finally {
    await stopAll()
  }
}

const section = (results: WorkersResults): string => {
  const [whole, half, both] = SIDES.map(({ name }) => name)
  const rows = CASES.map(({ name }) => {
    const of = (side = '') => results.cells.filter(cell => cell.name === name && cell.side === side)
    const ratio = (side: string | undefined, value: 'micros' | 'perSecond'): Summary =>
      summarize(of(both).map((cell, round) => cell[value] / (of(side)[round]?.[value] ?? Number.NaN)))
    const shown = SIDES.map(side => spread(summarize(of(side.name).map(({ micros }) => micros))))
    return [
      name,
      ...shown,
      spread(ratio(whole, 'micros')),
      spread(ratio(half, 'micros')),
      figure(ratio(whole, 'perSecond').median),
    ]
  })
  const heads = SIDES.map(({ name }) => `${name}, CPU µs`)
  return [
    factsLine(results, OURS_ALONE),
    `Small calls, ${TURNS} turns of ${TIMING_MS} ms of each gateway in a round, ${results.rounds} rounds with fresh processes.`,
    table(['call', ...heads, 'third ÷ first', 'third ÷ second', 'calls per second, third ÷ first'], rows),
    ...limitedPart(results),
  ].join('\n\n')
}

const limitedPart = ({ limited }: WorkersResults): string[] => {
  if (limited.length === 0)
    return [
      'Calls per second need a machine where the CPU of each worker can be limited; this one has no such control group.',
    ]
  const rows = [...new Set(limited.map(({ name }) => name))].map(name => {
    const cells = limited.filter(cell => cell.name === name)
    const ratio = summarize(cells.map(({ one, two }) => two / one))
    const verdict = ratio.median >= AT_LEAST ? 'met' : ratio.max >= AT_LEAST ? 'within the spread' : '**missed**'
    const shown = [cells.map(({ one }) => one), cells.map(({ two }) => two)].map(values => spread(summarize(values)))
    return [name, ...shown, spread(ratio), `≥ ${figure(AT_LEAST)}`, verdict]
  })
  return [
    `The machine has no cores left for the load and the upstream while two workers use all of theirs. So each worker may use
${CPU_SHARE * 100} % of a core here, set by a control group; ${CONNECTIONS} connections, ${LIMITED_TURNS} turns of ${LIMITED_MS} ms of each gateway in a round.`,
    table(['call', '1 worker, calls per second', '2 workers', '2 ÷ 1', 'bar', 'verdict'], rows),
  ]
}

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? WHOLE_ROUNDS)
const known = facts()
const cells: Cell[] = []
const limited: LimitedCell[] = []
for (let round = 0; round < rounds; round++) {
  const timed = await timeRound(round)
  cells.push(...timed.cells)
  limited.push(...timed.limited)
}
const results: WorkersResults = { ...known, rounds, cells, limited }
save('workers', results)
if (rounds >= WHOLE_ROUNDS) publish({ 'Several workers': section(results) })
console.log(section(results))
process.exit() // gateways end with this process
