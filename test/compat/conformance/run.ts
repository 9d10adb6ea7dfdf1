/**
 * Runs the official conformance suite against the built daemon, through workspaces of one server and of four,
 * and of four that exceed their budget.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startAuthorizationStation } from './authorization-station.ts'
import {
  type AuthorizationCell,
  CELLS,
  type Cell,
  type ClientCell,
  nameOf,
  type ServerCell,
  type Upstream,
} from './cells.ts'
import { endChildrenOnExit } from './children.ts'
import { startClientHost } from './client-command.ts'
import { type Outcome, unrun } from './outcomes.ts'
import { compilePrograms, type Programs } from './programs.ts'
import { isExpected, printCell, printTable, type Report, tally } from './report.ts'
import { checkBudget, checkCompanions, startDirect, startStation } from './station.ts'
import { judgeAuthorization, judgeClient, judgeServer, readRequired, type SuiteResult, type SuiteRun } from './suite.ts'

const USAGE = `npm run conformance -- [options]
  --cell NAME       only cells whose name has this in it (demo, sdk-v1-stdio, client-sdk-v2-2026-07-28-among, demo-2026-07-28-budgeted, …)
  --scenario NAME   only this scenario of the suite
  --replicas N      N daemons on one PostgreSQL behind a round-robin proxy; only cells where the suite is the client
  --workers N       one daemon of N processes; only cells where the suite is the client
  --direct          the fixtures themselves, without the gateway, where the suite can speak to them
`

const { values: options } = parseArgs({
  options: {
    cell: { type: 'string', default: '' },
    scenario: { type: 'string' },
    replicas: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    direct: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const AT_ONCE = 2
const REPLICAS = Number(options.replicas)
const WORKERS = Number(options.workers)

/** What cells are run with. */
interface Bench {
  readonly folder: string
  readonly programs: Programs
  readonly onReport: (cell: Cell, report: Report) => void
}

/** Runs the suite in one cell; where that is impossible, every scenario has failed. */
const runCell = async (
  cell: Cell,
  { folder, onReport }: Bench,
  judge: (run: SuiteRun) => Promise<SuiteResult>,
): Promise<void> => {
  const { revision, leg, exceptions = [] } = cell
  const { scenario } = options
  const name = nameOf(cell)
  const result = await judge({ revision, scenario, folder: join(folder, name), onScenario: showProgress }).catch(
    async (error: unknown) => {
      const names = scenario ? [scenario] : await readRequired(revision, leg)
      return { required: names.map(name => unrun(name, String(error))), others: [] }
    },
  )
  const unscored = cell.leg !== 'authorization' && !scenario ? cell.unscored : undefined
  const report: Report = { name, exceptions, ...result, ...(unscored && { unscored }) }
  const required: Outcome[] = []
  for (const outcome of report.required) {
    if (isExpected(report, outcome) || scenario) required.push(outcome)
    else required.push(await runAgain(outcome, cell, folder, judge))
  }
  onReport(cell, { ...report, required })
}

/** A scenario that was not as expected runs once more: the suite gives some notifications half a second. Both are reported. */
const runAgain = async (
  first: Outcome,
  cell: Cell,
  folder: string,
  judge: (run: SuiteRun) => Promise<SuiteResult>,
): Promise<Outcome> => {
  const { scenario, complaints } = first
  const name = nameOf(cell)
  const run = { revision: cell.revision, scenario, folder: join(folder, `${name}-again`), onScenario: showProgress }
  const again = await judge(run).catch(() => undefined)
  const second = again?.required.find(outcome => outcome.scenario === scenario) ?? first
  if (second.complaints.length < complaints.length)
    for (const { check, message } of complaints)
      process.stdout.write(`  UNSTABLE, better alone: ${name} › ${scenario} › ${check}: ${message}\n`)
  return second
}

/** Whether the workspace was what its cell says: without that, nothing is proved about it. */
const CHECKS = { among: checkCompanions, budgeted: checkBudget } as const

/** Both revisions and all ways to one server, one after the other through the same daemon. */
const runServerCells = async (upstream: Upstream, cells: readonly ServerCell[], bench: Bench): Promise<void> => {
  const folder = join(bench.folder, upstream)
  mkdirSync(folder)
  const station = options.direct
    ? startDirect(upstream, bench.programs)
    : startStation(upstream, folder, bench.programs, { replicas: REPLICAS, workers: WORKERS })
  for (const cell of cells) {
    await runCell(cell, bench, async run => {
      const url = (await station).url(cell.way)
      const result = await judgeServer(url, run)
      if (cell.way !== 'alone') await CHECKS[cell.way](url)
      return result
    })
  }
  await station.then(
    ({ close }) => close(),
    () => undefined,
  )
}

/** One process is the client of all scenarios of a cell. */
const runClientCell = async (cell: ClientCell, bench: Bench): Promise<void> => {
  const host = startClientHost(cell.client, cell.way, bench.programs)
  await runCell(cell, bench, async run => judgeClient((await host).command, run))
  await host.then(
    ({ close }) => close(),
    () => undefined,
  )
}

const runAuthorizationCell = async (cell: AuthorizationCell, bench: Bench): Promise<void> => {
  const folder = join(bench.folder, 'authorization-server')
  const station = startAuthorizationStation(folder)
  await runCell(cell, bench, async run => {
    const { server, visit } = await station
    return judgeAuthorization(server, visit, run)
  })
  await station.then(
    ({ close }) => close(),
    () => undefined,
  )
}

/** On a terminal, one line that is always the scenario of the moment; it is gone when there is more to say. */
const showProgress = (scenario: string): void => {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${scenario && `  ${scenario}`}`)
}

const chosenCells = (): readonly Cell[] =>
  CELLS.filter(cell => nameOf(cell).includes(options.cell))
    .filter(cell => !options.direct || isDirect(cell))
    .filter(cell => (REPLICAS === 1 && WORKERS === 1) || cell.leg === 'server')

/** The suite speaks Streamable HTTP, and each fixture its own revision. */
const isDirect = (cell: Cell): boolean =>
  cell.leg === 'server' &&
  cell.way === 'alone' &&
  cell.upstream === (cell.revision === '2025-11-25' ? 'sdk-v1-http' : 'sdk-v2-http')

/** What can run side by side. */
const tasksOf = (cells: readonly Cell[]): ((bench: Bench) => Promise<void>)[] => {
  const servers = new Map<Upstream, ServerCell[]>()
  for (const cell of cells) {
    if (cell.leg === 'server') servers.set(cell.upstream, [...(servers.get(cell.upstream) ?? []), cell])
  }
  return [
    ...[...servers].map(
      ([upstream, own]) =>
        (bench: Bench) =>
          runServerCells(upstream, own, bench),
    ),
    ...cells.flatMap(cell => (cell.leg === 'client' ? [(bench: Bench) => runClientCell(cell, bench)] : [])),
    ...cells.flatMap(cell =>
      cell.leg === 'authorization' ? [(bench: Bench) => runAuthorizationCell(cell, bench)] : [],
    ),
  ]
}

/** Reports in the order of the cells, however long each took. */
const runCells = async (cells: readonly Cell[], folder: string, programs: Programs): Promise<Report[]> => {
  const reports = new Map<Cell, Report>()
  const onReport = (cell: Cell, report: Report): void => {
    showProgress('')
    printCell(report)
    reports.set(cell, report)
  }
  const waiting = tasksOf(cells)
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task; task = waiting.shift()) await task({ folder, programs, onReport })
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return cells.flatMap(cell => reports.get(cell) ?? [])
}

const main = async (): Promise<void> => {
  if (options.help) return void process.stdout.write(USAGE)
  endChildrenOnExit()
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const programs = await compilePrograms(join(folder, 'programs'))
  const reports = await runCells(chosenCells(), folder, programs)
  printTable(reports)
  const { passed, failed } = tally(reports)
  process.exitCode = passed > 0 && failed === 0 ? 0 : 1
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
}

await main()
