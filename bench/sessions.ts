// `npm --prefix bench run sessions`: what it costs to open a session, and to end it again, in small calls.
import { parseArgs } from 'node:util'
import { startUpstream, stopAll, worker } from './children.ts'
import type { Figures, Job } from './load.ts'
import { figure, spread, table } from './markdown.ts'
import type { OpenFigures, OpenJob } from './open-sessions.ts'
import { publish } from './page.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { type StartedDragoman, startWith } from './start-dragoman.ts'
import { summarize } from './statistics.ts'

const CONNECTIONS = 16
const TIMING_MS = 500
const WARM_MS = 2_500
// By their number, not by time: compiling would be charged to the first ones.
const WARM_SESSIONS = { most: 8_000, milliseconds: 20_000 }
const TIMED_SESSIONS = { most: Number.MAX_SAFE_INTEGER, milliseconds: TIMING_MS }
const PASSES = 5 // a round counts the median of so many turns of each case
const WHOLE_ROUNDS = 5
const AT_MOST = 3
const STORES = { SQLite: [], memory: ['--ephemeral'] } as const
const ERAS = ['modern', 'legacy'] as const

type Store = keyof typeof STORES

interface Case {
  readonly store: Store
  readonly era: (typeof ERAS)[number] // of the server
}

interface Cell extends Case {
  readonly round: number
  readonly callMicros: number
  readonly openMicros: number // `initialize` and `notifications/initialized`
  readonly wholeMicros: number // and DELETE
  readonly openRatio: number // to a call: the median of the ratios of neighbouring turns
  readonly wholeRatio: number
}
const FIGURES = ['callMicros', 'openMicros', 'wholeMicros', 'openRatio', 'wholeRatio'] as const

interface SessionsResults extends Facts {
  readonly rounds: number
  readonly cells: readonly Cell[]
}

const CASES: readonly Case[] = (Object.keys(STORES) as Store[]).flatMap(store => ERAS.map(era => ({ store, era })))

const timeRound = async (round: number, cases: readonly Case[]): Promise<Cell[]> => {
  const gateways = new Map<Store, StartedDragoman>()
  try {
    const upstream = await startUpstream()
    const config = {
      limits: { principalSessions: 30_000 },
      mcpServers: { modern: { url: upstream.url, era: 'modern' }, legacy: { url: upstream.url, era: 'legacy' } },
      workspaces: { modern: { servers: ['modern'] }, legacy: { servers: ['legacy'] } },
    }
    for (const store of new Set(cases.map(each => each.store)))
      gateways.set(store, await startWith(config, STORES[store]))
    const load = worker<Job, Figures>('load')
    const open = worker<OpenJob, OpenFigures>('open-sessions')
    const targetOf = ({ store, era }: Case) => {
      const { url = '', pid = 0 } = gateways.get(store) ?? {}
      return { url: `${url}/${era}`, pid }
    }
    const call = async (each: Case, milliseconds: number): Promise<number> => {
      const job = { dialect: 'legacy', scenario: 'echo', connections: CONNECTIONS } as const
      return (await load({ ...job, target: targetOf(each), milliseconds })).cpuMicrosPerCall
    }
    const session = async (
      each: Case,
      endsEach: boolean,
      bounds: Pick<OpenJob, 'most' | 'milliseconds'>,
    ): Promise<number> => {
      const job = { connections: CONNECTIONS, endsEach, target: targetOf(each), ...bounds }
      const { cpuMicrosPerSession } = await open(job)
      return cpuMicrosPerSession ?? Number.NaN
    }
    for (const each of cases) {
      await call(each, WARM_MS)
      await session(each, true, WARM_SESSIONS)
    }
    const cells: Cell[] = []
    for (const each of cases) {
      const turns: Pick<Cell, (typeof FIGURES)[number]>[] = []
      for (let pass = 0; pass < PASSES; pass++) {
        const callMicros = await call(each, TIMING_MS)
        const openMicros = await session(each, false, TIMED_SESSIONS)
        const wholeMicros = await session(each, true, TIMED_SESSIONS)
        const [openRatio, wholeRatio] = [openMicros / callMicros, wholeMicros / callMicros]
        turns.push({ callMicros, openMicros, wholeMicros, openRatio, wholeRatio })
      }
      const median = (name: (typeof FIGURES)[number]): number => summarize(turns.map(turn => turn[name])).median
      const cell: Cell = {
        ...each,
        round,
        callMicros: median('callMicros'),
        openMicros: median('openMicros'),
        wholeMicros: median('wholeMicros'),
        openRatio: median('openRatio'),
        wholeRatio: median('wholeRatio'),
      }
      console.error(
        `${round + 1}  ${each.store.padEnd(7)} ${each.era.padEnd(7)} ${FIGURES.map(name => `${name} ${cell[name].toFixed(2)}`).join('  ')}`,
      )
      cells.push(cell)
    }
    return cells
  } finally {
    for (const { child } of gateways.values()) child.kill()
    await stopAll()
  }
}

const section = (results: SessionsResults): string => {
  const rows = CASES.map(({ store, era }) => {
    const cells = results.cells.filter(cell => cell.store === store && cell.era === era)
    const [call, open, whole, openRatio, wholeRatio] = FIGURES.map(name => summarize(cells.map(cell => cell[name])))
    if (!call || !open || !whole || !openRatio || !wholeRatio) throw new Error('a case has no figures')
    const verdict = openRatio.median <= AT_MOST ? 'met' : openRatio.min <= AT_MOST ? 'within the spread' : '**missed**'
    const shown = [call, open, openRatio].map(spread)
    return [`${store}, ${era} server`, ...shown, `≤ ${figure(AT_MOST)}`, verdict, spread(whole), spread(wholeRatio)]
  })
  return [
    factsLine(results, OURS_ALONE),
    `Clients of 2025-11-25 on ${CONNECTIONS} connections: small calls in open sessions, sessions that are opened by \`initialize\` and
\`notifications/initialized\`, and sessions from there to their DELETE, ${PASSES} turns of ${TIMING_MS} ms of each, in ${results.rounds} rounds with
fresh processes. A round counts the median of the ratios of neighbouring turns. CPU is that of the gateway’s process. A legacy
server has a session of its own for each: the gateway sends it the same three requests. Median with lowest and highest.`,
    table(
      ['sessions kept in', 'call, CPU µs', 'open, CPU µs', 'open ÷ call', 'bar', 'verdict', 'to DELETE', '÷ call'],
      rows,
    ),
  ].join('\n\n')
}

const { values } = parseArgs({ options: { rounds: { type: 'string' }, only: { type: 'string' } } })
const rounds = Number(values.rounds ?? WHOLE_ROUNDS)
const chosen = CASES.filter(
  ({ store, era }) => values.only === undefined || values.only.split(',').includes(`${store}-${era}`),
)
const known = facts()
const cells: Cell[] = []
for (let round = 0; round < rounds; round++) cells.push(...(await timeRound(round, chosen)))
const results: SessionsResults = { ...known, rounds, cells }
save('sessions', results)
if (rounds >= WHOLE_ROUNDS && values.only === undefined) publish({ Sessions: section(results) })
console.log(section(results))
