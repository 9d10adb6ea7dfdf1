import type { ConfigPath } from './json-text.ts'
import { divide, personalOf, placeFault, readCredentials, readTemplate, type Template } from './personal.ts'
import { formatPath } from './problems.ts'
import type { Findings } from './remote.ts'
import type { ServerEntry } from './schema.ts'
import type { ProcessServer, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn } from './variables.ts'

/** Reads a server that is started here; what the environment lacks makes it unavailable. */
export const readProcess = (
  entry: ServerEntry,
  path: ConfigPath,
  env: Environment,
  found: Findings,
): ProcessServer | UnavailableServer => {
  const lacking: string[] = []

  const readText = (text: string, at: readonly (string | number)[], lacks = lacking): string => {
    const filled = fillIn(text, env)
    if (filled.kind === 'text') return filled.text
    lacks.push(`${formatPath(at)}: ${filled.reason}`)
    return ''
  }

  const readVariables = (
    given: Readonly<Record<string, unknown>>,
    at: ConfigPath,
    lacks: string[],
  ): Record<string, Template> => {
    const readable = Object.entries(given).flatMap(([name, value]): [string, Template][] => {
      const here = [...at, name]
      const isName = name !== '' && !/[=\0]/.test(name)
      const fault = isName ? placeFault(String(value)) : 'not a valid name of a variable'
      if (fault) found.problems.push({ path: here, message: fault })
      return fault ? [] : [[name, readTemplate(String(value), text => readText(text, here.slice(path.length), lacks))]]
    })
    return Object.fromEntries(readable)
  }

  const { plain, values } = divide(readVariables(entry.env ?? {}, [...path, 'env'], lacking))
  const credentials = readCredentials(entry, path, { member: 'env', found, read: readVariables })
  const server: ProcessServer = {
    kind: 'process',
    command: readText(entry.command ?? '', ['command']),
    args: (entry.args ?? []).map((arg, i) => readText(arg, ['args', i])),
    env: plain,
    ...personalOf(values, credentials),
    cwd: entry.cwd === undefined ? undefined : readText(entry.cwd, ['cwd']),
    era: entry.era,
    pool: entry.pool,
    share: entry.share,
    timeoutMs: entry.timeout,
    limits: entry.limits,
  }
  return lacking.length > 0 ? { kind: 'unavailable', reason: lacking.join('; ') } : server
}
