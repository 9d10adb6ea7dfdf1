import { type Flags, type FlagValues, textOf, UsageError } from '../usage.ts'
import type { Groups, MemoryAdmin, MemoryPlace, Shown } from './memory-admin.ts'

/** What was asked for, read from the command line. */
export interface Request {
  readonly words: readonly string[]
  readonly flags: FlagValues
  readonly groups: Groups
  readonly limit: number
  readonly place: MemoryPlace
  readonly office: MemoryAdmin
}

/** Something that can be done with a memory. */
export interface Action {
  readonly usage: string
  readonly summary: string
  readonly flags: Flags
  readonly words: readonly [least: number, most: number]
  /** Is about all groups at once. */
  readonly whole?: boolean
  /** Makes the memory where there is none. */
  readonly creates?: boolean
  readonly run: (request: Request) => Promise<number>
}

export const print = (text: string, code = 0): number => {
  process.stdout.write(text)
  return code
}

export const printJson = (value: unknown, code = 0): number => print(`${JSON.stringify(value, undefined, 2)}\n`, code)

export const complain = (text: string, code = 1): number => {
  process.stderr.write(`dragoman: ${text}\n`)
  return code
}

/** A member that is text, or nothing to show. */
export const wordOf = (shown: Shown, key: string): string => {
  const value = shown[key]
  return typeof value === 'string' ? value : ''
}

/** Without the signs that steer a terminal: what is kept was written by others. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}]/gu, sign => (sign === '\n' ? '\n' : ' '))

/** Text under a line of its own, set in. */
export const indented = (text: string): string => printable(text).trim().replaceAll(/^/gm, '  ')

/** A day, or a day and a time where it matters. */
export const dayOf = (moment: string): string => moment.slice(0, 10)

const MOST = 1000

/** How many at most. */
export const limitOf = (flags: FlagValues): number => {
  const text = textOf(flags, 'limit')
  if (text === undefined) return 10
  if (/^\d{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST) return Number(text)
  throw new UsageError(`--limit: expected a whole number from 1 to ${MOST}`)
}

export const LIMIT: Flags = { limit: { value: 'N', help: 'so many at most (10)' } }

export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`
