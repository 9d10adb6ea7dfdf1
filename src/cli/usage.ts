import { type ParseArgsConfig, parseArgs } from 'node:util'
import { dataDirectory } from '../config/data-dir.ts'
import { nearest } from '../config/problems.ts'
import { safeText } from './client/terminal.ts'

/** The command line is invalid; the message says what to write instead. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** The flags of a command, by name; `value` is the placeholder in the help text, absent for a switch. */
export type Flags = Readonly<
  Record<string, { readonly value?: string; readonly many?: boolean; readonly help: string }>
>

/** The values that flags were set to. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** Reads the flags of a command that takes no other arguments. */
export const readFlags = (args: readonly string[], flags: Flags): FlagValues => readLine(args, flags, 0).flags

/** Reads the flags of a command and the words between them. */
export const readLine = (
  args: readonly string[],
  flags: Flags,
  maxWords = Number.POSITIVE_INFINITY,
): { readonly flags: FlagValues; readonly words: readonly string[] } => {
  const options: NonNullable<ParseArgsConfig['options']> = { help: { type: 'boolean', short: 'h' } }
  for (const [name, { value, many = false }] of Object.entries(flags))
    options[name] = { type: value ? 'string' : 'boolean', multiple: many }
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, strict: true, allowPositionals: true })
    const extra = values.help ? undefined : positionals[maxWords]
    if (extra !== undefined) throw new Error(`Unexpected argument '${extra}'`)
    return { flags: values as FlagValues, words: positionals }
  } catch (error) {
    throw new UsageError(explain((error as Error).message, Object.keys(options)))
  }
}

const explain = (message: string, names: readonly string[]): string => {
  const [sentence = message] = message.split(/\. |\n/)
  const unknown = /^Unknown option '--(.+)'$/.exec(sentence)?.[1]
  const meant = unknown === undefined ? undefined : nearest(unknown, names)
  return `${sentence.replace(/\.$/, '')}${meant ? `; did you mean '--${meant}'?` : ''}`
}

/** The value of a flag, if one was given. */
export const textOf = (values: FlagValues, name: string): string | undefined => {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

/** Every value of a flag that may be repeated. */
export const textsOf = (values: FlagValues, name: string): readonly string[] => {
  const value = values[name]
  return Array.isArray(value) ? value : []
}

export const DATA_FLAG: Flags = {
  data: { value: 'DIR', help: "data directory (default: $DRAGOMAN_DATA, else the platform's)" },
}
export const JSON_FLAG: Flags = { json: { help: 'print JSON' } }

export const dataDirectoryOf = (flags: FlagValues): string =>
  dataDirectory({ flag: textOf(flags, 'data'), env: process.env })

/** For commands that take the file as a word, too. */
export const CONFIG_FLAG: Flags = { config: { value: 'FILE', help: 'the same as FILE' } }

/** The file that was named by a word or by --config; undefined: none was. */
export const namedFile = (flags: FlagValues, word: string | undefined): string | undefined => {
  const named = textOf(flags, 'config')
  if (named === '') throw new UsageError('--config: expected a file')
  if (named !== undefined && word !== undefined) throw new UsageError('expected FILE or --config FILE, not both')
  return word ?? named
}

/** The configuration file: --config, or the one that is found; undefined if there is none. */
export const configFileOf = async (flags: FlagValues): Promise<string | undefined> => {
  const named = textOf(flags, 'config')
  if (named === '') throw new UsageError('--config: expected a file')
  if (named !== undefined) return named
  const { findConfig } = await import('../config/find-config.ts') // most commands need no file
  return findConfig({ env: process.env })
}

/** One action of a command such as `dragoman token`, as its help shows it. */
interface DescribedAction {
  readonly usage: string
  readonly summary: string
  readonly flags: Flags
}

/** The action of that name; a UsageError names the one that was probably meant. */
export const findAction = <A>(actions: Readonly<Record<string, A>>, name: string): A => {
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (action) return action
  const meant = nearest(name, Object.keys(actions))
  const hint = meant ? `did you mean "${meant}"?` : `expected ${Object.keys(actions).join(', ')}`
  throw new UsageError(`${JSON.stringify(name)} is not an action; ${hint}`)
}

/** The help of a command: its actions, and every flag with the actions it belongs to. */
export const commandHelp = (
  command: string,
  about: string,
  actions: Readonly<Record<string, DescribedAction>>,
  common: Flags,
): string => `Usage: dragoman ${command} <action> [flags]

${about}

${columns(Object.values(actions).map(({ usage, summary }) => [usage, summary]))}

${flagHelp({ ...flagsByAction(actions), ...common })}

Run "dragoman ${command} <action> --help" for the flags of one action.
`

/** The help of one action. */
export const actionHelp = (command: string, { usage, summary, flags }: DescribedAction, common: Flags): string =>
  `Usage: dragoman ${command} ${usage} [flags]

${summary.charAt(0).toUpperCase()}${summary.slice(1)}.

${flagHelp({ ...flags, ...common })}
`

const flagsByAction = (actions: Readonly<Record<string, DescribedAction>>): Flags => {
  const flagged = Object.entries(actions).flatMap(([action, { flags }]) =>
    Object.entries(flags).map(([name, flag]) => ({ action, name, flag })),
  )
  const helpOf = (name: string): string => {
    const same = flagged.filter(other => other.name === name)
    return [...new Set(same.map(({ flag }) => flag.help))]
      .map(
        help =>
          `${same
            .filter(({ flag }) => flag.help === help)
            .map(({ action }) => action)
            .join(', ')}: ${help}`,
      )
      .join('; ')
  }
  return Object.fromEntries(flagged.map(({ name, flag }) => [name, { ...flag, help: helpOf(name) }]))
}

/** The help of a command's flags. */
export const flagHelp = (flags: Flags): string =>
  columns([
    ...Object.entries(flags).map(([name, { value, help }]) => [`--${name}${value ? ` ${value}` : ''}`, help] as const),
    ['-h, --help', 'show this help'],
  ])

/** Two aligned columns, for help. */
export const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}`).join('\n')
}

/** Rows whose columns are aligned, for output. */
export const table = (rows: readonly (readonly string[])[]): string => {
  const count = Math.max(0, ...rows.map(row => row.length))
  const widths = Array.from({ length: count }, (_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return `${rows.map(row => line(row).trimEnd()).join('\n')}\n`
}

/** Writes to stdout and returns the exit code. */
export const print = (text: string, code = 0): number => {
  process.stdout.write(text)
  return code
}

export const printJson = (value: unknown, code = 0): number => print(`${JSON.stringify(value, undefined, 2)}\n`, code)

/** Writes an error to stderr and returns the exit code. A message may quote what a server says, which must not steer the terminal. */
export const printError = (message: string, code = 1): number => {
  process.stderr.write(`dragoman: ${safeText(message)}\n`)
  return code
}
