import type { Path } from './json-text.ts'
import { formatPath } from './problems.ts'
import type { Findings } from './remote.ts'
import type { ServerEntry } from './schema.ts'
import type { ProcessServer, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn } from './variables.ts'

/** Reads a server that is started here; what the environment lacks makes it unavailable. */
export const readProcess = (
  entry: ServerEntry,
  path: Path,
  env: Environment,
  found: Findings,
): ProcessServer | UnavailableServer => {
  const lacking: string[] = []

  const readText = (text: string, ...at: (string | number)[]): string => {
    const filled = fillIn(text, env)
    if (filled.kind === 'text') return filled.text
    lacking.push(`${formatPath(at)}: ${filled.reason}`)
    return ''
  }

  const readVariable = (name: string, value: string): [string, string][] => {
    if (name !== '' && !/[=\0]/.test(name)) return [[name, readText(value, 'env', name)]]
    found.problems.push({ path: [...path, 'env', name], message: 'not a valid name of a variable' })
    return []
  }

  const variables = Object.entries(entry.env ?? {}).flatMap(([name, value]) => readVariable(name, String(value)))
  const server: ProcessServer = {
    kind: 'process',
    command: readText(entry.command ?? '', 'command'),
    args: (entry.args ?? []).map((arg, i) => readText(arg, 'args', i)),
    env: Object.fromEntries(variables),
    cwd: entry.cwd === undefined ? undefined : readText(entry.cwd, 'cwd'),
    era: entry.era,
    pool: entry.pool,
    timeoutMs: entry.timeout,
    limits: entry.limits,
  }
  return lacking.length > 0 ? { kind: 'unavailable', reason: lacking.join('; ') } : server
}
