import type { ConfigPath } from './json-text.ts'
import { type ConfigReport, formatPath } from './problems.ts'
import type { ServerEntry } from './schema.ts'

/** A text with placeholders for the name and the workspace of the caller. */
export type CallerTemplate = readonly (string | { readonly caller: 'name' | 'workspace' })[]

/** Headers or environment variables, by name. */
export type CallerTemplates = Readonly<Record<string, CallerTemplate>>

/** The values for one caller; `missing`: they are configured, but the environment lacks one of them. */
export type CallerCredential =
  | { readonly kind: 'values'; readonly values: CallerTemplates }
  | { readonly kind: 'missing'; readonly reason: string }

/** The headers or environment variables of a server that depend on the caller; they override the others. */
export interface CallerValues {
  readonly values: CallerTemplates
  readonly credentials?: Readonly<Record<string, CallerCredential>> | undefined // by principal; `*`: all others
}

const ANY_PLACEHOLDER = /\$\{caller\.[^}]*\}/g
const PLACEHOLDER = /\$\{caller\.(name|workspace)\}/
const PLACEHOLDERS = ['${caller.name}', '${caller.workspace}']

/** Why a text has an unknown placeholder. */
export const placeholderError = (text: string): string | undefined => {
  const unknown = text.match(ANY_PLACEHOLDER)?.find(placeholder => !PLACEHOLDERS.includes(placeholder))
  return unknown && `${unknown} is not known: there are ${PLACEHOLDERS.join(' and ')}`
}

/** Which ends of the whole text a piece includes. */
export interface PieceEnds {
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** Splits a text at its placeholders; `fill` fills in the references in the pieces between them. */
export const readTemplate = (text: string, fill: (piece: string, ends: PieceEnds) => string): CallerTemplate =>
  text
    .split(PLACEHOLDER)
    .map((piece, i, { length }) =>
      i % 2 === 0
        ? fill(piece, { isFirst: i === 0, isLast: i === length - 1 })
        : { caller: piece as 'name' | 'workspace' },
    )
    .filter(piece => piece !== '')

/** Separates the values that are the same for all callers from those that have placeholders. */
export const splitByCaller = (
  all: CallerTemplates,
): { readonly shared: Readonly<Record<string, string>>; readonly values: CallerTemplates } => {
  const isShared = ([, template]: [string, CallerTemplate]): boolean =>
    template.every(piece => typeof piece === 'string')
  const entries = Object.entries(all)
  return {
    shared: Object.fromEntries(entries.filter(isShared).map(([name, template]) => [name, template.join('')])),
    values: Object.fromEntries(entries.filter(entry => !isShared(entry))),
  }
}

interface CredentialReader {
  readonly member: 'headers' | 'env' // what credentials are for this kind of server
  readonly report: ConfigReport
  /** Reads the headers or variables of one caller; adds to `missing` what the environment lacks. */
  read(values: Readonly<Record<string, string>>, at: ConfigPath, missing: string[]): CallerTemplates
}

type GivenCredential = Readonly<Partial<Record<'headers' | 'env', Readonly<Record<string, string>> | undefined>>>

const WRONG_MEMBER = {
  env: 'variables go with a "command"; a remote server takes "headers"',
  headers: 'headers go with a "url"; a "command" takes "env"',
}

/** Reads `credentials`. A missing variable makes the server unusable for one caller, not for all. */
const readCredentials = (
  { credentials }: ServerEntry,
  path: ConfigPath,
  { member, report, read }: CredentialReader,
): CallerValues['credentials'] => {
  if (!credentials) return undefined
  const other = member === 'headers' ? 'env' : 'headers'
  const readOne = (principal: string, given: GivenCredential): CallerCredential => {
    const at = [...path, 'credentials', principal]
    const missing: string[] = []
    if (given[other]) report.problems.push({ path: [...at, other], message: WRONG_MEMBER[other] })
    const values = read(given[member] ?? {}, [...at, member], missing)
    if (missing.length === 0) return { kind: 'values', values }
    const reason = missing.join('; ')
    report.warnings.push(`${formatPath(path)}: ${reason}; the callers it is for cannot use the server`)
    return { kind: 'missing', reason }
  }
  if (Object.keys(credentials).length === 0)
    report.warnings.push(`${formatPath([...path, 'credentials'])}: is empty, so no caller can use the server`)
  return Object.fromEntries(Object.entries(credentials).map(([name, given]) => [name, readOne(name, given)]))
}

/** The values that depend on the caller, if there are any. */
export const readCallerValues = (
  values: CallerTemplates,
  entry: ServerEntry,
  path: ConfigPath,
  reader: CredentialReader,
): { readonly personal?: CallerValues } => {
  const credentials = readCredentials(entry, path, reader)
  if (credentials) return { personal: { values, credentials } }
  return Object.keys(values).length > 0 ? { personal: { values } } : {}
}
