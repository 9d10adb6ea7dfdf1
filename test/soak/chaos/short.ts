import { runScenario, SCENARIOS } from './scenario.ts'

const SHORT = { faults: 2, seed: 13, paceMs: 100, calmMs: 300, leaveMs: 0 }
/** Needs the sweep that a whole run waits for. */
const LEAKED = 'session leaked at a server'

/** Runs a scenario with few clients and two faults. */
export const runShort = async (name: string, clients: number): Promise<{ findings: string[]; results: number }> => {
  const scenario = SCENARIOS.find(known => known.name === name)
  if (!scenario) throw new Error(`no scenario ${name}`)
  const { findings, results } = await runScenario(scenario, { ...SHORT, clients })
  return { findings: findings.filter(finding => !finding.startsWith(LEAKED)), results }
}
