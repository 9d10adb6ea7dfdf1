import { createHash } from 'node:crypto'
import type { LoginGrant, ServerOAuth } from '../../config/snapshot.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { type Held, StateError, type StateStore } from '../../stores/state/state-store.ts'
import { FetchFailed, type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'
import { splitScopes } from './challenge.ts'
import { registrationRequest } from './client-metadata.ts'
import type { DiscoveredIssuer } from './discover.ts'
import { LOGIN_FAILURES, LoginProblem } from './messages.ts'
import type { IssuerMetadata } from './metadata.ts'
import { boundTexts } from './scopes.ts'
import { encodeRecord, parseObject, type StoredClient } from './token-records.ts'
import type { ClientMethod } from './token-request.ts'

/** What the client of a login depends on. */
export interface RegistrationNeed {
  readonly server: string
  readonly oauth: LoginGrant | undefined
  readonly redirectUri: string
  readonly documentUrl: string | undefined // of the gateway's own metadata document
  readonly scopes: readonly string[]
}

/** The server seems to offer OAuth of the revision 2025-03-26, and does not. */
export class OAuthUnsupported extends Error {}

interface Registration {
  readonly client: StoredClient
  readonly asked: readonly string[] // scopes that it wanted to request
  readonly scopes?: readonly string[] | undefined // that it may request; undefined: not known
  readonly expires: number
}

const KIND = 'oauth-client'
const MOST_SCOPES = 500 // of one registration: a server may ask for others each time
const NEVER = Number.POSITIVE_INFINITY

const hashOf = (...parts: string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('base64url')

/** Finds or makes the client for a login: the configured one, else by metadata document, else by registration. */
export class ClientRegistry {
  readonly #store: StateStore
  readonly #fetch: GuardedFetch
  readonly #registering = new Map<string, SingleFlight<StoredClient>>()

  constructor(store: StateStore, fetch: GuardedFetch) {
    this.#store = store
    this.#fetch = fetch
  }

  /** Rejects with LoginProblem or OAuthUnsupported. */
  async clientFor(discovery: DiscoveredIssuer, request: RegistrationNeed): Promise<StoredClient> {
    const { authServer } = discovery
    const { oauth, documentUrl, redirectUri } = request
    if (oauth?.clientId !== undefined) {
      await this.bind(request.server, oauth, authServer.issuer)
      return { kind: 'configured', id: oauth.clientId, method: configuredMethod(oauth, authServer.authMethods) }
    }
    const document = oauth?.clientMetadataUrl ?? documentUrl
    if (authServer.supportsClientDocuments && document !== undefined)
      return { kind: 'registered', id: document, method: 'none' }
    const endpoint = authServer.registrationEndpoint
    if (endpoint === undefined) throw new LoginProblem(LOGIN_FAILURES.noRegistration(authServer.issuer, redirectUri))
    const id = hashOf('registered', authServer.issuer, redirectUri)
    const flight = this.#registering.get(id) ?? new SingleFlight<StoredClient>()
    this.#registering.set(id, flight)
    return flight
      .run(() => this.#registered(id, endpoint, discovery, request))
      .finally(() => this.#registering.delete(id))
  }

  /** The authorization server no longer knows a client: the next login registers again. False if it never registered. */
  async forget(issuer: string, redirectUri: string, clientId: string): Promise<boolean> {
    const taken = await this.#store.take(KIND, hashOf('registered', issuer, redirectUri))
    const known = taken.kind === 'mine' ? readRegistration(taken.held.body) : undefined
    if (taken.kind !== 'mine' || known?.client.id !== clientId) return false
    await this.#store.remove(taken.held)
    return true
  }

  /** Credentials of the configuration go to one issuer only: the configured one, or the first one seen. Rejects with LoginProblem. */
  async bind(server: string, oauth: ServerOAuth, issuer: string): Promise<void> {
    if (oauth.issuer !== undefined) return
    const id = hashOf('configured', server, oauth.clientId ?? '')
    const known = (await this.#store.read(KIND, id)) ?? (await this.#bindFirst(id, issuer))
    const bound = known ? parseObject(known.body)?.issuer : undefined
    if (typeof bound === 'string' && bound !== issuer) throw new LoginProblem(LOGIN_FAILURES.otherIssuer(issuer, bound))
  }

  /** Returns the record of another replica that was faster. */
  async #bindFirst(id: string, issuer: string): Promise<Held | undefined> {
    const options = { expires: NEVER, durable: true }
    const isFirst = await this.#store
      .create(KIND, id, encodeRecord({ issuer }), options)
      .then(() => true, ignoreExisting)
    return isFirst ? undefined : this.#store.read(KIND, id)
  }

  async #registered(
    id: string,
    endpoint: string,
    discovery: DiscoveredIssuer,
    request: RegistrationNeed,
  ): Promise<StoredClient> {
    const held = await this.#store.read(KIND, id)
    const known = held && readRegistration(held.body)
    if (known && isUsable(known, request.scopes)) return known.client
    const wanted = new Set([...request.scopes, ...(discovery.scopes ?? []), ...(known?.asked ?? [])])
    const asked = boundTexts([...wanted]).slice(0, MOST_SCOPES)
    const made = await this.#register(endpoint, discovery, request.redirectUri, asked)
    const body = encodeRecord(made)
    const options = { expires: made.expires, durable: true }
    const taken = held ? await this.#store.take(KIND, id) : undefined
    if (taken?.kind === 'mine' && (await this.#store.write(taken.held, body, options))) return made.client
    const isStored = await this.#store.create(KIND, id, body, options).then(() => true, ignoreExisting)
    if (isStored) return made.client
    // Another replica was faster: one registration is enough.
    const other = await this.#store.read(KIND, id)
    return (other && readRegistration(other.body)?.client) ?? made.client
  }

  async #register(
    endpoint: string,
    { authServer, from }: DiscoveredIssuer,
    redirectUri: string,
    scopes: readonly string[],
  ): Promise<Registration> {
    const { issuer } = authServer
    const method = preferredMethod(authServer.authMethods)
    const response = await this.#fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(registrationRequest(redirectUri, method, scopes)),
      from,
    }).catch((error: unknown) => {
      if (!(error instanceof FetchFailed)) throw error
      const isDown = error.reason === 'unreachable'
      throw new LoginProblem(
        isDown ? LOGIN_FAILURES.issuerDownBefore(issuer) : LOGIN_FAILURES.addressRefused(error.message),
      )
    })
    const document = readJsonObject(response)
    const { status } = response
    if (status >= 500 || status === 429) throw new LoginProblem(LOGIN_FAILURES.issuerDownBefore(issuer))
    const made = status === 200 || status === 201 ? readReply(document ?? {}, method, scopes) : undefined
    if (made) return made
    const error = typeof document?.error === 'string' ? document.error : undefined
    if (authServer.isAssumed && error === undefined) throw new OAuthUnsupported()
    throw new LoginProblem(LOGIN_FAILURES.registrationRefused(issuer, redirectUri, error ?? `http_${status}`))
  }
}

const ignoreExisting = (error: unknown): false => {
  if (error instanceof StateError && error.reason === 'exists') return false
  throw error
}

/** A scope that was asked for and not granted would not be granted the next time either. */
const isUsable = ({ asked, scopes, expires }: Registration, wanted: readonly string[]): boolean =>
  expires > Date.now() &&
  (scopes === undefined || wanted.every(scope => scopes.includes(scope) || asked.includes(scope)))

const METHODS: readonly ClientMethod[] = ['none', 'client_secret_basic', 'client_secret_post']

/** Without a list, RFC 8414 says Basic. */
const preferredMethod = (supported: IssuerMetadata['authMethods']): ClientMethod =>
  METHODS.find(method => supported?.includes(method)) ?? 'client_secret_basic'

/** How a configured client proves itself. */
export const configuredMethod = (
  { clientSecret, privateKey }: Pick<LoginGrant, 'clientSecret' | 'privateKey'>,
  supported: IssuerMetadata['authMethods'],
): ClientMethod => {
  if (privateKey !== undefined) return 'private_key_jwt'
  if (clientSecret === undefined) return 'none'
  const isPostOnly = supported?.includes('client_secret_post') && !supported.includes('client_secret_basic')
  return isPostOnly ? 'client_secret_post' : 'client_secret_basic'
}

const CLIENT_ID = /^[\x20-\x7e]{1,2000}$/ // RFC 6749, appendix A.1; a longer one fits into no URL
const LONGEST_SECRET = 4000

/** Reads the answer to a registration; undefined if it has no client id that can be used. */
const readReply = (
  document: Readonly<Record<string, unknown>>,
  requested: ClientMethod,
  asked: readonly string[],
): Registration | undefined => {
  const { client_id: id, client_secret: secret, client_secret_expires_at: end, scope } = document
  if (typeof id !== 'string' || !CLIENT_ID.test(id)) return undefined
  const hasSecret = typeof secret === 'string' && secret !== ''
  if (hasSecret && secret.length > LONGEST_SECRET) return undefined
  const stated = METHODS.find(method => method === document.token_endpoint_auth_method)
  const implied = requested === 'none' ? 'client_secret_basic' : requested
  const method = hasSecret ? (stated ?? implied) : 'none'
  return {
    client: { kind: 'registered', id, method, ...(hasSecret && { secret }) },
    asked,
    scopes: typeof scope === 'string' ? boundTexts(splitScopes(scope)) : undefined,
    expires: hasSecret && typeof end === 'number' && end > 0 ? Math.floor(end * 1000) : NEVER,
  }
}

const readRegistration = (body: Buffer): Registration | undefined => {
  const { client, asked, scopes, expires } = parseObject(body) ?? {}
  if (typeof client !== 'object' || client === null || !('id' in client)) return undefined
  return {
    client: client as StoredClient,
    asked: Array.isArray(asked) ? (asked as string[]) : [],
    scopes: Array.isArray(scopes) ? (scopes as string[]) : undefined,
    expires: typeof expires === 'number' ? expires : NEVER, // JSON has no infinity
  }
}
