import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Child, startNode } from './children.ts'
import { type Leg, type Outcome, readOutcomes, requiredScenarios, unrun } from './outcomes.ts'

/** The revisions the suite has scenarios for. */
export type SuiteRevision = '2025-03-26' | '2025-11-25' | '2026-07-28'

/** What one run of the suite found: the required scenarios, and those it ran besides. */
export interface SuiteResult {
  readonly required: readonly Outcome[]
  readonly others: readonly Outcome[]
}

const ROOT = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'))
const HOOK = new URL('./node20-hook.mjs', import.meta.url).href
const SUITE_MS = 180_000
const CLIENT_MS = 120_000

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
  const scope = run.scenario ? [...only(run.scenario, run.revision), '--force'] : ['--requirements', run.revision]
  const { tail } = await runSuite(['server', '--url', url, ...scope], run.folder, text => {
    for (const [, name] of text.matchAll(/Running scenario: (\S+)/g)) run.onScenario(String(name))
  })
  return readResult(run, 'server', tail)
}

/** Runs the official suite against a client, a command that is given a URL: all scenarios at once. */
export const judgeClient = async (command: readonly string[], run: SuiteRun): Promise<SuiteResult> => {
  const client = ['--command', command.join(' '), '--timeout', String(CLIENT_MS)]
  const scope = run.scenario ? [...only(run.scenario, run.revision), '--force'] : ALL_SCENARIOS[run.revision]
  const { tail } = await runSuite(['client', ...client, ...scope], run.folder, text => {
    for (const [, name] of text.matchAll(/Starting scenario: (\S+)/g)) run.onScenario(String(name))
  })
  return readResult(run, 'client', tail)
}

/** Runs the official suite against an authorization server; `visit` opens the link that the suite prints. */
export const judgeAuthorization = async (
  server: { readonly issuer: string; readonly clientId: string; readonly port: number },
  visit: (link: string) => void,
  run: SuiteRun,
): Promise<SuiteResult> => {
  const given = ['--url', server.issuer, '--client-id', server.clientId, '--port', String(server.port)]
  let printed = ''
  const { tail } = await runSuite(['authorization', ...given], run.folder, text => {
    const before = LINK.exec(printed)
    printed += text
    const link = before ? null : LINK.exec(printed)
    if (link) visit(link[0])
  })
  return readResult(run, 'authorization', tail)
}

/** A line of its own, once it is complete. */
const LINK = /^https?:\S+\?\S+(?=\n)/m

const readResult = async (run: SuiteRun, leg: Leg, tail: () => string): Promise<SuiteResult> => {
  const outcomes = await readOutcomes(run.folder)
  const required = run.scenario ? [run.scenario] : await readRequired(run.revision, leg)
  return {
    required: required.map(name => outcomes.get(name) ?? unrun(name, `was not run:\n${tail()}`)),
    others: [...outcomes.values()].filter(({ scenario }) => !required.includes(scenario)),
  }
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

/** What the suite runs of a client; an old revision has no requirements of its own any more. */
const ALL_SCENARIOS: Readonly<Record<SuiteRevision, readonly string[]>> = {
  '2025-03-26': ['--suite', 'backcompat', '--spec-version', '2025-03-26'],
  '2025-11-25': ['--requirements', '2025-11-25'],
  '2026-07-28': ['--requirements', '2026-07-28'],
}

/** Scenarios that no requirements file lists. */
const UNLISTED = {
  backcompat: ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback'],
  authorization: ['authorization-server-metadata-endpoint', 'authorization-code-grant'],
}

/** The scenarios a revision requires. */
export const readRequired = async (revision: SuiteRevision, leg: Leg): Promise<readonly string[]> => {
  if (leg === 'authorization') return UNLISTED.authorization
  if (revision === '2025-03-26') return UNLISTED.backcompat
  return requiredScenarios(await readFile(join(ROOT, 'requirements', `${revision}.yaml`), 'utf8'), leg)
}
