import { type Cell, type CellResult, titleOf } from './cell.ts'

/** A cell with what it found. */
export interface CellReport {
  readonly cell: Cell
  readonly result: CellResult
}

const DETAIL = 300

/** Counts checks; a skipped cell counts nothing. */
export const tally = (reports: readonly CellReport[]): { passed: number; failed: number } => {
  const outcomes = reports.flatMap(({ result }) => (result.kind === 'ran' ? result.outcomes : []))
  const passed = outcomes.filter(({ ok }) => ok).length
  return { passed, failed: outcomes.length - passed }
}

/** Prints one cell, with a line for every check that failed. */
export const printReport = (report: CellReport): void => {
  const { cell, result } = report
  if (result.kind === 'skipped') return void process.stdout.write(`skipped  ${titleOf(cell)}: ${result.reason}\n`)
  const { passed, failed } = tally([report])
  process.stdout.write(`${failed > 0 ? 'failed ' : 'passed '}  ${titleOf(cell)}: ${passed} passed, ${failed} failed\n`)
  for (const { check, ok, detail } of result.outcomes) {
    if (!ok) process.stdout.write(`           ${check}: ${detail.slice(0, DETAIL).replaceAll('\n', ' ')}\n`)
  }
}

/** The tables of the page on compatibility. */
export const renderTables = (reports: readonly CellReport[]): string => {
  const rows = (side: Cell['side']) => reports.filter(({ cell }) => cell.side === side).map(rowOf)
  return [
    '### Clients',
    '',
    ...table(['client', 'version', 'connection', 'revision', 'passed', 'failed', 'notes'], rows('client')),
    '',
    '### Servers',
    '',
    ...table(['server', 'version', 'connection', 'revision', 'passed', 'failed', 'notes'], rows('server')),
  ].join('\n')
}

const rowOf = (report: CellReport): string[] => {
  const { cell, result } = report
  const { passed, failed } = tally([report])
  const notes = [cell.note ?? '', failedChecks(result)].filter(Boolean).join('; ')
  const counts = result.kind === 'ran' ? [result.revision, String(passed), String(failed)] : ['–', '–', '–']
  return [cell.peer, cell.version, cell.route, ...counts, result.kind === 'ran' ? notes : 'not run']
}

const failedChecks = (result: CellResult): string => {
  const failed = result.kind === 'ran' ? result.outcomes.filter(({ ok }) => !ok).map(({ check }) => check) : []
  if (failed[0] === 'connect') return 'does not connect'
  return failed.length > 0 ? `fails: ${failed.join(', ')}` : ''
}

const table = (header: readonly string[], rows: readonly (readonly string[])[]): string[] => {
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map(row => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [line(header), line(widths.map(width => '-'.repeat(width))), ...rows.map(line)]
}
