// `npm --prefix bench run recorder`: what the flight recorder costs a call. It is switched on and off in one process, turn by
// turn, so that both sides have the same machine code and the same neighbours.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startUpstream, stopAll, worker } from './children.ts'
import type { Figures, Job } from './load.ts'
import { figure, spread, table } from './markdown.ts'
import { publish } from './page.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { type DragomanWithData, startDragomanWithData } from './start-dragoman.ts'
import { type Summary, summarize } from './statistics.ts'

const CONNECTIONS = 16
const TIMING_MS = 400
const WARM_MS = 3_000
const TURNS = 25 // of each side in one round
const WHOLE_ROUNDS = 5
const AT_MOST = 1.05
const DIALECTS = ['modern', 'legacy'] as const

interface Cell {
  readonly dialect: Job['dialect']
  readonly round: number
  readonly offMicros: number
  readonly onMicros: number
  readonly ratio: number // the median of the ratios of neighbouring turns
}

interface RecorderResults extends Facts {
  readonly rounds: number
  readonly cells: readonly Cell[]
}

/** The secret of the daemon, which it writes soon after it has begun to listen. */
const secretIn = async (data: string): Promise<string> => {
  for (let attempt = 0; ; attempt++) {
    const text = await readFile(join(data, 'daemon.json'), 'utf8').catch(() => undefined)
    if (text !== undefined) return (JSON.parse(text) as { token: string }).token
    if (attempt >= 100) throw new Error('the daemon has not announced itself')
    await sleep(50)
  }
}

const switchTo = async ({ url, data }: DragomanWithData, isOn: boolean): Promise<void> => {
  const token = await secretIn(data)
  const response = await fetch(new URL('/admin/recordings', url), {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ isOn }),
  })
  if (!response.ok) throw new Error(`the recorder was not switched: ${await response.text()}`)
}

const timeRound = async (round: number): Promise<Cell[]> => {
  try {
    const upstream = await startUpstream()
    const gateway = await startDragomanWithData({
      mcpServers: { modern: { url: upstream.url, era: 'modern' }, legacy: { url: upstream.url, era: 'legacy' } },
      workspaces: { modern: { servers: ['modern'] }, legacy: { servers: ['legacy'] } },
    })
    const time = worker<Job, Figures>('load')
    const cells: Cell[] = []
    for (const dialect of DIALECTS) {
      const target = { url: `${gateway.url}/${dialect}`, pid: gateway.pid }
      const run = async (isOn: boolean, milliseconds: number): Promise<number> => {
        await switchTo(gateway, isOn)
        return (await time({ target, dialect, scenario: 'echo', connections: CONNECTIONS, milliseconds }))
          .cpuMicrosPerCall
      }
      for (const isOn of [true, false, true]) await run(isOn, WARM_MS)
      const [off, on, ratios]: number[][] = [[], [], []]
      for (let turn = 0; turn < TURNS; turn++) {
        const isFirst = turn % 2 === 0
        const first = await run(isFirst, TIMING_MS)
        const second = await run(!isFirst, TIMING_MS)
        const [with_, without] = isFirst ? [first, second] : [second, first]
        on?.push(with_)
        off?.push(without)
        ratios?.push(with_ / without)
      }
      const [offMicros, onMicros, ratio] = [off, on, ratios].map(values => summarize(values ?? []).median)
      console.error(
        `${round + 1}  ${dialect} off ${offMicros?.toFixed(1)} on ${onMicros?.toFixed(1)} µs/call, ratio ${ratio?.toFixed(3)}`,
      )
      cells.push({ dialect, round, offMicros: offMicros ?? 0, onMicros: onMicros ?? 0, ratio: ratio ?? 0 })
    }
    gateway.child.kill()
    return cells
  } finally {
    await stopAll()
  }
}

const summaryOf = ({ cells }: RecorderResults, dialect: string, value: (cell: Cell) => number): Summary =>
  summarize(cells.filter(cell => cell.dialect === dialect).map(value))

const section = (results: RecorderResults): string => {
  const rows = DIALECTS.map(dialect => {
    const ratio = summaryOf(results, dialect, cell => cell.ratio)
    const verdict = ratio.median <= AT_MOST ? 'met' : ratio.min <= AT_MOST ? 'within the spread' : '**missed**'
    const micros = [(cell: Cell) => cell.offMicros, (cell: Cell) => cell.onMicros]
    const shown = micros.map(value => spread(summaryOf(results, dialect, value)))
    return [`${dialect} call`, ...shown, spread(ratio), `≤ ${figure(AT_MOST)}`, verdict]
  })
  return [
    factsLine(results, OURS_ALONE),
    `Small calls on ${CONNECTIONS} connections through one gateway, whose recorder is switched on and off: ${TURNS} turns of ${TIMING_MS} ms each in a round,
${results.rounds} rounds with fresh processes. A round counts the median of the ratios of neighbouring turns. Median with lowest and highest.`,
    table(['call', 'off, CPU µs', 'on, CPU µs', 'on ÷ off', 'bar', 'verdict'], rows),
  ].join('\n\n')
}

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? WHOLE_ROUNDS)
const known = facts()
const cells: Cell[] = []
for (let round = 0; round < rounds; round++) cells.push(...(await timeRound(round)))
const results: RecorderResults = { ...known, rounds, cells }
save('recorder', results)
if (rounds >= WHOLE_ROUNDS) publish({ 'Flight recorder': section(results) })
console.log(section(results))
process.exit() // gateways end with this process
