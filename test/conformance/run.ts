/** Runs the official conformance suite against the built daemon, one cell per upstream and revision. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Endpoint } from '../fixtures/http.ts'
import { start as startV1 } from '../fixtures/sdk-v1-server.ts'
import { start as startV2 } from '../fixtures/sdk-v2-server.ts'
import { endChildrenOnExit } from './children.ts'
import { startDaemon } from './daemon.ts'
import { unrun } from './outcomes.ts'
import { printCell, printTable, type Report, tally } from './report.ts'
import { readRequired, runSuite, type SuiteResult, type SuiteRevision } from './suite.ts'

/** What stands behind the gateway, the revision at its front, and what the suite must say. */
interface Cell {
  readonly upstream: 'demo' | 'sdk-v1' | 'sdk-v2'
  readonly revision: SuiteRevision
  readonly expected: { readonly passed: number; readonly warnings: number; readonly why?: string } | 'not scored'
}

const CELLS: readonly Cell[] = [
  { upstream: 'demo', revision: '2025-11-25', expected: { passed: 30, warnings: 0 } },
  { upstream: 'demo', revision: '2026-07-28', expected: { passed: 37, warnings: 0 } },
  { upstream: 'sdk-v1', revision: '2025-11-25', expected: { passed: 30, warnings: 0 } },
  { upstream: 'sdk-v2', revision: '2026-07-28', expected: { passed: 37, warnings: 0 } },
]

/** Questions between eras with remote servers are not bridged yet, so these are only looked at. */
const DIAGONALS: readonly Cell[] = [
  { upstream: 'sdk-v1', revision: '2026-07-28', expected: 'not scored' },
  { upstream: 'sdk-v2', revision: '2025-11-25', expected: 'not scored' },
]

const FIXTURES = { 'sdk-v1': startV1, 'sdk-v2': startV2 }

const USAGE = `npm run conformance -- [options]
  --cell NAME       only cells whose name begins so (demo, sdk-v1-2025-11-25, …)
  --scenario NAME   only this scenario of the suite
  --direct          the fixtures themselves, without the gateway
  --diagonals       also the cells whose two sides differ in era, unscored
`

const { values: options } = parseArgs({
  options: {
    cell: { type: 'string', default: '' },
    scenario: { type: 'string' },
    direct: { type: 'boolean', default: false },
    diagonals: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const nameOf = (cell: Cell): string => `${cell.upstream}-${cell.revision}`

const chosenCells = (): readonly Cell[] =>
  [...CELLS, ...(options.diagonals ? DIAGONALS : [])]
    .filter(cell => nameOf(cell).startsWith(options.cell))
    .filter(cell => !options.direct || cell.upstream !== 'demo')

const runCell = async (cell: Cell, folder: string): Promise<SuiteResult> => {
  const stops: (() => Promise<void>)[] = []
  try {
    const fixture = cell.upstream === 'demo' ? undefined : await FIXTURES[cell.upstream]()
    if (fixture) stops.unshift(fixture.close)
    const url = options.direct && fixture ? fixture.url : await throughGateway(cell, folder, fixture, stops)
    const { revision } = cell
    return await runSuite({
      url,
      revision,
      scenario: options.scenario,
      folder: join(folder, nameOf(cell)),
      onScenario: showProgress,
    })
  } catch (error) {
    const names = options.scenario ? [options.scenario] : await readRequired(cell.revision)
    return { required: names.map(name => unrun(name, String(error))), others: [] }
  } finally {
    for (const stop of stops) await stop()
  }
}

const throughGateway = async (
  cell: Cell,
  folder: string,
  fixture: Endpoint | undefined,
  stops: (() => Promise<void>)[],
): Promise<string> => {
  const daemon = await startDaemon(folder, cell.upstream, fixture ? { url: fixture.url } : { builtin: 'demo' })
  stops.unshift(daemon.stop)
  return daemon.url(cell.upstream)
}

/** On a terminal, one line that is always the scenario of the moment; it is gone when the cell is done. */
const showProgress = (scenario: string): void => {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${scenario && `  ${scenario}`}`)
}

const expectationOf = ({ expected }: Cell): Report['expected'] =>
  expected === 'not scored' || !options.scenario ? expected : { passed: 1, warnings: 0 }

const main = async (): Promise<void> => {
  if (options.help) return void process.stdout.write(USAGE)
  endChildrenOnExit()
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const reports: Report[] = []
  for (const cell of chosenCells()) {
    process.stdout.write(`${nameOf(cell)}${options.direct ? ' (direct)' : ''} …\n`)
    const report = { name: nameOf(cell), expected: expectationOf(cell), ...(await runCell(cell, folder)) }
    showProgress('')
    printCell(report)
    reports.push(report)
  }
  printTable(reports)
  const { passed, failed, isAsExpected } = tally(reports)
  process.exitCode = isAsExpected ? 0 : 1
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
}

await main()
