import { expect, test } from 'vitest'
import { whyNoPostgres } from '../../support/postgres.ts'
import { runScenario, SCENARIOS, type Scenario } from './scenario.ts'

// `npm run chaos` does the same with 200 clients and 50 faults, and waits until servers have no session left over.
const SHORT = { clients: 12, faults: 2, seed: 13, paceMs: 100, calmMs: 300, leaveMs: 0 }
const LEFT = 'session leaked at a server'

const scenarioOf = (name: string): Scenario => {
  const found = SCENARIOS.find(scenario => scenario.name === name)
  if (!found) throw new Error(`no scenario ${name}`)
  return found
}

const run = async (name: string): Promise<{ findings: string[]; results: number }> => {
  const { findings, results } = await runScenario(scenarioOf(name), SHORT)
  return { findings: findings.filter(finding => !finding.startsWith(LEFT)), results }
}

test('a gateway that is killed loses no session, and no call ends twice or not at all', async () => {
  const { findings, results } = await run('one')
  expect(findings).toEqual([])
  expect(results).toBeGreaterThan(SHORT.clients)
})

test.skipIf(whyNoPostgres())('neither do replicas of which one at a time is killed', async () => {
  const { findings, results } = await run('replicas')
  expect(findings).toEqual([])
  expect(results).toBeGreaterThan(SHORT.clients)
})
