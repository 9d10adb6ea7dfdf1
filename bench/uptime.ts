import { startContestant, startUpstream, stopAll, worker } from './children.ts'
import type { Figures, Job } from './load.ts'
import type { Time } from './warm-up.ts'

/** One tenth of all calls to one process. */
export interface Tenth {
  readonly calls: number
  readonly cpuMicrosPerCall: number
  readonly rssMiB: number // at its end
  readonly heapMiB: number // the least that `/metrics` says within it: most of the garbage is collected then
}

const TENTHS = 10
const TURN_MS = 500
const CONNECTIONS = 16

const heapMiB = async (url: string): Promise<number> => {
  const text = await fetch(new URL('/metrics', url)).then(response => response.text())
  return Number(/^nodejs_heap_size_used_bytes (\S+)$/m.exec(text)?.[1] ?? Number.NaN) / 2 ** 20
}

const timeTenth = async (time: Time, job: Job, least: number): Promise<Tenth> => {
  let [calls, cpu, rssMiB, heap] = [0, 0, 0, Number.POSITIVE_INFINITY]
  while (calls < least) {
    const figures = await time(job)
    if (figures.calls === 0) throw new Error('the gateway answered no call within a turn')
    calls += figures.calls
    cpu += figures.calls * figures.cpuMicrosPerCall
    rssMiB = figures.rssMiB
    heap = Math.min(heap, await heapMiB(job.target.url))
  }
  return { calls, cpuMicrosPerCall: cpu / calls, rssMiB, heapMiB: heap }
}

/** Small calls of 2026-07-28 to one process, about so many, in ten parts. */
export const timeUptime = async (calls: number): Promise<Tenth[]> => {
  try {
    const target = await startContestant('dragoman', await startUpstream())
    const time = worker<Job, Figures>('load')
    const job: Job = { target, dialect: 'modern', scenario: 'echo', connections: CONNECTIONS, milliseconds: TURN_MS }
    const tenths: Tenth[] = []
    for (let at = 0; at < TENTHS; at++) {
      const tenth = await timeTenth(time, job, calls / TENTHS)
      tenths.push(tenth)
      console.error(`${at + 1}/${TENTHS} of ${calls} calls  ${tenth.cpuMicrosPerCall.toFixed(1).padStart(7)} µs/call`)
    }
    return tenths
  } finally {
    await stopAll()
  }
}
