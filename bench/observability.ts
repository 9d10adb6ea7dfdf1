// `npm --prefix bench run observability`: what an audit log, traces and a verified token cost a call.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startUpstream, stopAll, worker } from './children.ts'
import { startJwtIssuer } from './jwt-issuer.ts'
import type { Figures, Job } from './load.ts'
import { figure, spread, table } from './markdown.ts'
import { publish } from './page.ts'
import type { Target } from './peer.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { PROGRAM } from './start-dragoman.ts'
import { type Summary, summarize } from './statistics.ts'
import { rotate } from './warm-up.ts'

const CONNECTIONS = 16
const TIMING_MS = 350
const TURNS = 20 // of each variant in one round
const WARM_TURN_MS = 600
const WARM_PASSES = 3 // over all variants, which share what is compiled
const WHOLE_ROUNDS = 6 // each variant is started first in one of them

/** The gateways that are compared, with the bar of each: a multiple of the CPU of the first. */
const VARIANTS = {
  plain: { atMost: 1, settings: { recorder: false } },
  'the same once more': { atMost: 1, settings: { recorder: false } }, // what two gateways differ by without any reason
  'audit log': { atMost: 1.03, settings: { recorder: false, audit: true } },
  'traces, 1 % recorded': { atMost: 1.05, settings: { recorder: false, telemetry: { sampling: 0.01 } } },
  'API token': { atMost: 1.03, settings: { recorder: false } },
  'JWT of an issuer': { atMost: 1.03, settings: { recorder: false } },
} as const
type Variant = keyof typeof VARIANTS
const NAMES = Object.keys(VARIANTS) as Variant[]
const CONTROL: Variant = 'the same once more'
const DIALECTS = ['modern', 'legacy'] as const

interface Cell {
  readonly variant: Variant
  readonly dialect: Job['dialect']
  readonly round: number
  readonly cpuMicrosPerCall: number // the median of the turns
  readonly ratio: number // to the plain gateway: the median of the ratios of neighbouring turns
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

const AUDIENCE = 'https://gateway.example'
const collector = await startCollector()
const issuer = await startJwtIssuer(AUDIENCE)
const data = mkdtempSync(join(tmpdir(), 'dragoman-bench-')) // holds the API token
process.once('exit', () => rmSync(data, { recursive: true }))

/** What a variant's requests carry, and where its gateway looks it up. */
const CREDENTIALS: Partial<Record<Variant, { token: string; auth?: object; data?: string }>> = {
  'API token': {
    token: JSON.parse(
      execFileSync(process.execPath, [PROGRAM, 'token', 'create', 'bench', '--data', data, '--json'], {
        encoding: 'utf8',
      }),
    ).token,
    data,
  },
  'JWT of an issuer': {
    token: issuer.token,
    auth: { issuers: { bench: { url: issuer.url, audience: AUDIENCE, grants: [{ workspaces: ['*'] }] } } },
  },
}

const configOf = (variant: Variant, upstream: Target) => {
  const { telemetry, ...rest } = { telemetry: undefined, ...VARIANTS[variant].settings }
  const auth = CREDENTIALS[variant]?.auth
  return {
    ...rest,
    ...(telemetry && { telemetry: { ...telemetry, endpoint: collector } }),
    ...(auth && { auth }),
    mcpServers: { modern: { url: upstream.url, era: 'modern' }, legacy: { url: upstream.url, era: 'legacy' } },
    workspaces: { modern: { servers: ['modern'] }, legacy: { servers: ['legacy'] } },
  }
}

interface Hosted {
  readonly urls: readonly string[]
  readonly pid: number
}

/** Every round has a fresh process with all variants, and times them in rotated order. */
const timeRound = async (round: number): Promise<Cell[]> => {
  const folders = mkdtempSync(join(tmpdir(), 'dragoman-bench-'))
  try {
    const upstream = await startUpstream()
    const time = worker<Job, Figures>('load')
    const order = rotate(NAMES, round)
    const gateways = order.map((variant, at) => ({
      config: configOf(variant, upstream),
      dataDir: CREDENTIALS[variant]?.data ?? join(folders, String(at)),
    }))
    const { urls, pid } = await worker<typeof gateways, Hosted>('gateways')(gateways)
    const run = (variant: Variant, dialect: Job['dialect'], milliseconds: number): Promise<Figures> => {
      const target = { url: `${urls[order.indexOf(variant)]}/${dialect}`, pid }
      const { token } = CREDENTIALS[variant] ?? {}
      return time({ target, dialect, scenario: 'echo', connections: CONNECTIONS, milliseconds, token })
    }
    const cells: Cell[] = []
    for (const dialect of DIALECTS) {
      for (let pass = 0; pass < WARM_PASSES; pass++)
        for (const variant of order) await run(variant, dialect, WARM_TURN_MS)
      const timings = new Map(NAMES.map(variant => [variant, [] as number[]]))
      for (let turn = 0; turn < TURNS; turn++)
        for (const variant of rotate(NAMES, round + turn))
          timings.get(variant)?.push((await run(variant, dialect, TIMING_MS)).cpuMicrosPerCall)
      const plain = timings.get('plain') ?? []
      for (const [variant, values] of timings) {
        const cpuMicrosPerCall = summarize(values).median
        const ratio = summarize(values.map((value, turn) => value / (plain[turn] ?? Number.NaN))).median
        console.error(
          `${round + 1}  ${dialect} ${variant.padEnd(22)} ${cpuMicrosPerCall.toFixed(1)} µs/call, ratio ${ratio.toFixed(3)}`,
        )
        cells.push({ variant, dialect, round, cpuMicrosPerCall, ratio })
      }
    }
    return cells
  } finally {
    await stopAll()
    rmSync(folders, { recursive: true, force: true })
  }
}

const summaryOf = (
  { cells }: ObservabilityResults,
  variant: Variant,
  dialect: string,
  value: (cell: Cell) => number,
): Summary => summarize(cells.filter(cell => cell.variant === variant && cell.dialect === dialect).map(value))

const section = (results: ObservabilityResults): string => {
  const rows = NAMES.flatMap(variant =>
    DIALECTS.map(dialect => {
      const ratio = summaryOf(results, variant, dialect, cell => cell.ratio)
      const { atMost } = VARIANTS[variant]
      const verdict = ratio.median <= atMost ? 'met' : '**missed**'
      const isBase = variant === 'plain'
      const isJudged = !isBase && variant !== CONTROL
      return [
        `${dialect} call, ${variant}`,
        spread(summaryOf(results, variant, dialect, cell => cell.cpuMicrosPerCall)),
        isBase ? '' : spread(ratio),
        isJudged ? `≤ ${figure(atMost)}` : '',
        isJudged ? verdict : '',
      ]
    }),
  )
  return [
    factsLine(results, OURS_ALONE),
    `Small calls on ${CONNECTIONS} connections to the same server through gateways that differ in one setting, or whose clients send a token: ${TURNS} turns of ${TIMING_MS} ms each in
a round, ${results.rounds} rounds. All gateways of a round are in one fresh process, of which one is used at a time: two processes with the same settings
differ by up to a tenth. CPU is that of the process with all its threads, so writing the log counts. A round counts the median of the
ratios of neighbouring turns. Median with lowest and highest.`,
    table(['call', 'CPU µs per call', '÷ plain', 'bar', 'verdict'], rows),
  ].join('\n\n')
}

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? WHOLE_ROUNDS)
const known = facts()
const cells: Cell[] = []
for (let round = 0; round < rounds; round++) cells.push(...(await timeRound(round)))
const results: ObservabilityResults = { ...known, rounds, cells }
save('observability', results)
if (rounds >= WHOLE_ROUNDS) publish({ 'Audit log, traces and tokens': section(results) })
console.log(section(results))
process.exit() // gateways end with this process
