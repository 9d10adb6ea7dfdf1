import { isPassed, type Outcome, warningsOf } from './outcomes.ts'

/** One cell's result beside what was expected of it. */
export interface Report {
  readonly name: string
  readonly expected: { readonly passed: number; readonly warnings: number; readonly why?: string } | 'not scored'
  readonly required: readonly Outcome[]
  readonly others: readonly Outcome[]
}

const MESSAGE_LENGTH = 1_000

const passedOf = (report: Report): number => report.required.filter(isPassed).length

const warningCount = (report: Report): number => report.required.flatMap(warningsOf).length

/** Whether a cell reached what is expected of it. */
export const isAsExpected = (report: Report): boolean =>
  report.expected === 'not scored' ||
  (passedOf(report) >= report.expected.passed && warningCount(report) <= report.expected.warnings)

/** Counts the required scenarios of the scored cells; a cell that fell short in warnings alone fails by those. */
export const tally = (reports: readonly Report[]): { passed: number; failed: number; isAsExpected: boolean } => {
  const scored = reports.filter(({ expected }) => expected !== 'not scored')
  const good = (report: Report) =>
    report.required.filter(outcome => isPassed(outcome) && (isAsExpected(report) || warningsOf(outcome).length === 0))
  const passed = scored.flatMap(good).length
  const allExpected = scored.length > 0 && scored.every(isAsExpected)
  const failed = allExpected ? 0 : scored.flatMap(({ required }) => required).length - passed
  return { passed, failed, isAsExpected: allExpected }
}

/** Prints what went wrong in one cell, and in one line how the unscored scenarios did. */
export const printCell = ({ required, others }: Report): void => {
  const said = new Set<string>()
  for (const { scenario, complaints } of required) {
    for (const { check, status, message } of complaints) {
      // What kept one scenario from running usually kept them all.
      if (check === 'run' && said.has(message)) continue
      said.add(message)
      process.stdout.write(`  ${status} ${scenario} › ${check}: ${short(message)}\n`)
    }
  }
  if (others.length === 0) return
  const failing = others.filter(outcome => !isPassed(outcome)).map(({ scenario }) => scenario)
  const passing = `${others.length - failing.length} of ${others.length} unscored scenarios pass`
  process.stdout.write(`  ${passing}${failing.length > 0 ? `, not: ${failing.join(', ')}` : ''}\n`)
}

/** Messages may quote whole payloads. */
const short = (message: string): string => {
  const text = message.replaceAll('\n', '\n    ')
  return text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH)} …` : text
}

/** Prints one line per cell. */
export const printTable = (reports: readonly Report[]): void => {
  const rows = reports.map(report => [
    report.name,
    `${passedOf(report)}/${report.required.length}`,
    String(warningCount(report)),
    verdict(report),
  ])
  const header = ['cell', 'passed', 'warnings', '']
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map(row => row[column]?.length ?? 0)))
  process.stdout.write('\n')
  for (const row of [header, ...rows]) {
    const line = row.map((value, column) => value.padEnd(widths[column] ?? 0)).join('  ')
    process.stdout.write(`${line.trimEnd()}\n`)
  }
}

const verdict = (report: Report): string => {
  if (report.expected === 'not scored') return 'not scored'
  const { passed, why } = report.expected
  if (!isAsExpected(report)) return `expected ${passed}`
  return why ?? ''
}
