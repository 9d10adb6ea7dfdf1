import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearest } from '../config/problems.ts'

/** The command line is wrong; the message says what to write instead. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** The flags of a command, by name; `value` is the placeholder in help, absent for a switch. */
export type Flags = Readonly<
  Record<string, { readonly value?: string; readonly many?: boolean; readonly help: string }>
>

/** What a flag was set to. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** Reads the flags of a command; anything else on the line is a UsageError. */
export const readFlags = (args: readonly string[], flags: Flags): FlagValues => readLine(args, flags, false).flags

/** Reads the flags of a command and the words between them. */
export const readLine = (
  args: readonly string[],
  flags: Flags,
  takesWords = true,
): { readonly flags: FlagValues; readonly words: readonly string[] } => {
  const options: NonNullable<ParseArgsConfig['options']> = { help: { type: 'boolean', short: 'h' } }
  for (const [name, { value, many = false }] of Object.entries(flags))
    options[name] = { type: value ? 'string' : 'boolean', multiple: many }
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, strict: true, allowPositionals: takesWords })
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

/** A flag's value where one was given. */
export const textOf = (values: FlagValues, name: string): string | undefined => {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

/** Every value of a flag that may be given more than once. */
export const textsOf = (values: FlagValues, name: string): readonly string[] => {
  const value = values[name]
  return Array.isArray(value) ? value : []
}

/** Rows of two columns, aligned, for help. */
export const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}`).join('\n')
}

/** The help of a command's flags. */
export const flagHelp = (flags: Flags): string =>
  columns([
    ...Object.entries(flags).map(([name, { value, help }]) => [`--${name}${value ? ` ${value}` : ''}`, help] as const),
    ['-h, --help', 'show this'],
  ])
