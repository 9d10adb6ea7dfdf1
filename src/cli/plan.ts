import { resolve } from 'node:path'
import { type Daemon, findDaemon } from '../config/daemon-file.ts'
import { dataDirectory } from '../config/data-dir.ts'
import { type Change, compare, type Detail, type Difference, isNone } from '../config/difference.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Run } from './command.ts'
import { type Flags, flagHelp, readLine, textOf, UsageError } from './usage.ts'

const FLAGS: Flags = {
  from: { value: 'FILE', help: 'compare with another file instead of the running daemon' },
  data: { value: 'DIR', help: 'where the daemon is looked for (DRAGOMAN_DATA, or the place of the platform)' },
  json: { help: 'print JSON' },
}

const HELP = `Usage: dragoman plan [FILE] [flags]

Says what would change if the running daemon went over to FILE (or read its own file again), or what is different from
another file. Nothing is changed, and no secret is printed.

${flagHelp(FLAGS)}
`

/** Compares configurations. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, FLAGS)
  if (flags.help) return print(HELP)
  const [file, extra] = words
  if (extra !== undefined) throw new UsageError(`Unexpected argument '${extra}'`)
  const from = textOf(flags, 'from')
  const data = dataDirectory({ flag: textOf(flags, 'data'), env: process.env })
  const daemon = from === undefined ? await findDaemon(data) : undefined
  if (from === undefined && !daemon) {
    process.stderr.write(`dragoman: no daemon runs on ${data}; start one, or compare with a file: --from FILE\n`)
    return 1
  }
  const difference = daemon ? await ask(daemon, file) : await compareFiles(from ?? '', file)
  return print(flags.json ? `${JSON.stringify(difference, undefined, 2)}\n` : written(difference))
}

const compareFiles = async (from: string, to: string | undefined): Promise<Difference> => {
  if (to === undefined) throw new UsageError('--from: expected a second file to compare with')
  const load = (file: string) => loadConfig({ file, env: process.env })
  return compare(await load(from), await load(to))
}

/** It is the daemon that reads the file: its variables count, not those of this shell. */
const ask = async ({ origin, token }: Daemon, file: string | undefined): Promise<Difference> => {
  const response = await fetch(`${origin}/admin/plan`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(file === undefined ? {} : { file: resolve(file) }),
  })
  const body = (await response.json()) as Difference & { error?: { message?: string } }
  if (response.ok) return body
  throw new ConfigError(body.error?.message ?? `the daemon at ${origin} answered ${response.status}`)
}

const SIGNS: Readonly<Record<Change['kind'], string>> = { added: '+', removed: '-', changed: '~' }

const written = (difference: Difference): string => {
  if (isNone(difference)) return 'Nothing would change.\n'
  const { servers, workspaces, policies, settings } = difference
  return [
    ...lines('server', servers),
    ...lines('workspace', workspaces),
    ...lines('policy', policies),
    ...lines('needs a restart:', settings),
    '',
  ].join('\n')
}

const lines = (what: string, changes: readonly Change[]): string[] =>
  changes.flatMap(({ name, kind, details }) => [`${SIGNS[kind]} ${what} ${name}`, ...details.map(detailLine)])

const detailLine = ({ at, from, to }: Detail): string => {
  if (from === undefined && to === undefined) return `    ${at} differs`
  if (from === undefined) return `    ${at}: ${to}`
  return `    ${at}: ${from} -> ${to ?? '(absent)'}`
}

const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}
