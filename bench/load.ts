// The load client's process: does one timing per message it gets, and answers with the figures.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Caller, openCaller } from './caller.ts'
import { serveJobs } from './jobs.ts'
import type { Dialect, Target } from './peer.ts'
import { cpuMicros, rssMiB } from './process-figures.ts'
import { type ScenarioName, scenario } from './scenarios.ts'
import { quantile } from './statistics.ts'

/** One timing to do. */
export interface Job {
  readonly target: Target
  readonly dialect: Dialect
  readonly scenario: ScenarioName
  readonly connections: number
  readonly milliseconds: number
  readonly token?: string | undefined // a bearer token
  readonly home?: string // the URL where sessions are opened, if it is not the target's
  readonly alsoCharged?: readonly number[] // further processes whose CPU counts
  readonly settleMs?: number // after the last call, whose CPU counts, too: work that is done later
  readonly names?: readonly string[] // of the tools to call; none: the one the scenario is called after
}

/** What came of it; CPU is that of the contestant's process. */
export interface Figures {
  readonly calls: number
  readonly cpuMicrosPerCall: number
  readonly callsPerSecond: number
  readonly p50Micros: number
  readonly p99Micros: number
  readonly rssMiB: number
}

const repeat = (caller: Caller, end: number, latencies: number[]): Promise<void> =>
  new Promise(resolve => {
    const next = () => {
      const start = performance.now()
      if (start >= end) return resolve()
      caller.call(() => {
        latencies.push((performance.now() - start) * 1000)
        next()
      })
    }
    next()
  })

const time = async (job: Job, callers: readonly Caller[]): Promise<Figures> => {
  const latencies: number[] = []
  const charged = [job.target.pid, ...(job.alsoCharged ?? [])]
  const cpuOfAll = (): number => charged.reduce((sum, pid) => sum + cpuMicros(pid), 0)
  const cpuBefore = cpuOfAll()
  const start = performance.now()
  await Promise.all(callers.map(caller => repeat(caller, start + job.milliseconds, latencies)))
  const seconds = (performance.now() - start) / 1000
  if (job.settleMs !== undefined) await sleep(job.settleMs)
  const cpu = cpuOfAll() - cpuBefore
  const sorted = Float64Array.from(latencies).sort()
  return {
    calls: sorted.length,
    cpuMicrosPerCall: cpu / sorted.length,
    callsPerSecond: sorted.length / seconds,
    p50Micros: quantile(sorted, 0.5),
    p99Micros: quantile(sorted, 0.99),
    rssMiB: rssMiB(job.target.pid),
  }
}

const run = async (job: Job, fail: (error: Error) => void): Promise<Figures> => {
  const { token } = job
  const to = { url: new URL(job.target.url), token }
  // Each begins with another name: that all call the same server at the same moment is no case of its own.
  const namesFor = (index: number): readonly string[] | undefined => {
    const at = Math.floor((index * (job.names?.length ?? 0)) / job.connections)
    return job.names && [...job.names.slice(at), ...job.names.slice(0, at)]
  }
  const home = job.home === undefined ? undefined : { url: new URL(job.home), token }
  const open = (index: number) =>
    openCaller(to, job.dialect, scenario(job.scenario), fail, { names: namesFor(index), home })
  const callers = await Promise.all(Array.from({ length: job.connections }, (_, index) => open(index)))
  const figures = await time(job, callers)
  await Promise.all(callers.map(caller => caller.close()))
  return figures
}

serveJobs(run)
