import type { ConfigPath } from './json-text.ts'
import { formatPath, type Problem } from './problems.ts'
import type { ServerEntry } from './schema.ts'

/** A text with places for what is known of whoever calls. */
export type Template = readonly (string | { readonly caller: 'name' | 'workspace' })[]

/** Headers or variables, by name. */
export type Templates = Readonly<Record<string, Template>>

/** What one caller is known by at a server; `lacking`: it is configured, but the environment does not hold it. */
export type Credential =
  | { readonly kind: 'values'; readonly values: Templates }
  | { readonly kind: 'lacking'; readonly reason: string }

/** The headers or variables of a server that differ by who calls; they go before those that do not. */
export interface Personal {
  readonly values: Templates
  readonly credentials?: Readonly<Record<string, Credential>> | undefined // by principal; `*`: whoever has none
}

const ANY_PLACE = /\$\{caller\.[^}]*\}/g
const PLACES = /\$\{caller\.(name|workspace)\}/
const KNOWN = ['${caller.name}', '${caller.workspace}']

/** Why a text has a place nothing can be put into. */
export const placeFault = (text: string): string | undefined => {
  const strange = text.match(ANY_PLACE)?.find(place => !KNOWN.includes(place))
  return strange && `${strange} is not known: there are ${KNOWN.join(' and ')}`
}

/** Splits a text at its places; what is between them is filled in as anywhere else. */
export const readTemplate = (text: string, fill: (piece: string, ends: Ends) => string): Template =>
  text
    .split(PLACES)
    .map((piece, i, { length }) =>
      i % 2 === 0
        ? fill(piece, { isFirst: i === 0, isLast: i === length - 1 })
        : { caller: piece as 'name' | 'workspace' },
    )
    .filter(piece => piece !== '')

/** Where in its text a piece stands. */
export interface Ends {
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** Those that are the same for everybody, and those that are not. */
export const divide = (
  all: Templates,
): { readonly plain: Readonly<Record<string, string>>; readonly values: Templates } => {
  const isSame = ([, template]: [string, Template]): boolean => template.every(piece => typeof piece === 'string')
  const entries = Object.entries(all)
  return {
    plain: Object.fromEntries(entries.filter(isSame).map(([name, template]) => [name, template.join('')])),
    values: Object.fromEntries(entries.filter(entry => !isSame(entry))),
  }
}

interface Reading {
  readonly member: 'headers' | 'env' // what credentials are for such a server
  readonly found: { readonly problems: Problem[]; readonly warnings: string[] }
  /** Reads the headers or variables of one caller; notes in `lacking` what the environment does not hold. */
  read(values: Readonly<Record<string, string>>, at: ConfigPath, lacking: string[]): Templates
}

/** Reads `credentials`; what the environment lacks costs one caller, not the server. */
export const readCredentials = (
  { credentials }: ServerEntry,
  path: ConfigPath,
  { member, found, read }: Reading,
): Personal['credentials'] => {
  if (!credentials) return undefined
  const other = member === 'headers' ? 'env' : 'headers'
  const readOne = (principal: string, given: Given): Credential => {
    const at = [...path, 'credentials', principal]
    const lacking: string[] = []
    if (given[other]) found.problems.push({ path: [...at, other], message: WRONG_MEMBER[other] })
    const values = read(given[member] ?? {}, [...at, member], lacking)
    if (lacking.length === 0) return { kind: 'values', values }
    const reason = lacking.join('; ')
    found.warnings.push(`${formatPath(path)}: ${reason}; whoever it is for cannot use the server`)
    return { kind: 'lacking', reason }
  }
  if (Object.keys(credentials).length === 0)
    found.warnings.push(`${formatPath([...path, 'credentials'])}: is empty, so nobody can use the server`)
  return Object.fromEntries(Object.entries(credentials).map(([name, given]) => [name, readOne(name, given)]))
}

type Given = Readonly<Partial<Record<'headers' | 'env', Readonly<Record<string, string>> | undefined>>>

const WRONG_MEMBER = {
  env: 'variables go with a "command"; a remote server takes "headers"',
  headers: 'headers go with a "url"; a "command" takes "env"',
}

/** What differs by caller, if anything does. */
export const personalOf = (
  values: Templates,
  credentials: Personal['credentials'],
): { readonly personal?: Personal } => {
  if (credentials) return { personal: { values, credentials } }
  return Object.keys(values).length > 0 ? { personal: { values } } : {}
}
