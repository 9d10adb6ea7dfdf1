import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One check of a scenario that was not simply passed. */
export interface Complaint {
  readonly check: string
  readonly status: 'FAILURE' | 'WARNING'
  readonly message: string
}

/** What the suite said about one scenario. */
export interface Outcome {
  readonly scenario: string
  readonly complaints: readonly Complaint[]
}

/** The worst the suite said about the scenario; it counts one with warnings as passed. */
export const worstOf = ({ complaints }: Outcome): Complaint['status'] | undefined =>
  complaints.find(({ status }) => status === 'FAILURE')?.status ?? complaints[0]?.status

/** Which side of a conversation the suite judges. */
export type Leg = 'server' | 'client' | 'authorization'

/** The scenarios a revision requires of one side, from the suite's own requirements file. */
export const requiredScenarios = (requirements: string, leg: Leg): string[] => {
  const section = new RegExp(`^${leg}:\\n((?:[ \\t]+-.*\\n|\\n)+)`, 'm').exec(requirements)?.[1] ?? ''
  return [...section.matchAll(/-\s*(\S+)/g)].map(match => String(match[1]))
}

/** Reads the folder the suite wrote: one subfolder per scenario, one `checks.json` in each, and what a client said. */
export const readOutcomes = async (folder: string): Promise<Map<string, Outcome>> => {
  const outcomes = new Map<string, Outcome>()
  for (const name of await readdir(folder, { recursive: true })) {
    const scenario = SUBFOLDER.exec(name)?.[1]
    if (scenario === undefined) continue
    const read = (file: string): Promise<string> => readFile(join(folder, name, file), 'utf8').catch(() => '')
    const outcome = readOutcome(scenario, (await read('checks.json')) || '[]')
    // A client that failed proves nothing, whatever it had done before.
    const words = (await read('stderr.txt')).trim()
    outcomes.set(scenario, words ? withFailure(outcome, `the client failed: ${words}`) : outcome)
  }
  return outcomes
}

/** Those of servers begin with the side they judge. */
const SUBFOLDER = /^(?:(?:authorization-)?server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/

/** One scenario's outcome from the text of its `checks.json`; a scenario without checks proves nothing and fails. */
export const readOutcome = (scenario: string, text: string): Outcome => {
  const checks = JSON.parse(text) as readonly Check[]
  if (checks.length === 0) return unrun(scenario, 'the suite made no check')
  const complaints = checks.flatMap(({ id, status, errorMessage, description }) =>
    status === 'FAILURE' || status === 'WARNING' ? [{ check: id, status, message: errorMessage ?? description }] : [],
  )
  return { scenario, complaints }
}

interface Check {
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'
  readonly description: string
  readonly errorMessage?: string
}

/** The outcome of a scenario that never came to its checks. */
export const unrun = (scenario: string, message: string): Outcome => withFailure({ scenario, complaints: [] }, message)

/** An outcome with a failure that is none of the suite's checks. */
export const withFailure = ({ scenario, complaints }: Outcome, message: string): Outcome => ({
  scenario,
  complaints: [...complaints, { check: 'run', status: 'FAILURE', message }],
})
