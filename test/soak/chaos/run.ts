// `npm run chaos [-- --scenario one,replicas] [--clients 200] [--faults 50] [--seed N] [--pace MS]`: faults while clients
// of every dialect call; exits with 1 if anything was lost, doubled, wrong, silent, orphaned or leaked.
import { parseArgs } from 'node:util'
import { outcomeOfConnection } from './clients/client.ts'
import { errorsOf, publish, tableOf } from './report.ts'
import { runScenario, SCENARIOS, type ScenarioResult } from './scenario.ts'

const { values } = parseArgs({
  options: {
    scenario: { type: 'string' },
    clients: { type: 'string', default: '200' },
    faults: { type: 'string', default: '50' },
    seed: { type: 'string', default: '13' },
    pace: { type: 'string', default: '1000' },
  },
})
const names = values.scenario?.split(',')
const unknown = names?.filter(name => !SCENARIOS.some(scenario => scenario.name === name)) ?? []
if (unknown.length > 0)
  throw new Error(`no scenario ${unknown.join(', ')}; there are ${SCENARIOS.map(({ name }) => name).join(', ')}`)

const options = {
  clients: Number(values.clients),
  faults: Number(values.faults),
  seed: Number(values.seed),
  paceMs: Number(values.pace),
  report: (line: string) => console.error(line),
}
const isWhole = options.clients >= 200 && options.faults >= 50
// The SDKs reject promises that no one holds when a connection fails; the calls concerned are counted by their clients.
process.on('unhandledRejection', error => {
  if (!outcomeOfConnection(error)) throw error
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const MOST_OF_A_KIND = 50

const printFindings = ({ name, findings }: ScenarioResult): void => {
  const printed = new Map<string, number>()
  for (const finding of findings) {
    const kind = finding.slice(0, finding.indexOf(':'))
    const times = (printed.get(kind) ?? 0) + 1
    printed.set(kind, times)
    if (times <= MOST_OF_A_KIND) console.log(`${name}: ${finding}`)
  }
}

const results: ScenarioResult[] = []
for (const scenario of SCENARIOS.filter(({ name }) => names?.includes(name) ?? true)) {
  const result = await runScenario(scenario, options)
  results.push(result)
  printFindings(result)
  if (isWhole) await publish([result])
}
console.log(`${tableOf(results)}\n\n${errorsOf(results)}`)
process.exit(results.every(({ findings }) => findings.length === 0) ? 0 : 1)
