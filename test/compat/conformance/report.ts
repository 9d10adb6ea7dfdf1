import { type Complaint, type Outcome, unrun, worstOf } from './outcomes.ts'

/** A scenario that cannot be passed in full, and why. */
export interface Exception {
  readonly scenario: string
  readonly status: Complaint['status']
  readonly why: string
  readonly mayPass?: boolean // it depends on time
}

/** One cell's result beside what is not expected of it. */
export interface Report {
  readonly name: string
  readonly exceptions: readonly Exception[]
  readonly required: readonly Outcome[]
  readonly others: readonly Outcome[]
  /** Those of the others that must pass. */
  readonly unscored?: readonly string[]
}

const MESSAGE_LENGTH = 1_000

const isPassed = (outcome: Outcome): boolean => worstOf(outcome) !== 'FAILURE'

const exceptionOf = ({ exceptions }: Report, { scenario }: Outcome): Exception | undefined =>
  exceptions.find(exception => exception.scenario === scenario)

/** Without a warning, or exactly as bad as it must be: an exception that is none any more is to be struck out. */
export const isExpected = (report: Report, outcome: Outcome): boolean => {
  const exception = exceptionOf(report, outcome)
  const worst = worstOf(outcome)
  return worst === exception?.status || (worst === undefined && exception?.mayPass === true)
}

/** What a report is judged by: the required scenarios, and those that pass although they are not. */
const judgedOf = ({ required, others, unscored = [] }: Report): readonly Outcome[] => [
  ...required,
  ...unscored.map(name => others.find(({ scenario }) => scenario === name) ?? unrun(name, 'was not run')),
]

/** Counts the scenarios that must pass; one with an unexpected warning is not passed. */
export const tally = (reports: readonly Report[]): { passed: number; failed: number } => {
  const count = (test: (report: Report, outcome: Outcome) => boolean): number =>
    reports.flatMap(report => judgedOf(report).filter(outcome => test(report, outcome))).length
  return {
    passed: count((report, outcome) => isPassed(outcome) && isExpected(report, outcome)),
    failed: count((report, outcome) => !isExpected(report, outcome)),
  }
}

/** Prints what went wrong in one cell, and in one line how the unscored scenarios did. */
export const printCell = (report: Report): void => {
  process.stdout.write(`${report.name}\n`)
  const said = new Set<string>()
  for (const outcome of judgedOf(report)) {
    const { scenario, complaints } = outcome
    if (isExpected(report, outcome)) continue
    if (complaints.length === 0)
      process.stdout.write(`  UNEXPECTED ${scenario}: passes, and is listed as an exception\n`)
    for (const { check, status, message } of complaints) {
      // What kept one scenario from running usually kept them all.
      if (check === 'run' && said.has(message)) continue
      said.add(message)
      process.stdout.write(`  ${status} ${scenario} › ${check}: ${short(message)}\n`)
    }
  }
  const { others } = report
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

/** Prints one line per cell, and one per exception. */
export const printTable = (reports: readonly Report[]): void => {
  const rows = reports.map(report => [
    report.name,
    `${report.required.filter(isPassed).length}/${report.required.length}`,
    String(report.required.filter(outcome => worstOf(outcome) === 'WARNING').length),
    verdict(report),
  ])
  const header = ['cell', 'passed', 'warnings', '']
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map(row => row[column]?.length ?? 0)))
  process.stdout.write('\n')
  for (const row of [header, ...rows]) {
    const line = row.map((value, column) => value.padEnd(widths[column] ?? 0)).join('  ')
    process.stdout.write(`${line.trimEnd()}\n`)
  }
  const notes = reports.flatMap(({ exceptions }) => exceptions)
  for (const { scenario, status, why } of new Set(notes))
    process.stdout.write(`* ${status === 'FAILURE' ? 'fails' : 'warns'}: ${scenario}, for ${why}\n`)
}

const verdict = (report: Report): string => {
  const { failed } = tally([report])
  if (failed > 0) return `${failed} not as expected`
  return report.exceptions.length > 0 ? '*' : ''
}
