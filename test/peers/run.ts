/** Runs real clients and servers against the built gateway, prints a table, and writes it into the documentation. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Cell, runCell, titleOf } from './cell.ts'
import { clientCells } from './clients.ts'
import { filesystemCells } from './filesystem.ts'
import { pythonServerCells } from './python-servers.ts'
import { type CellReport, printReport, renderTables, tally } from './report.ts'

const USAGE = `npm run peers -- [options] [NAME…]
  NAME      only cells whose title contains this, in any case ("java sdk", "sse", "2.3.0", …)
  --quick   only the cells that run with the tests
  --list    print the titles and stop
  --write   write the tables into docs/compatibility.md
`

const PAGE = fileURLToPath(new URL('../../docs/compatibility.md', import.meta.url))
const MARKS = ['<!-- peers: written by npm run peers -- --write -->', '<!-- /peers -->'] as const

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const isChosen = (cell: Cell): boolean => {
  const title = titleOf(cell).toLowerCase()
  return (
    (!options.quick || cell.isQuick) && (names.length === 0 || names.some(name => title.includes(name.toLowerCase())))
  )
}

/** Replaces what stands between the marks of the page. */
const writePage = (reports: readonly CellReport[]): void => {
  const page = readFileSync(PAGE, 'utf8')
  const [from, to] = MARKS.map(mark => page.indexOf(mark))
  if (from === undefined || to === undefined || from < 0 || to < from) throw new Error(`${PAGE} has lost its marks`)
  writeFileSync(PAGE, `${page.slice(0, from + MARKS[0].length)}\n\n${renderTables(reports)}\n\n${page.slice(to)}`)
}

const main = async (): Promise<void> => {
  if (options.help) return void process.stdout.write(USAGE)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const groups = [clientCells(), filesystemCells(), pythonServerCells()]
  const reports: CellReport[] = []
  for (const { cells, stop } of groups) {
    for (const cell of cells.filter(isChosen)) {
      if (options.list) process.stdout.write(`${titleOf(cell)}\n`)
      else {
        reports.push({ cell, result: await runCell(cell) })
        printReport(reports.at(-1) as CellReport)
      }
    }
    await stop()
  }
  if (options.list) return
  process.stdout.write(`\n${renderTables(reports)}\n`)
  if (options.write) writePage(reports)
  const { passed, failed } = tally(reports)
  process.exitCode = failed === 0 ? 0 : 1
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
}

await main()
