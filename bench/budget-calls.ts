// What the budget of a workspace costs a call of a tool by its name: the same servers in two workspaces of one process, turn
// by turn, so that both sides have the same machine code and the same neighbours.
import { nextMessage, start, stopAll, worker } from './children.ts'
import type { Figures, Job } from './load.ts'
import { calledNames, toolsOf } from './many-servers.ts'
import type { Target } from './peer.ts'
import { startDragomanWithData } from './start-dragoman.ts'
import { summarize } from './statistics.ts'
import { untilListed } from './until-listed.ts'

const CONNECTIONS = 16
const TIMING_MS = 400
const WARM_MS = 2_000
const SERVERS = 20
const BUDGET = { tokens: 5000 } // the favourites are the most used tools, so calls are counted

export const TURNS = 25 // of each side in one round

/** The workspaces that are compared with themselves. */
export const CALL_CASES = {
  many: { about: `${SERVERS} servers`, servers: SERVERS, names: calledNames(SERVERS, 'all', 'prefix') },
  one: { about: 'one server', servers: 1, names: toolsOf(SERVERS).slice(0, 50) },
} as const
export type CallCase = keyof typeof CALL_CASES
const CASES = Object.keys(CALL_CASES) as CallCase[]

/** CPU microseconds for each call in one round. */
export interface BudgetCalls {
  readonly case: CallCase
  readonly round: number
  readonly without: number
  readonly with: number
  readonly ratio: number // the median of the ratios of neighbouring turns
}

const startCompared = async (upstream: Target) => {
  const names = Array.from({ length: SERVERS }, (_, at) => `s${String(at).padStart(3, '0')}`)
  const url = (at: number): string => new URL(`/${SERVERS}/${at}`, upstream.url).href
  return startDragomanWithData({
    recorder: false,
    mcpServers: Object.fromEntries(names.map((name, at) => [name, { url: url(at), era: 'modern' }])),
    workspaces: Object.fromEntries(
      CASES.flatMap(each => {
        const servers = names.slice(0, CALL_CASES[each].servers)
        return [
          [each, { servers }],
          [`${each}-budget`, { servers, budget: BUDGET }],
        ]
      }),
    ),
  })
}

/** One round with fresh processes. Each answer is compared with what the tool was told. */
export const timeBudgetCalls = async (round: number): Promise<BudgetCalls[]> => {
  try {
    const gateway = await startCompared(await nextMessage<Target>(start('many-upstream')))
    const time = worker<Job, Figures>('load')
    const cells: BudgetCalls[] = []
    for (const each of CASES) {
      const { names } = CALL_CASES[each]
      await untilListed(`${gateway.url}/${each}`, toolsOf(SERVERS).length * CALL_CASES[each].servers)
      const run = async (hasBudget: boolean, milliseconds: number): Promise<number> => {
        const target = { url: `${gateway.url}/${each}${hasBudget ? '-budget' : ''}`, pid: gateway.pid }
        return (
          await time({ target, dialect: 'modern', scenario: 'echo', connections: CONNECTIONS, milliseconds, names })
        ).cpuMicrosPerCall
      }
      for (const hasBudget of [true, false, true, false]) await run(hasBudget, WARM_MS)
      const [without, with_, ratios]: [number[], number[], number[]] = [[], [], []]
      for (let turn = 0; turn < TURNS; turn++) {
        const isFirst = turn % 2 === 0
        const [first, second] = [await run(isFirst, TIMING_MS), await run(!isFirst, TIMING_MS)]
        const [withBudget, plain] = isFirst ? [first, second] : [second, first]
        with_.push(withBudget)
        without.push(plain)
        ratios.push(withBudget / plain)
      }
      const [plain, budgeted, ratio] = [without, with_, ratios].map(values => summarize(values).median) as [
        number,
        number,
        number,
      ]
      console.error(
        `${round + 1}  ${each} without ${plain.toFixed(1)} with ${budgeted.toFixed(1)} µs/call, ratio ${ratio.toFixed(3)}`,
      )
      cells.push({ case: each, round, without: plain, with: budgeted, ratio })
    }
    gateway.child.kill()
    return cells
  } finally {
    await stopAll()
  }
}
