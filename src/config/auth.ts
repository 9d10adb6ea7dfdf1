import { isLoopback } from '../std/host.ts'
import { type AuthEntry, authSchema, SCOPE } from './auth-schema.ts'
import { fillInSection } from './fill-in-section.ts'
import type { ConfigPath } from './json-text.ts'
import { type ConfigReport, formatPath, suggest } from './problems.ts'
import { readWith } from './read-with.ts'
import {
  type Auth,
  type AuthServerConfig,
  acceptsOAuth,
  type Grant,
  type Issuer,
  type Listen,
  type ScopeRule,
} from './snapshot.ts'
import type { Environment } from './variables.ts'

/** What `auth` refers to in the rest of the file. */
interface AuthContext {
  readonly env: Environment
  readonly listen: Listen
  readonly workspaces: readonly string[] // including entries with problems
  readonly policies: Iterable<string>
}

type IssuerEntry = NonNullable<AuthEntry['issuers']>[string]

/** How people sign in at the embedded authorization server with an API token. */
const BY_TOKEN = 'token'
const ISSUER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const EVERY_WORKSPACE = '*'

/** The section `auth` with its variables filled in; empty if it has problems. */
export const readAuth = (raw: unknown, context: AuthContext, report: ConfigReport): Auth => {
  const before = report.problems.length
  const filled = fillInSection(raw === undefined ? {} : raw, context.env, ['auth'], report)
  const entry = report.problems.length > before ? undefined : readWith(authSchema, filled, ['auth'], report)
  if (!entry) return {}
  const { required, issuers: givenIssuers, scopes: givenScopes, server: givenServer } = entry
  const issuers = givenIssuers && readIssuers(givenIssuers, context, report)
  const scopes = givenScopes && readScopes(givenScopes, report)
  const server = givenServer && readAuthServer(givenServer, issuers ?? new Map(), report)
  const found: Auth = {
    ...(required !== undefined && { required }),
    ...(issuers && { issuers }),
    ...(scopes && { scopes }),
    ...(server && { server }),
  }
  checkTogether(found, context.listen, report)
  return found
}

const checkTogether = (auth: Auth, listen: Listen, report: ConfigReport): void => {
  if (!acceptsOAuth(auth)) {
    if (auth.scopes)
      report.warnings.push('auth.scopes: no effect without "issuers" or "server": API tokens hold all scopes')
    return
  }
  if (auth.required === false)
    report.problems.push({
      path: ['auth', 'required'],
      message: 'false contradicts "issuers" and "server": leave it out, or remove them',
    })
  const foreign = [listen.host, ...listen.allowedHosts].find(host => !isLoopback(host.replace(/:\d+$/, '')))
  if (listen.publicUrl === undefined && foreign !== undefined)
    report.problems.push({
      path: ['auth', auth.issuers ? 'issuers' : 'server'],
      message:
        'needs "listen": { "publicUrl": "https://…" }, the address that clients use: the gateway can be reached from ' +
        `other machines (${JSON.stringify(foreign)}), and tokens are bound to its address`,
    })
}

const readIssuers = (
  given: Readonly<Record<string, IssuerEntry>>,
  context: AuthContext,
  report: ConfigReport,
): ReadonlyMap<string, Issuer> => {
  const issuers = Object.entries(given).map(([name, entry]) => readIssuer(name, entry, context, report))
  const reject = (name: string, key: string, message: string): void =>
    void report.problems.push({ path: ['auth', 'issuers', name, key], message })
  for (const [at, { name, url }] of issuers.entries()) {
    const other = issuers.slice(0, at).find(each => each.url === url)
    if (other) reject(name, 'url', `is that of ${JSON.stringify(other.name)}, too; "iss" says whose token it is`)
  }
  const [asked, ...others] = issuers.filter(({ introspection }) => introspection)
  for (const { name } of others)
    reject(
      name,
      'introspection',
      `${JSON.stringify(asked?.name)} has it already; an opaque token does not say whose it is, and must not be shown to both`,
    )
  const reservedNames = issuers.flatMap(({ name, principal }) => (principal === undefined ? [name] : []))
  return new Map(
    issuers.map(issuer => [issuer.name, issuer.principal === undefined ? issuer : { ...issuer, reservedNames }]),
  )
}

const readIssuer = (name: string, entry: IssuerEntry, context: AuthContext, report: ConfigReport): Issuer => {
  const path = ['auth', 'issuers', name]
  const reject = (at: ConfigPath, message: string): void =>
    void report.problems.push({ path: [...path, ...at], message })
  if (!ISSUER_NAME.test(name) || name === BY_TOKEN)
    reject(
      [],
      `the name of an issuer has letters, digits, ".", "_" and "-", at most 64, and is not "${BY_TOKEN}"; it is part of names of callers`,
    )
  if (entry.clientSecret !== undefined && entry.clientId === undefined)
    reject(['clientSecret'], 'goes with "clientId"; for opaque tokens, write both under "introspection"')
  const { authorization, token } = entry.endpoints ?? {}
  if ((authorization === undefined) !== (token === undefined))
    reject(['endpoints'], 'needs "authorization" and "token" together')
  const [first, ...rest] = entry.grants.map((grant, at) => readGrant(grant, [...path, 'grants', at], context, report))
  return { ...entry, name, grants: [first as Grant, ...rest] }
}

const readGrant = (grant: Grant, path: ConfigPath, context: AuthContext, report: ConfigReport): Grant => {
  const { workspaces, policy } = grant
  for (const [at, name] of workspaces.entries())
    if (name !== EVERY_WORKSPACE && !context.workspaces.includes(name))
      report.problems.push({
        path: [...path, 'workspaces', at],
        message: `no workspace ${JSON.stringify(name)}; ${suggest(name, context.workspaces)}`,
      })
  const policies = [...context.policies]
  if (policy !== undefined && !policies.includes(policy))
    report.problems.push({
      path: [...path, 'policy'],
      message: `no policy ${JSON.stringify(policy)}; ${suggest(policy, policies, 'add it to "policies"')}`,
    })
  return grant
}

const readScopes = (
  given: Readonly<Record<string, ScopeRule>>,
  report: ConfigReport,
): ReadonlyMap<string, ScopeRule> => {
  for (const [name, { tools }] of Object.entries(given)) {
    const path = ['auth', 'scopes', name]
    if (!SCOPE.test(name)) report.problems.push({ path, message: 'a scope has no spaces, quotes or backslashes' })
    if (name === 'offline_access')
      report.problems.push({ path, message: 'is for clients and authorization servers: no tool can need it' })
    for (const [at, pattern] of (tools ?? []).entries())
      if (!/[/*]/.test(pattern))
        report.problems.push({ path: [...path, 'tools', at], message: 'expected "<server>/<tool>", like "*/create_*"' })
  }
  return new Map(Object.entries(given))
}

const readAuthServer = (
  { clients, ...entry }: NonNullable<AuthEntry['server']>,
  issuers: ReadonlyMap<string, Issuer>,
  report: ConfigReport,
): AuthServerConfig => {
  const path = ['auth', 'server']
  for (const [at, name] of entry.signIn.entries()) {
    if (name === BY_TOKEN || issuers.get(name)?.clientId !== undefined) continue
    const message = issuers.has(name)
      ? `${formatPath(['auth', 'issuers', name])} has no "clientId": register the gateway there, and write it`
      : `no issuer ${JSON.stringify(name)}; ${suggest(name, [BY_TOKEN, ...issuers.keys()])}`
    report.problems.push({ path: [...path, 'signIn', at], message })
  }
  if (entry.registration === 'listed' && Object.keys(clients).length === 0)
    report.problems.push({
      path: [...path, 'registration'],
      message: '"listed" needs "clients": without any, no client can connect',
    })
  return { ...entry, clients: new Map(Object.entries(clients)) }
}
