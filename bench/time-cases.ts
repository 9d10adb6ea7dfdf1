import { nextMessage, start, startContestant, startUpstream, stopAll, worker } from './children.ts'
import type { Ready } from './contestant.ts'
import type { Figures, Job } from './load.ts'
import type { Target } from './peer.ts'
import type { SessionJob } from './session-streams.ts'
import { untilListed } from './until-listed.ts'
import { rotate } from './warm-up.ts'

/** Small calls to one gateway that holds much. Cases with the same contestant and sessions share a process. */
export interface TimedCase {
  readonly contestant: string
  readonly about: string
  readonly tools?: number // that are listed before anything is timed; none: the gateway has the upstream of two eras
  readonly names?: readonly string[] // of the tools that are called in turn
  readonly sessions?: number // idle ones that are opened first
}

/** One timing of one case. */
export interface CaseCell extends Figures {
  readonly name: string
  readonly round: number
}

export interface CaseTiming {
  readonly connections: number
  readonly milliseconds: number
  readonly warmMs: number // of each turn
  readonly warmTurns: number
}

const processOf = ({ contestant, sessions = 0 }: TimedCase): string => `${contestant} with ${sessions}`

const jobOf = (target: Ready, { names }: TimedCase, connections: number, milliseconds: number): Job => ({
  target,
  dialect: target.dialect,
  scenario: 'echo',
  connections,
  milliseconds,
  ...(names && { names }),
})

/** One round with fresh processes, each warmed up as long however many cases it has a part in. */
export const timeCases = async (
  cases: Readonly<Record<string, TimedCase>>,
  round: number,
  { connections, milliseconds, warmMs, warmTurns }: CaseTiming,
): Promise<CaseCell[]> => {
  const ready = new Map<string, Ready>()
  const cells: CaseCell[] = []
  try {
    const [plain, many] = [await startUpstream(), await nextMessage<Target>(start('many-upstream'))]
    const time = worker<Job, Figures>('load')
    const open = worker<SessionJob, number>('session-streams')
    for (const each of Object.values(cases)) {
      const key = processOf(each)
      if (ready.has(key)) continue
      const target = await startContestant(each.contestant, each.tools === undefined ? plain : many)
      ready.set(key, target)
      if (each.tools !== undefined) await untilListed(target.url, each.tools)
      if (each.sessions !== undefined) await open({ url: target.url, count: each.sessions, withStream: false })
      const served = Object.values(cases).filter(other => processOf(other) === key)
      for (let turn = 0; turn < warmTurns; turn++)
        await time(jobOf(target, served[turn % served.length] ?? each, connections, warmMs))
    }
    for (const [name, each] of rotate(Object.entries(cases), round)) {
      const target = ready.get(processOf(each)) as Ready
      const cell = { name, round, ...(await time(jobOf(target, each, connections, milliseconds))) }
      cells.push(cell)
      console.error(`${round + 1}  ${each.about.padEnd(34)} ${cell.cpuMicrosPerCall.toFixed(1).padStart(7)} µs/call`)
    }
  } finally {
    await stopAll()
  }
  return cells
}
