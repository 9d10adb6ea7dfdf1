import type { CallerTemplate, CallerTemplates, CallerValues } from '../../config/caller-values.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { type FailureDetails, UpstreamFailure } from '../failures.ts'

/** The headers or variables of a server that differ by caller, and what such a value may not hold. */
export interface CallerCredentials {
  readonly name: string // of the server
  readonly personal: CallerValues
  faultOf(text: string): string | undefined
}

const EVERYBODY_ELSE = '*'

/** What the server is told in the name of that caller; throws UpstreamFailure where there is nothing to tell. */
export const credentialsFor = (
  { name, personal, faultOf }: CallerCredentials,
  caller: Caller,
): Readonly<Record<string, string>> => {
  const { principal } = caller
  const refuse = (text: string): never => {
    const loss: FailureDetails = { reason: 'no_credentials', text }
    throw new UpstreamFailure(name, loss, principal === undefined ? {} : { principal })
  }
  const fill = (template: CallerTemplate): string =>
    template.map(piece => (typeof piece === 'string' ? piece : known(piece.caller))).join('')

  const known = (what: 'name' | 'workspace'): string => {
    const text = what === 'name' ? principal : caller.workspace
    if (text === undefined) return refuse(UNKNOWN)
    const fault = text === text.trim() ? faultOf(text) : 'begins or ends with a blank'
    return fault ? refuse(`cannot be told that ${JSON.stringify(text)} calls: the ${what} ${fault}`) : text
  }
  const own = { ...personal.values, ...credentialOf(personal, principal, refuse) }
  return Object.fromEntries(Object.entries(own).map(([key, template]) => [key, fill(template)]))
}

const credentialOf = (
  { credentials }: CallerValues,
  principal: string | undefined,
  refuse: (text: string) => never,
): CallerTemplates => {
  if (!credentials) return {}
  const isNamed = principal !== undefined && principal !== EVERYBODY_ELSE && Object.hasOwn(credentials, principal)
  const credential = Object.hasOwn(credentials, EVERYBODY_ELSE) ? credentials[EVERYBODY_ELSE] : undefined
  const found = isNamed ? credentials[principal] : credential
  if (found?.kind === 'values') return found.values
  if (principal === undefined) return refuse(UNKNOWN)
  const why = found ? ` (${found.reason})` : ': add an entry to its "credentials" in the configuration'
  return refuse(`has no credentials for ${JSON.stringify(principal)}${why}`)
}

const UNKNOWN = 'is called in the name of each caller: it cannot be called by one nobody knows'

/** Gives a name to a caller that is equal for callers who are the same to the server. */
export const createCallerKey = ({ personal }: CallerCredentials): ((caller: Caller) => string) => {
  const tellsWorkspace = everythingIn(personal).some(templates => Object.values(templates).some(isAboutWorkspace))
  return ({ principal, workspace }) => JSON.stringify([principal ?? null, ...(tellsWorkspace ? [workspace] : [])])
}

const everythingIn = ({ values, credentials = {} }: CallerValues): CallerTemplates[] => [
  values,
  ...Object.values(credentials).map(credential => (credential.kind === 'values' ? credential.values : {})),
]

const isAboutWorkspace = (template: CallerTemplate): boolean =>
  template.some(piece => typeof piece !== 'string' && piece.caller === 'workspace')
