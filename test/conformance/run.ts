/** Runs the official conformance suite against the built daemon, two cells at a time. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CELLS, type Cell, type ClientCell, nameOf, type ServerCell } from './cells.ts'
import { endChildrenOnExit } from './children.ts'
import { startDaemon } from './daemon.ts'
import { unrun } from './outcomes.ts'
import { compilePrograms, type Programs } from './programs.ts'
import { printCell, printTable, type Report, tally } from './report.ts'
import { judgeClient, judgeServer, readRequired, type SuiteResult, type SuiteRun } from './suite.ts'
import { type Started, UPSTREAMS } from './upstreams.ts'

const USAGE = `npm run conformance -- [options]
  --cell NAME       only cells whose name begins so (demo, sdk-v1-stdio, client-sdk-v2-2026-07-28, …)
  --scenario NAME   only this scenario of the suite
  --direct          the fixtures themselves, without the gateway, where the suite can speak to them
`

const { values: options } = parseArgs({
  options: {
    cell: { type: 'string', default: '' },
    scenario: { type: 'string' },
    direct: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const AT_ONCE = 2

/** What a cell is run with. */
interface Bench {
  readonly folder: string
  readonly programs: Programs
}

const runCell = async (cell: Cell, bench: Bench): Promise<SuiteResult> => {
  const { revision } = cell
  const { scenario } = options
  mkdirSync(bench.folder)
  const run = { revision, scenario, folder: join(bench.folder, 'outcomes'), onScenario: showProgress }
  try {
    return await (cell.leg === 'server' ? runServerCell(cell, bench, run) : runClientCell(cell, bench, run))
  } catch (error) {
    const names = scenario ? [scenario] : await readRequired(revision, cell.leg)
    return { required: names.map(name => unrun(name, String(error))), others: [] }
  }
}

const runServerCell = async (cell: ServerCell, bench: Bench, run: SuiteRun): Promise<SuiteResult> => {
  const upstream = await UPSTREAMS[cell.upstream](bench.programs)
  try {
    return await (options.direct ? judgeServer(String(upstream.url), run) : judgeGateway(cell, upstream, bench, run))
  } finally {
    await upstream.close()
  }
}

const judgeGateway = async (
  cell: ServerCell,
  { entry }: Started,
  bench: Bench,
  run: SuiteRun,
): Promise<SuiteResult> => {
  const daemon = await startDaemon(bench.folder, cell.upstream, entry)
  try {
    return await judgeServer(daemon.url(cell.upstream), run)
  } finally {
    await daemon.stop()
  }
}

const runClientCell = ({ client }: ClientCell, { programs }: Bench, run: SuiteRun): Promise<SuiteResult> =>
  judgeClient([process.execPath, programs('conformance/client.js'), client], run)

/** On a terminal, one line that is always the scenario of the moment; it is gone when there is more to say. */
const showProgress = (scenario: string): void => {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${scenario && `  ${scenario}`}`)
}

const chosenCells = (): readonly Cell[] =>
  CELLS.filter(cell => nameOf(cell).startsWith(options.cell)).filter(cell => !options.direct || isDirect(cell))

/** The suite speaks Streamable HTTP, and each fixture its own revision. */
const isDirect = (cell: Cell): boolean =>
  cell.leg === 'server' && cell.upstream === (cell.revision === '2025-11-25' ? 'sdk-v1-http' : 'sdk-v2-http')

/** Reports in the order of the cells, however long each took. */
const runCells = async (cells: readonly Cell[], { folder, programs }: Bench): Promise<Report[]> => {
  const reports = new Map<Cell, Report>()
  const waiting = [...cells]
  const work = async (): Promise<void> => {
    for (let cell = waiting.shift(); cell; cell = waiting.shift()) {
      const name = nameOf(cell)
      const result = await runCell(cell, { folder: join(folder, name), programs })
      const report = { name, exceptions: cell.exceptions ?? [], ...result }
      showProgress('')
      printCell(report)
      reports.set(cell, report)
    }
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
  const reports = await runCells(chosenCells(), { folder, programs })
  printTable(reports)
  const { passed, failed } = tally(reports)
  process.exitCode = passed > 0 && failed === 0 ? 0 : 1
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
}

await main()
