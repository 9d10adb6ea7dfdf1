// `npm --prefix bench run observability`: what an audit log and traces cost a call.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { startUpstream, stopAll, worker } from './children.ts'
import type { Figures, Job } from './load.ts'
import { figure, spread, table } from './markdown.ts'
import { publish } from './page.ts'
import type { Target } from './peer.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { type StartedDragoman, startWith } from './start-dragoman.ts'
import { type Summary, summarize } from './statistics.ts'

const CONNECTIONS = 16
const TIMING_MS = 700
const PASSES = 5 // a round counts the median of so many timings of each case
const WARM_MS = 2_000
const WHOLE_ROUNDS = 7

/** The gateways that are compared, with the bar of each: a multiple of the CPU of the first. */
const VARIANTS = {
  plain: { atMost: 1, settings: { recorder: false } },
  'audit log': { atMost: 1.03, settings: { recorder: false, audit: true } },
  'traces, 1 % recorded': { atMost: 1.05, settings: { recorder: false, telemetry: { sampling: 0.01 } } },
} as const
type Variant = keyof typeof VARIANTS
const NAMES = Object.keys(VARIANTS) as Variant[]
const DIALECTS = ['modern', 'legacy'] as const

interface Cell {
  readonly variant: Variant
  readonly dialect: Job['dialect']
  readonly round: number
  readonly cpuMicrosPerCall: number
}

interface ObservabilityResults extends Facts {
  readonly rounds: number
  readonly cells: readonly Cell[]
}

/** A collector that takes everything. */
const startCollector = async (): Promise<string> => {
  const server = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const configOf = (variant: Variant, upstream: Target, endpoint: string) => {
  const { telemetry, ...rest } = { telemetry: undefined, ...VARIANTS[variant].settings }
  return {
    ...rest,
    ...(telemetry && { telemetry: { ...telemetry, endpoint } }),
    mcpServers: { modern: { url: upstream.url, era: 'modern' }, legacy: { url: upstream.url, era: 'legacy' } },
    workspaces: { modern: { servers: ['modern'] }, legacy: { servers: ['legacy'] } },
  }
}

/** Every round has fresh processes, and times the cases in rotated order. */
const timeRound = async (round: number, collector: string): Promise<Cell[]> => {
  const gateways = new Map<Variant, StartedDragoman>()
  try {
    const upstream = await startUpstream()
    const time = worker<Job, Figures>('load')
    for (const variant of NAMES) gateways.set(variant, await startWith(configOf(variant, upstream, collector), []))
    const cases = NAMES.flatMap(variant => DIALECTS.map(dialect => ({ variant, dialect })))
    const run = ({ variant, dialect }: (typeof cases)[number], milliseconds: number): Promise<Figures> => {
      const { url = '', pid = 0 } = gateways.get(variant) ?? {}
      const target = { url: `${url}/${dialect}`, pid }
      return time({ target, dialect, scenario: 'echo', connections: CONNECTIONS, milliseconds })
    }
    for (const each of cases) await run(each, WARM_MS)
    const timings = new Map(cases.map(each => [each, [] as number[]]))
    for (let pass = 0; pass < PASSES; pass++) {
      const at = (round + pass) % cases.length
      for (const each of [...cases.slice(at), ...cases.slice(0, at)])
        timings.get(each)?.push((await run(each, TIMING_MS)).cpuMicrosPerCall)
    }
    return [...timings].map(([each, values]) => {
      const cpuMicrosPerCall = summarize(values).median
      console.error(`${round + 1}  ${each.dialect} ${each.variant.padEnd(22)} ${cpuMicrosPerCall.toFixed(1)} µs/call`)
      return { ...each, round, cpuMicrosPerCall }
    })
  } finally {
    for (const { child } of gateways.values()) child.kill()
    await stopAll()
  }
}

const cpuOf = ({ cells }: ObservabilityResults, variant: Variant, dialect: string): number[] =>
  cells.filter(cell => cell.variant === variant && cell.dialect === dialect).map(cell => cell.cpuMicrosPerCall)

/** The ratio in each round, both sides timed within the same minute. */
const ratioOf = (results: ObservabilityResults, variant: Variant, dialect: string): Summary => {
  const base = cpuOf(results, 'plain', dialect)
  return summarize(cpuOf(results, variant, dialect).map((value, round) => value / (base[round] ?? Number.NaN)))
}

const section = (results: ObservabilityResults): string => {
  const rows = NAMES.flatMap(variant =>
    DIALECTS.map(dialect => {
      const ratio = ratioOf(results, variant, dialect)
      const { atMost } = VARIANTS[variant]
      const verdict = ratio.median <= atMost ? 'met' : ratio.min <= atMost ? 'within the spread' : '**missed**'
      const isBase = variant === 'plain'
      return [
        `${dialect} call, ${variant}`,
        spread(summarize(cpuOf(results, variant, dialect))),
        isBase ? '' : spread(ratio),
        isBase ? '' : `≤ ${figure(atMost)}`,
        isBase ? '' : verdict,
      ]
    }),
  )
  return [
    factsLine(results, OURS_ALONE),
    `Small calls on ${CONNECTIONS} connections to the same server through gateways that differ in one setting. ${results.rounds} rounds with fresh
processes, warmed up; a round counts the median of ${PASSES} timings of ${TIMING_MS} ms each, turn by turn. CPU is that of the gateway’s process with
all its threads, so writing the log counts. Median with lowest and highest; ratios are taken within each round.`,
    table(['call', 'CPU µs per call', '÷ plain', 'bar', 'verdict'], rows),
  ].join('\n\n')
}

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? WHOLE_ROUNDS)
const known = facts()
const collector = await startCollector()
const cells: Cell[] = []
for (let round = 0; round < rounds; round++) cells.push(...(await timeRound(round, collector)))
const results: ObservabilityResults = { ...known, rounds, cells }
save('observability', results)
if (rounds >= WHOLE_ROUNDS) publish({ 'Audit log and traces': section(results) })
console.log(section(results))
process.exit() // gateways end with this process
