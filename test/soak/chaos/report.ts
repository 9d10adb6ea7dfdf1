import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { SCENARIOS, type ScenarioResult } from './scenario.ts'

const PAGE = new URL('../../../docs/reliability.md', import.meta.url)
const BIOME = new URL('../../../node_modules/@biomejs/biome/bin/biome', import.meta.url)
const BEGIN = '<!-- counts: written by `npm run chaos`, do not edit -->'
const END = '<!-- end of counts -->'
const DATA = /^<!-- raw (\S+) (.*) -->$/gm

const total = (errors: Readonly<Record<string, number>>): number => Object.values(errors).reduce((a, b) => a + b, 0)

const ROWS: readonly (readonly [string, (result: ScenarioResult) => string | number])[] = [
  ['faults', result => result.faults],
  ['clients', result => result.clients],
  ['calls', result => result.calls],
  ['of these tasks', result => result.tasks],
  ['**sessions lost**', result => result.sessionsLost],
  ['**tasks lost**', result => result.tasksLost],
  ['**results doubled**', result => result.doubled],
  ['**results wrong**', result => result.wrong],
  ['**calls without any end**', result => result.silent],
  ['**processes orphaned**', result => result.orphans],
  ['**server sessions leaked**', result => result.leaked - result.leakedAtKill],
  ['server sessions leaked whose start a kill cut', result => result.leakedAtKill],
  ['results', result => result.results],
  ['of these replayed to a client that came back', result => result.replayed],
  ['calls refused while no gateway ran', result => result.refused],
  ['connections cut', result => result.cut],
  ['typed errors', result => total(result.errors)],
  ['minutes', result => (result.seconds / 60).toFixed(1)],
]

/** The counts as a Markdown table, a column for each scenario. */
export const tableOf = (results: readonly ScenarioResult[]): string => {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
  return [
    line(['', ...results.map(({ name }) => name)]),
    line(['---', ...results.map(() => '--:')]),
    ...ROWS.map(([label, read]) => line([label, ...results.map(read)])),
  ].join('\n')
}

/** The typed errors, a row for each reason. */
export const errorsOf = (results: readonly ScenarioResult[]): string => {
  const reasons = [...new Set(results.flatMap(({ errors }) => Object.keys(errors)))].toSorted()
  const rows = reasons.map(
    reason => `| \`${reason}\` | ${results.map(({ errors }) => errors[reason] ?? 0).join(' | ')} |`,
  )
  const head = `| typed errors by reason | ${results.map(({ name }) => name).join(' | ')} |`
  return rows.length === 0 ? '' : [head, `| --- |${' --: |'.repeat(results.length)}`, ...rows].join('\n')
}

/** The part of the page between its markers. */
export const countsOf = (results: readonly ScenarioResult[], date: string): string => {
  const about = results.map(({ name }) => `- **${name}**: ${SCENARIOS.find(known => known.name === name)?.about}`)
  const seeds = [...new Set(results.map(({ seed }) => seed))].join(', ')
  const raw = results.map(({ findings: _, ...result }) => `<!-- raw ${result.name} ${JSON.stringify(result)} -->`)
  const parts = [
    `Last run ${date}, seed ${seeds}.`,
    about.join('\n'),
    tableOf(results),
    errorsOf(results),
    raw.join('\n'),
  ]
  return parts.filter(part => part !== '').join('\n\n')
}

/** The results that a page holds. */
export const resultsIn = (page: string): ScenarioResult[] =>
  [...page.matchAll(DATA)].map(([, , json = '{}']) => ({ ...JSON.parse(json), findings: [] }))

/** The page with these results; scenarios that did not run keep theirs. */
export const pageWith = (page: string, results: readonly ScenarioResult[], date: string): string => {
  const known = new Map([...resultsIn(page), ...results].map(result => [result.name, result]))
  const all = SCENARIOS.flatMap(({ name }) => known.get(name) ?? [])
  const [before = '', rest = ''] = page.split(BEGIN)
  const [, after = ''] = rest.split(END)
  return `${before}${BEGIN}\n\n${countsOf(all, date)}\n\n${END}${after}`
}

/** Writes the counts into the page in docs/, formatted as the check wants it. */
export const publish = async (results: readonly ScenarioResult[]): Promise<void> => {
  const page = await readFile(PAGE, 'utf8')
  await writeFile(PAGE, pageWith(page, results, new Date().toISOString().slice(0, 10)))
  execFileSync(process.execPath, [fileURLToPath(BIOME), 'format', '--write', fileURLToPath(PAGE)], { stdio: 'ignore' })
}
