import type { MemoryAdmin, MemoryAdminOptions } from '../../servers/memory/memory-admin.ts'
import type { Groups } from '../../servers/memory/store.ts'
import { type Flags, type FlagValues, textOf, UsageError } from '../usage.ts'

/** An entity, fact, episode or job as the tools present it: `uuid`, `group_id`, `valid_at` and so on. */
export type PresentedRow = Readonly<Record<string, unknown>>

/** The command line of an action, and the memory it works on. */
export interface ActionRequest {
  readonly words: readonly string[]
  readonly flags: FlagValues
  readonly groups: Groups
  readonly limit: number
  readonly target: MemoryAdminOptions
  readonly admin: MemoryAdmin
}

/** An action of `dragoman memory`. */
export interface Action {
  readonly usage: string
  readonly summary: string
  readonly flags: Flags
  readonly words: readonly [least: number, most: number]
  readonly isUngrouped?: boolean // it has no --group
  readonly creates?: boolean // it creates a memory that does not exist
  readonly run: (request: ActionRequest) => Promise<number>
}

/** A member that is text, or an empty text. */
export const textIn = (row: PresentedRow, key: string): string => {
  const value = row[key]
  return typeof value === 'string' ? value : ''
}

/** Replaces control characters: stored text comes from others, and could steer the terminal. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}]/gu, sign => (sign === '\n' ? '\n' : ' '))

export const printableLine = (text: string): string => printable(text).replaceAll('\n', ' ')

export const dayOf = (time: string): string => time.slice(0, 10)

const MOST = 1000

export const LIMIT: Flags = { limit: { value: 'N', help: 'at most N (default: 10)' } }

export const limitOf = (flags: FlagValues): number => {
  const text = textOf(flags, 'limit')
  if (text === undefined) return 10
  if (/^\d{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST) return Number(text)
  throw new UsageError(`--limit: expected a whole number from 1 to ${MOST}`)
}

export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`
