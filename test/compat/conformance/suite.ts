import { mkdir, readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Child, startNode } from './children.ts'
import { type Leg, type Outcome, readOutcomes, requiredScenarios, unrun, withFailure } from './outcomes.ts'

/** The revisions the suite holds requirements for. */
export type SuiteRevision = '2025-11-25' | '2026-07-28'

/** What one run of the suite found: the required scenarios, and those it ran besides. */
export interface SuiteResult {
  readonly required: readonly Outcome[]
  readonly others: readonly Outcome[]
}

const ROOT = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'))
const HOOK = new URL('./node20-hook.mjs', import.meta.url).href
const SUITE_MS = 180_000
const CLIENT_MS = 30_000

/** How one run of the suite is asked for. */
export interface SuiteRun {
  readonly revision: SuiteRevision
  /** Only this scenario. */
  readonly scenario: string | undefined
  /** Where the suite writes; a new folder. */
  readonly folder: string
  /** Called with the name of every scenario as it begins. */
  readonly onScenario: (name: string) => void
}

/** Runs the official suite against a server. */
export const judgeServer = async (url: string, run: SuiteRun): Promise<SuiteResult> => {
  const scope = run.scenario ? only(run.scenario, run.revision) : ['--requirements', run.revision]
  const { tail } = await runSuite(['server', '--url', url, ...scope], run.folder, text => {
    for (const [, name] of text.matchAll(/Running scenario: (\S+)/g)) run.onScenario(String(name))
  })
  const outcomes = await readOutcomes(run.folder)
  const required = run.scenario ? [run.scenario] : await readRequired(run.revision, 'server')
  return {
    required: required.map(name => outcomes.get(name) ?? unrun(name, `was not run:\n${tail()}`)),
    others: [...outcomes.values()].filter(({ scenario }) => !required.includes(scenario)),
  }
}

/** Runs the official suite against a client, a command that is given a URL; the suite itself would run all at once. */
export const judgeClient = async (command: readonly string[], run: SuiteRun): Promise<SuiteResult> => {
  const required: Outcome[] = []
  for (const name of run.scenario ? [run.scenario] : await readRequired(run.revision, 'client')) {
    run.onScenario(name)
    required.push(await judgeClientIn(name, command, { ...run, folder: join(run.folder, name) }))
  }
  return { required, others: [] }
}

/** A client that fails proves nothing, whatever it had done before. */
const judgeClientIn = async (name: string, command: readonly string[], run: SuiteRun): Promise<Outcome> => {
  const client = ['--command', command.join(' '), '--timeout', String(CLIENT_MS)]
  const { ended, tail } = await runSuite(['client', ...client, ...only(name, run.revision)], run.folder)
  const outcome = (await readOutcomes(run.folder)).get(name) ?? unrun(name, `was not run:\n${tail()}`)
  if ((await ended) === 0) return outcome
  const said = (await readWords(run.folder)) || (outcome.complaints.length === 0 ? tail() : '')
  return said ? withFailure(outcome, `the client failed: ${said}`) : outcome
}

/** What a client said about its own failure. */
const readWords = async (folder: string): Promise<string> => {
  const files = (await readdir(folder)).map(name => readFile(join(folder, name, 'stderr.txt'), 'utf8').catch(() => ''))
  return (await Promise.all(files)).join('').trim()
}

const only = (scenario: string, revision: SuiteRevision): string[] => [
  '--scenario',
  scenario,
  '--spec-version',
  revision,
]

const runSuite = async (args: readonly string[], folder: string, onOutput?: (text: string) => void): Promise<Child> => {
  await mkdir(folder, { recursive: true })
  const child = startNode(['--import', HOOK, join(ROOT, 'dist/index.js'), ...args, '-o', folder], onOutput)
  const impatience = setTimeout(() => void child.stop(), SUITE_MS)
  await child.ended
  clearTimeout(impatience)
  return child
}

/** The scenarios a revision requires; those about authorization need more of a client than a protocol. */
export const readRequired = async (revision: SuiteRevision, leg: Leg): Promise<string[]> => {
  const requirements = await readFile(join(ROOT, 'requirements', `${revision}.yaml`), 'utf8')
  return requiredScenarios(requirements, leg).filter(name => !name.startsWith('auth/'))
}
