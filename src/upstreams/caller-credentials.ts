import type { CallerTemplate, CallerTemplates, CallerValues } from '../config/caller-values.ts'
import type { Caller } from '../protocol/exchange.ts'
import { UpstreamFailure } from './failures.ts'

/** The headers or variables of a server that differ by caller. */
export interface CallerCredentials {
  readonly name: string // of the server
  readonly personal: CallerValues
  /** Why a text cannot be such a value; undefined if it can. */
  faultOf(text: string): string | undefined
}

const ANY_OTHER_CALLER = '*'
const ANONYMOUS = 'needs the credentials of each caller: an anonymous caller has none'

/** The headers or variables for that caller; throws UpstreamFailure if it has none. */
export const credentialsFor = (
  { name, personal, faultOf }: CallerCredentials,
  caller: Pick<Caller, 'principal' | 'workspace'>,
): Readonly<Record<string, string>> => {
  const { principal } = caller
  const refuse = (text: string): never => {
    throw new UpstreamFailure(name, { reason: 'no_credentials', text }, principal === undefined ? {} : { principal })
  }
  const fill = (template: CallerTemplate): string =>
    template.map(piece => (typeof piece === 'string' ? piece : textOf(piece.caller))).join('')

  const textOf = (what: 'name' | 'workspace'): string => {
    const text = what === 'name' ? principal : caller.workspace
    if (text === undefined) return refuse(ANONYMOUS)
    const fault = text === text.trim() ? faultOf(text) : 'begins or ends with a blank'
    return fault ? refuse(`cannot be given the ${what} ${JSON.stringify(text)} of the caller: it ${fault}`) : text
  }
  const templates = { ...personal.values, ...configuredFor(personal, principal, refuse) }
  return Object.fromEntries(Object.entries(templates).map(([key, template]) => [key, fill(template)]))
}

const configuredFor = (
  { credentials }: CallerValues,
  principal: string | undefined,
  refuse: (text: string) => never,
): CallerTemplates => {
  if (!credentials) return {}
  const isNamed = principal !== undefined && principal !== ANY_OTHER_CALLER && Object.hasOwn(credentials, principal)
  const fallback = Object.hasOwn(credentials, ANY_OTHER_CALLER) ? credentials[ANY_OTHER_CALLER] : undefined
  const found = isNamed ? credentials[principal] : fallback
  if (found?.kind === 'values') return found.values
  if (principal === undefined) return refuse(ANONYMOUS)
  const why = found ? ` (${found.reason})` : ': add an entry to its "credentials" in the configuration'
  return refuse(`has no credentials for ${JSON.stringify(principal)}${why}`)
}

/** Returns a function whose keys are equal for callers that the server cannot tell apart. */
export const createCallerKey = ({ personal }: CallerCredentials): ((caller: Caller) => string) => {
  const usesWorkspace = allTemplates(personal).some(templates => Object.values(templates).some(namesWorkspace))
  return ({ principal, workspace }) => JSON.stringify([principal ?? null, ...(usesWorkspace ? [workspace] : [])])
}

const allTemplates = ({ values, credentials = {} }: CallerValues): CallerTemplates[] => [
  values,
  ...Object.values(credentials).map(credential => (credential.kind === 'values' ? credential.values : {})),
]

const namesWorkspace = (template: CallerTemplate): boolean =>
  template.some(piece => typeof piece !== 'string' && piece.caller === 'workspace')
