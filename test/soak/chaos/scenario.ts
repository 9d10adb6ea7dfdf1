import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Balancer, startBalancer } from '../../support/balancer.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { livingWith } from '../../support/run-processes.ts'
import { gather } from './clients/crowd.ts'
import { type FaultKind, type FaultTime, inflict, planFaults } from './faults.ts'
import { type GatewayProgram, prepareGateway } from './gateway-program.ts'
import { describeLeak, isCutByFault, leakedSessions } from './leaked-sessions.ts'
import { type Counts, Ledger } from './ledger.ts'
import { type ChaosServers, startServers } from './servers/servers.ts'

/** A deployment, and what is done to it. */
export interface Scenario {
  readonly name: string
  readonly about: string
  readonly fault: FaultKind
  readonly gateways: number // more than one: on PostgreSQL, behind a balancer
}

export const SCENARIOS: readonly Scenario[] = [
  { name: 'one', about: 'one gateway on SQLite, killed and started again', fault: 'kill', gateways: 1 },
  { name: 'replicas', about: 'three replicas on PostgreSQL, one at random killed', fault: 'kill', gateways: 3 },
  { name: 'stopped', about: 'three replicas, one stopped (SIGSTOP) for 0.5–10 s', fault: 'stop', gateways: 3 },
  { name: 'postgres', about: 'three replicas, PostgreSQL killed and restarted', fault: 'postgres', gateways: 3 },
  { name: 'rolling', about: 'three replicas, restarted in turn (SIGTERM)', fault: 'term', gateways: 3 },
]

export interface ChaosOptions {
  readonly clients: number
  readonly faults: number
  readonly seed: number
  readonly paceMs: number
  readonly calmMs?: number // with calls and without faults, at the end
  readonly leaveMs?: number // in which the gateways end what they do not need
  readonly report?: (line: string) => void
}

/** What a scenario counted. */
export interface ScenarioResult extends Counts {
  readonly name: string
  readonly clients: number
  readonly faults: number
  readonly seed: number
  readonly seconds: number
  readonly orphans: number // processes of servers whose gateway is gone
  readonly leaked: number // sessions at servers that no gateway knows
  readonly leakedAtKill: number // of these, cut by a kill before anything was stored
  readonly findings: readonly string[] // one line for each thing that must never happen
}

const TASK_AFTER_MS = 300 // in which some calls end, and others do not
const CALM_MS = 3_000
const LEAVE_MS = 90_000 // the gateway sweeps abandoned sessions once a minute
const EXIT_MS = 10_000 // for processes to exit after their client has left
const POLL_MS = 250
const SERVED_SHARE = 4 // between two faults, as many results as a quarter of the clients
const SERVED_MS = 20_000

const workspacesOf = (servers: readonly string[]): object =>
  Object.fromEntries([...servers.map(name => [name, { servers: [name] }]), ['all', { servers }]])

/** Whatever runs during a scenario. */
interface Stage {
  readonly folder: string
  readonly run: string
  readonly ledger: Ledger
  readonly servers: ChaosServers
  readonly gateways: readonly GatewayProgram[]
  readonly postgres: TestPostgres | undefined
  readonly balancer: Balancer | undefined
}

/** Builds the stage, uses it, and takes everything down whatever happened. */
const onStage = async <T>(count: number, use: (stage: Stage) => Promise<T>): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-chaos-'))
  const run = randomUUID()
  process.env.CHAOS_STAGE = run // inherited by PostgreSQL, which outlives a harness that is ended
  const endAll = (): void => {
    for (const pid of livingWith(run)) if (pid !== process.pid) process.kill(pid, 'SIGKILL')
  }
  process.once('exit', endAll)
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  try {
    const ledger = new Ledger()
    const servers = await startServers(folder, ledger, run)
    closing.push(() => servers.close())
    const postgres = count > 1 ? await startPostgres() : undefined
    if (postgres) closing.push(() => postgres.stop())
    const gateways: GatewayProgram[] = []
    const config = {
      mcpServers: servers.entries,
      workspaces: workspacesOf(Object.keys(servers.entries)),
      tasks: { afterMs: TASK_AFTER_MS },
      ...(postgres && { store: postgres.url }),
    }
    for (let at = 0; at < count; at++) {
      const own = join(folder, `gateway-${at}`)
      await mkdir(own)
      gateways.push(await prepareGateway(own, config, run))
    }
    closing.push(async () => void (await Promise.all(gateways.map(gateway => gateway.stop()))))
    await Promise.all(gateways.map(gateway => gateway.start()))
    const balancer = count > 1 ? await startBalancer(() => gateways.map(({ origin }) => origin)) : undefined
    if (balancer) closing.push(() => balancer.close())
    return await use({ folder, run, ledger, servers, gateways, postgres, balancer })
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {})
    endAll()
    process.off('exit', endAll)
  }
}

/** Processes of servers, and others, that no living gateway has started, and that do not exit by themselves. */
const orphansOf = async ({ run, gateways }: Stage): Promise<number[]> => {
  const pids = new Set(gateways.map(({ pid }) => pid))
  const find = () => livingWith(`CHAOS_RUN=${run}`).filter(pid => !pids.has(pid) && !pids.has(parentOf(pid)))
  const deadline = Date.now() + EXIT_MS
  while (find().length > 0 && Date.now() < deadline) await sleep(POLL_MS)
  return find()
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return 'ended since'
  }
}

const parentOf = (pid: number): number => {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}

/**
 * Waits until clients have so many results, and the calls up to that number have ended: on a slow machine, faults would
 * come before any call was served, and a call would be cut by three of them before its client can resume it.
 */
const untilServed = async (ledger: Ledger, results: number, calls: number): Promise<void> => {
  const deadline = Date.now() + SERVED_MS
  while ((ledger.counts().results < results || ledger.isUnderWay(calls)) && Date.now() < deadline) await sleep(POLL_MS)
}

/** Runs one scenario. */
export const runScenario = (scenario: Scenario, options: ChaosOptions): Promise<ScenarioResult> =>
  onStage(scenario.gateways, async stage => {
    const { ledger, servers, gateways, postgres, balancer, run } = stage
    const { seed, calmMs = CALM_MS, leaveMs = LEAVE_MS, report = () => {} } = options
    const startedAt = Date.now()
    const station = {
      origin: balancer?.origin ?? gateways[0]?.origin ?? '',
      data: gateways.map(({ data }) => data),
      run,
      servers: servers.numbered,
    }
    const crowd = await gather(station, { ...options, ledger })
    report(`${scenario.name}: ${crowd.size} clients are connected`)
    const plan = planFaults(scenario.fault, options.faults, gateways.length, seed)
    const times: FaultTime[] = []
    let callsBefore = 0 // the fault before
    for (const [at, fault] of plan.entries()) {
      times.push(await inflict(fault, { gateways, postgres }))
      const { calls, results, tasks, sessionsLost, tasksLost } = ledger.counts()
      const lost = `${sessionsLost} sessions and ${tasksLost} tasks lost`
      report(`${scenario.name}: fault ${at + 1}, ${calls} calls, ${tasks} tasks, ${results} results, ${lost}`)
      await untilServed(ledger, results + crowd.size / SERVED_SHARE, callsBefore)
      callsBefore = calls
    }
    await sleep(calmMs)
    await crowd.stop()
    servers.readExecuted()
    const [counts, faults] = [ledger.counts(), ledger.faults()]
    report(`${scenario.name}: every call has ended`)
    await crowd.leave()
    const kills = gateways.flatMap(({ holderKills }) => holderKills)
    const faultTimes = [...times, ...kills].toSorted((one, other) => one.beganAt - other.beganAt)
    const left = await leakedSessions(servers.openSessions, faultTimes, leaveMs)
    const leaked = left.filter(session => !isCutByFault(session, faultTimes))
    const orphans = await orphansOf(stage)
    return {
      ...counts,
      name: scenario.name,
      clients: crowd.size,
      faults: plan.length,
      seed,
      seconds: Math.round((Date.now() - startedAt) / 1000),
      orphans: orphans.length,
      leaked: left.length,
      leakedAtKill: left.length - leaked.length,
      findings: [
        ...faults,
        ...orphans.map(pid => `orphaned process ${pid}: ${commandOf(pid)}`),
        ...leaked.map(session => describeLeak(session, faultTimes)),
      ],
    }
  })
