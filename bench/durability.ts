// `npm --prefix bench run durability`: what stored sessions and replicas cost, and how quickly a session moves.
import { execSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startBenchPostgres } from './bench-postgres.ts'
import { startUpstream, stopAll, worker } from './children.ts'
import { type DurabilityCell, type DurabilityResults, durabilitySection } from './durability-report.ts'
import type { Figures, Job } from './load.ts'
import { publish } from './page.ts'
import type { Target } from './peer.ts'
import { kilobytesEach } from './probed.ts'
import { facts, save } from './results.ts'
import type { ScenarioName } from './scenarios.ts'
import type { SessionJob } from './session-streams.ts'
import { type StartedDragoman, startProbedDragoman, startWith } from './start-dragoman.ts'
import { countStatements } from './statement-counter.ts'
import { summarize } from './statistics.ts'
import { timeStarts } from './stored-starts.ts'
import { timeTakeovers } from './takeover.ts'
import { rotate } from './warm-up.ts'

const CONNECTIONS = 16
const TIMING_MS = 500
// A round counts the median of so many timings of each case; those of events take longer, because work is done later.
const PASSES: Readonly<Record<ScenarioName, number>> = { echo: 9, big: 9, events: 3 }
const MOST_PASSES = Math.max(...Object.values(PASSES))
// By calls, not by time: the slower side of a ratio would be warmed up less, and compile more while it is timed.
const WARM_CALLS: Readonly<Record<ScenarioName, number>> = { echo: 15_000, big: 15_000, events: 5_000 }
const MOST_WARM_MS = 60_000
const SETTLE_MS = 2_500 // longer than a heartbeat, which begins checkpoints: they are charged to the events they copy
const WHOLE_ROUNDS = 7
const COUNTED_CALLS = 10_000
const STORED_SESSIONS = 10_000
const IDLE_SESSIONS = 20_000
const WARM_SESSIONS = 500 // of them, before memory is measured for the first time
const SPARE_FILES = 300 // of the gateway and of its clients, beside the streams
const KILLS = 8
const STOPS = 2

// Cases with events have processes of their own: what they leave to be done later (a checkpoint, streams that are kept
// for a reconnect, a heap that has grown) is no cost of a plain call.
// Both sides of a ratio serve the same cases, so that what one has compiled for another case is no difference.
interface Gateways {
  readonly modern: StartedDragoman
  readonly memory: StartedDragoman
  readonly sqlite: StartedDragoman
  readonly memoryWithEvents: StartedDragoman
  readonly sqliteWithEvents: StartedDragoman
  readonly replicas: readonly [StartedDragoman, StartedDragoman]
}

/** One timing: where calls go, where their sessions are opened, and whose CPU they cost. */
interface Case {
  readonly dialect: Job['dialect']
  readonly scenario: ScenarioName
  readonly at: (gateways: Gateways) => Target
  readonly home?: (gateways: Gateways) => Target
  readonly alsoCharged?: (gateways: Gateways) => Target
}

const [first, second] = [(all: Gateways) => all.replicas[0], (all: Gateways) => all.replicas[1]]
const modern = (all: Gateways) => all.modern
const memory = (all: Gateways) => all.memory
const sqlite = (all: Gateways) => all.sqlite
const memoryWithEvents = (all: Gateways) => all.memoryWithEvents
const sqliteWithEvents = (all: Gateways) => all.sqliteWithEvents

const CASES: Readonly<Record<string, Case>> = {
  'modern, no store': { dialect: 'modern', scenario: 'echo', at: modern },
  'modern, one of two replicas': { dialect: 'modern', scenario: 'echo', at: first },
  'session, memory': { dialect: 'legacy', scenario: 'echo', at: memory },
  'session, SQLite': { dialect: 'legacy', scenario: 'echo', at: sqlite },
  'session, at home': { dialect: 'legacy', scenario: 'echo', at: first, alsoCharged: second },
  'session, forwarded': { dialect: 'legacy', scenario: 'echo', at: second, home: first, alsoCharged: first },
  '20 events, memory': { dialect: 'legacy', scenario: 'events', at: memoryWithEvents },
  '20 events, SQLite': { dialect: 'legacy', scenario: 'events', at: sqliteWithEvents },
}

const configOf = (upstream: Target, store?: string) => ({
  ...(store !== undefined && { store }),
  limits: { principalSessions: 30_000 },
  mcpServers: { modern: { url: upstream.url, era: 'modern' }, legacy: { url: upstream.url, era: 'legacy' } },
  workspaces: { modern: { servers: ['modern'] }, legacy: { servers: ['legacy'] } },
})

const jobOf = (each: Case, gateways: Gateways, milliseconds: number): Job => {
  const { dialect, scenario } = each
  const urlOf = ({ url }: Target): string => `${url}/${dialect}`
  const target = each.at(gateways)
  const also = each.alsoCharged?.(gateways)
  return {
    target: { url: urlOf(target), pid: target.pid },
    dialect,
    scenario,
    connections: CONNECTIONS,
    milliseconds,
    ...(scenario === 'events' && { settleMs: SETTLE_MS }),
    ...(each.home && { home: urlOf(each.home(gateways)) }),
    ...(also && { alsoCharged: [also.pid] }),
  }
}

const warmUp = async (scenario: ScenarioName, time: () => Promise<Figures>): Promise<void> => {
  const end = performance.now() + MOST_WARM_MS
  for (let calls = 0; calls < WARM_CALLS[scenario] && performance.now() < end; ) calls += (await time()).calls
}

/** Every round has fresh processes, and times the cases in rotated order. */
const timeRound = async (round: number, store: string): Promise<DurabilityCell[]> => {
  const started: StartedDragoman[] = []
  const begin = async (config: ReturnType<typeof configOf>, args: readonly string[] = []) => {
    const gateway = await startWith(config, args)
    started.push(gateway)
    return gateway
  }
  try {
    const upstream = await startUpstream()
    const time = worker<Job, Figures>('load')
    const gateways: Gateways = {
      modern: await begin(configOf(upstream), ['--ephemeral']),
      memory: await begin(configOf(upstream), ['--ephemeral']),
      sqlite: await begin(configOf(upstream)),
      memoryWithEvents: await begin(configOf(upstream), ['--ephemeral']),
      sqliteWithEvents: await begin(configOf(upstream)),
      replicas: [await begin(configOf(upstream, store)), await begin(configOf(upstream, store))],
    }
    for (const each of Object.values(CASES)) await warmUp(each.scenario, () => time(jobOf(each, gateways, TIMING_MS)))
    const timings = new Map<string, Figures[]>()
    for (let pass = 0; pass < MOST_PASSES; pass++)
      for (const [name, each] of rotate(Object.entries(CASES), round + pass).filter(
        ([, { scenario }]) => pass < PASSES[scenario],
      ))
        timings.set(name, [...(timings.get(name) ?? []), await time(jobOf(each, gateways, TIMING_MS))])
    return [...timings].map(([name, figures]) => {
      const cpuMicrosPerCall = summarize(figures.map(figure => figure.cpuMicrosPerCall)).median
      const calls = figures.reduce((sum, figure) => sum + figure.calls, 0)
      console.error(`${round + 1}  ${name.padEnd(28)} ${cpuMicrosPerCall.toFixed(1).padStart(7)} µs/call`)
      return { name, round, cpuMicrosPerCall, calls }
    })
  } finally {
    for (const { child } of started) child.kill()
    await stopAll()
  }
}

/** Statements while modern calls run, beside as much time without any. */
const countDuringCalls = async (store: string): Promise<DurabilityResults['statements']> => {
  const counter = await countStatements(store)
  const gateway = await (async () => {
    const upstream = await startUpstream()
    return startWith(configOf(upstream, counter.url), [])
  })()
  try {
    const time = worker<Job, Figures>('load')
    const target = { url: `${gateway.url}/modern`, pid: gateway.pid }
    const job: Job = { target, dialect: 'modern', scenario: 'echo', connections: CONNECTIONS, milliseconds: 1_000 }
    await time(job) // lists and the server's session are known from now on
    const begun = performance.now()
    const before = counter.count()
    let calls = 0
    while (calls < COUNTED_CALLS) calls += (await time(job)).calls
    const during = counter.count() - before
    const ms = performance.now() - begun
    const idleBefore = counter.count()
    await sleep(ms)
    return { calls, during, idle: counter.count() - idleBefore }
  } finally {
    gateway.child.kill()
    counter.close()
    await stopAll()
  }
}

/** Each stream is an open file of the gateway, and a system may allow it fewer than there are sessions. */
const mostStreams = (): number => {
  const allowed = Number(execSync('ulimit -n', { encoding: 'utf8' }))
  return Number.isNaN(allowed) ? IDLE_SESSIONS : Math.min(IDLE_SESSIONS, allowed - SPARE_FILES)
}

const measureIdle = async (): Promise<DurabilityResults['idle']> => {
  try {
    const upstream = await startUpstream()
    const gateway = await startProbedDragoman(configOf(upstream))
    const open = worker<SessionJob, number>('session-streams')
    const url = `${gateway.url}/modern`
    const streams = mostStreams()
    await open({ url, count: WARM_SESSIONS, withStream: true })
    const before = await gateway.memory()
    await open({ url, count: streams - WARM_SESSIONS, withStream: true })
    await open({ url, count: IDLE_SESSIONS - streams, withStream: false })
    const during = await gateway.memory()
    await open({ url: undefined })
    return { sessions: IDLE_SESSIONS, streams, each: kilobytesEach(before, during, IDLE_SESSIONS - WARM_SESSIONS) }
  } finally {
    await stopAll()
  }
}

const measureTakeovers = async (store: string): Promise<DurabilityResults['takeover']> => {
  const upstream = await startUpstream()
  const config = configOf(upstream, store)
  const other = await startWith(config, [])
  try {
    const killed: number[] = []
    const hung: number[] = []
    for (let at = 0; at < KILLS; at++) killed.push(...(await timeTakeovers(config, 'legacy', other, 'SIGKILL')))
    for (let at = 0; at < STOPS; at++) hung.push(...(await timeTakeovers(config, 'legacy', other, 'SIGSTOP')))
    return { killed, hung }
  } finally {
    other.child.kill()
    await stopAll()
  }
}

const measureStarts = async (sessions: number, rounds: number): Promise<DurabilityResults['starts'][number]> => {
  try {
    const upstream = await startUpstream()
    const starts = await timeStarts(configOf(upstream), origin => `${origin}/modern`, sessions, rounds)
    return { sessions, ...starts }
  } finally {
    await stopAll()
  }
}

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? WHOLE_ROUNDS)
const known = facts()
const postgres = await startBenchPostgres()
try {
  const idle = await measureIdle() // first: it fails where a process may open too few files
  const cells: DurabilityCell[] = []
  for (let round = 0; round < rounds; round++) cells.push(...(await timeRound(round, postgres.url)))
  const results: DurabilityResults = {
    ...known,
    rounds,
    cells,
    statements: await countDuringCalls(postgres.url),
    starts: [await measureStarts(STORED_SESSIONS, rounds), await measureStarts(IDLE_SESSIONS, rounds)],
    takeover: await measureTakeovers(postgres.url),
    idle,
  }
  const section = durabilitySection(results)
  save('durability', results)
  if (rounds >= WHOLE_ROUNDS) publish({ Durability: section })
  console.log(section)
} finally {
  await postgres.stop()
}
process.exit() // gateways end with this process
