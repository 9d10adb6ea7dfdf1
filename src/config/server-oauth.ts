import * as z from 'zod'
import { isSecretSafe } from '../std/host.ts'
import { scopeList } from './auth-schema.ts'
import type { ConfigPath } from './json-text.ts'
import { type ConfigReport, formatPath, nearest, quoteAll, suggest, unknownKeyWarnings } from './problems.ts'
import { looseObject, oneOfSchema, textSchema } from './schema-parts.ts'
import type { ServerOAuth } from './snapshot.ts'
import { type Environment, fillIn, fillInPath, hasReference } from './variables.ts'

const GRANTS = ['authorization_code', 'client_credentials', 'jwt_bearer', 'id_jag'] as const

/** `oauth` of an entry with a `url`. Other clients use the key, too: their members are ignored with a warning. */
const settingsSchema = looseObject({
  grant: oneOfSchema(GRANTS)
    .default('authorization_code')
    .describe(
      'How the gateway gets tokens: a person logs in (authorization_code), with its own account (client_credentials), with an assertion (jwt_bearer), or with the sign-in of the caller at "idp" (id_jag).',
    ),
  issuer: textSchema.optional().describe('The authorization server; the one that the server names when absent.'),
  clientId: textSchema
    .optional()
    .describe('A client that is registered there; the gateway registers itself when absent.'),
  clientSecret: textSchema.optional().describe('Its secret; write ${NAME} or ${file:PATH}.'),
  privateKey: textSchema.optional().describe('Its private key instead of a secret, as PEM or JWK; write ${file:PATH}.'),
  scopes: scopeList.optional().describe('Scopes to ask for; those that the server names when absent.'),
  login: oneOfSchema(['caller', 'gateway'])
    .optional()
    .describe('Who logs in: each caller (the default), or one login of the gateway for all callers.'),
  clientMetadataUrl: textSchema
    .optional()
    .describe("The URL of the gateway's client metadata document, if not its own."),
  pkce: oneOfSchema(['assumed'])
    .optional()
    .describe('For an authorization server that supports PKCE without saying so.'),
  assertion: textSchema.optional().describe('The assertion of jwt_bearer; write ${NAME}.'),
  assertionFile: textSchema.optional().describe('A file with the assertion of jwt_bearer, read for each request.'),
  idp: textSchema.optional().describe('The issuer of "auth" whose sign-in id_jag uses.'),
})

export const oauthSchema = z
  .union([z.literal(false), settingsSchema], {
    error: 'expected false, or an object; leave it out, and the gateway logs in if the server asks for it',
  })
  .describe('How the gateway gets tokens for the server, if it asks for them; false: never.')

type OAuthEntry = z.output<typeof settingsSchema>
type OAuthKey = Exclude<keyof typeof settingsSchema.shape, 'grant'>

/** Which keys a grant takes, and what it needs: one key of each list. */
const RULES: Readonly<Record<OAuthEntry['grant'], { takes: readonly OAuthKey[]; needs: readonly OAuthKey[][] }>> = {
  authorization_code: { takes: ['login', 'clientMetadataUrl', 'pkce'], needs: [] },
  client_credentials: { takes: [], needs: [['clientId'], ['clientSecret', 'privateKey']] },
  jwt_bearer: { takes: ['assertion', 'assertionFile'], needs: [['assertion', 'assertionFile']] },
  id_jag: { takes: ['idp'], needs: [['clientId'], ['idp']] },
}
const FOR_ALL: readonly OAuthKey[] = ['issuer', 'clientId', 'clientSecret', 'privateKey', 'scopes']
const ALTERNATIVES: readonly (readonly [OAuthKey, OAuthKey])[] = [
  ['clientSecret', 'privateKey'],
  ['assertion', 'assertionFile'],
]
const URLS: readonly OAuthKey[] = ['issuer', 'clientMetadataUrl']
const KNOWN_KEYS = Object.keys(settingsSchema.shape)

/** What `oauth` is read with. */
interface OAuthContext {
  readonly env: Environment
  readonly path: ConfigPath // of `oauth`
  readonly missing: string[] // gets what the environment lacks
}

/** Reads `oauth` of a remote server. */
export const readOAuth = (entry: OAuthEntry, context: OAuthContext, report: ConfigReport): ServerOAuth => {
  const { path } = context
  const unknown = Object.keys(entry).filter(key => !KNOWN_KEYS.includes(key))
  for (const warning of unknownKeyWarnings(unknown, key => nearest(key, KNOWN_KEYS)))
    report.warnings.push(`${formatPath(path)}: ${warning}`)
  const keys = Object.keys(entry).filter(isOAuthKey)
  checkKeys(entry.grant, keys, path, report)
  const texts = keys.filter(key => key !== 'scopes').map(key => [key, readText(entry, key, context, report)] as const)
  const settings = { ...Object.fromEntries(texts), ...(entry.scopes && { scopes: entry.scopes }), grant: entry.grant }
  const login = entry.grant === 'authorization_code' ? { login: entry.login ?? 'caller' } : {}
  return { ...settings, ...login } as ServerOAuth // RULES has what each grant needs
}

const isOAuthKey = (key: string): key is OAuthKey => key !== 'grant' && KNOWN_KEYS.includes(key)

const checkKeys = (
  grant: OAuthEntry['grant'],
  keys: readonly OAuthKey[],
  path: ConfigPath,
  report: ConfigReport,
): void => {
  const { takes, needs } = RULES[grant]
  const reject = (at: ConfigPath, message: string): void =>
    void report.problems.push({ path: [...path, ...at], message })
  for (const key of keys.filter(key => !takes.includes(key) && !FOR_ALL.includes(key))) {
    const others = GRANTS.filter(other => RULES[other].takes.includes(key))
    reject([key], `goes with the grant ${quoteAll(others)}, not with "${grant}"`)
  }
  for (const some of needs.filter(some => !some.some(key => keys.includes(key))))
    reject([], `the grant "${grant}" needs ${some.map(key => JSON.stringify(key)).join(' or ')}`)
  for (const pair of ALTERNATIVES.filter(pair => pair.every(key => keys.includes(key))))
    reject([pair[1]], `has ${quoteAll(pair)}; keep only one of them`)
  for (const key of ['clientSecret', 'privateKey'] as const)
    if (keys.includes(key) && !keys.includes('clientId') && !needs.some(some => some.includes('clientId')))
      reject([key], 'goes with "clientId"')
}

const readText = (
  entry: OAuthEntry,
  key: Exclude<OAuthKey, 'scopes'>,
  { env, path, missing }: OAuthContext,
  report: ConfigReport,
): string => {
  const text = String(entry[key])
  const filled = key === 'assertionFile' ? fillInPath(text, env) : fillIn(text, env)
  if (filled.kind === 'missing') {
    missing.push(`oauth.${key}: ${filled.reason}`)
    return ''
  }
  const value = filled.text.trim()
  const error = textError(key, value)
  if (error && hasReference(text)) missing.push(`oauth.${key}, with its variables filled in: ${error}`)
  else if (error) report.problems.push({ path: [...path, key], message: error })
  return value
}

const textError = (key: OAuthKey, value: string): string | undefined => {
  if (value === '') return 'expected a text that is not empty'
  const url = URLS.includes(key) ? URL.parse(value) : undefined
  if (url === null || (url && !isSecretSafe(url))) return 'expected a URL with https://, or http:// on this machine'
  if (key === 'clientMetadataUrl' && (url?.protocol !== 'https:' || url.pathname === '/'))
    return 'expected an https URL with a path, like "https://mcp.example.com/oauth/client.json"'
  if (key === 'privateKey' && !/^(-----BEGIN [A-Z ]*PRIVATE KEY-----|\{)/.test(value))
    return 'expected a private key as PEM ("-----BEGIN PRIVATE KEY-----") or JWK; write ${file:PATH}'
  return undefined
}

/** Reports servers whose `idp` is no issuer where people can sign in. */
export const checkIdps = (
  idps: readonly { readonly idp: string; readonly path: ConfigPath }[],
  issuers: ReadonlyMap<string, { readonly clientId?: string | undefined }>,
  report: ConfigReport,
): void => {
  for (const { idp, path } of idps) {
    if (issuers.get(idp)?.clientId !== undefined) continue
    const message = issuers.has(idp)
      ? `${formatPath(['auth', 'issuers', idp])} has no "clientId", so callers cannot sign in there`
      : `no issuer ${JSON.stringify(idp)}; ${suggest(idp, issuers.keys(), 'add it to "auth.issuers"')}`
    report.problems.push({ path, message })
  }
}
