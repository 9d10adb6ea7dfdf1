import { createHash, randomBytes } from 'node:crypto'
import type { GrantAccess, GrantReader } from '../../protocol/authorization-server.ts'
import type { ConnectedClient } from '../../protocol/sign-in.ts'
import type { Log } from '../../telemetry/log.ts'
import { canAccess, hashSecret } from '../token.ts'
import type { AccessOf, Subject, SubjectAccess } from './access.ts'
import type { RecordAuthEvent } from './auth-events.ts'
import { EndedGrants, grantName } from './ended-grants.ts'
import {
  type AccessTokenRecord,
  type GrantChange,
  type GrantRecord,
  GrantRecords,
  type GrantStore,
} from './grant-records.ts'
import {
  createGrantSecret,
  createRefreshToken,
  deriveSuccessor,
  isIssuedRefreshToken,
  judgeRefresh,
  parseGrantSecret,
  type RefreshUse,
  rotateChain,
} from './grant-tokens.ts'
import type { IssuerSessions } from './issuer-sessions.ts'
import { OAuthRejection } from './oauth-rejection.ts'
import { type ConsentKey, PrincipalGrants } from './principal-grants.ts'

interface GrantsOptions {
  readonly store: GrantStore
  readonly accessOf: AccessOf
  readonly sessions: Pick<IssuerSessions, 'renew'>
  readonly record: RecordAuthEvent
  readonly log: Log
}

/** What a visitor has consented to. */
export interface NewGrant extends ConsentKey {
  readonly clientName?: string | undefined
  readonly subject: Subject
  readonly principal: string
  readonly scopes: readonly string[]
  readonly challenge: string
}

/** The tokens that a client gets. */
export interface IssuedTokens {
  readonly access: string
  readonly refresh: string | undefined // undefined: the client keeps the one that it has
  readonly expiresInMs: number
  readonly scopes: readonly string[]
}

/** What a client must prove to redeem a code. */
export interface CodeProof {
  readonly client: string
  readonly redirectUri: string | undefined
  readonly verifier: string
  readonly workspace: string | undefined // that it wants to use; undefined: any of the grant
}

/** What a client wants of its refresh token. */
export interface RefreshWish {
  readonly client: string
  readonly scopes: readonly string[] | undefined // undefined: those of the grant
  readonly baseScopes: readonly string[] // that any access needs: a token without them would be of no use
  readonly workspace: string | undefined
}

const CODE_MS = 5 * 60_000
const ACCESS_MS = 60 * 60_000
const DAY_MS = 24 * 60 * 60_000
const IDLE_MS = 30 * DAY_MS
const MOST_LISTED = 5000
const MOST_ACCESS_TOKENS = 10 // of one grant that are valid at the same time

/** Grants: what visitors have allowed clients. Any replica may serve any of them. */
export class Grants implements GrantReader {
  readonly #options: GrantsOptions
  readonly #records: GrantRecords
  readonly #ofPrincipal: PrincipalGrants
  readonly #ended: EndedGrants

  constructor(options: GrantsOptions) {
    this.#options = options
    this.#records = new GrantRecords(options.store)
    this.#ofPrincipal = new PrincipalGrants(options.store)
    this.#ended = new EndedGrants(options.store.shared, options.log)
  }

  /** Creates a grant and its code. Rejects with a StateError `exists` if the id was used before. */
  async create(id: string, { challenge, ...content }: NewGrant): Promise<string> {
    const code = createGrantSecret('drk_', id)
    const seed = randomBytes(32).toString('base64url')
    const grant = {
      ...content,
      created: Date.now(),
      seed,
      code: { hash: hashSecret(code), challenge, isUsed: false },
      access: [],
    }
    await this.#records.create(id, grant, Date.now() + CODE_MS)
    return code
  }

  /** Rejects with an OAuthRejection. */
  async redeem(text: string, proof: CodeProof): Promise<IssuedTokens> {
    const code = parseGrantSecret(text, 'drk_')
    const grant = code && (await this.#records.read(code.grant))
    if (!code || !grant || !fitsCode(grant, code.hash, proof)) throw invalidGrant('The code is invalid or has expired')
    checkTarget(grant, proof.workspace)
    const access = await this.#accessOf(code.grant, grant)
    const id = code.grant
    const issued = await this.#records.change<IssuedTokens | undefined>(id, current => {
      if (current.code.isUsed) return { result: undefined }
      const refresh = createRefreshToken(current.seed, id)
      const chain = { current: hashSecret(refresh) }
      const next = { ...current, code: { ...current.code, isUsed: true }, refresh: chain }
      return issueAccess(id, next, access, current.scopes, refresh)
    })
    if (!issued) {
      await this.end(id, 'its code was used twice')
      throw invalidGrant('The code was used before')
    }
    const { client, principal, workspace, scopes } = grant
    this.#options.record('grant_created', { grant: grantName(id), client, principal, workspace, scopes })
    const isLive = async (each: string): Promise<boolean> => (await this.#records.read(each)) !== undefined
    for (const each of await this.#ofPrincipal.add(principal, id, grant, isLive))
      await this.end(each, 'there are too many')
    return issued
  }

  /** Rejects with an OAuthRejection. */
  async refresh(text: string, { client, scopes, baseScopes, workspace }: RefreshWish): Promise<IssuedTokens> {
    const token = parseGrantSecret(text, 'drr_')
    const grant = token && (await this.#records.read(token.grant))
    if (!token || !grant?.refresh || grant.client !== client || !isIssuedRefreshToken(grant.seed, text))
      throw invalidGrant('The refresh token is invalid or has expired')
    const id = token.grant
    if (judgeRefresh(grant.refresh, token.hash, Date.now()) === 'reused') return this.#endReused(id, grant)
    checkTarget(grant, workspace)
    const wanted = scopes ? withBaseScopes(scopes, baseScopes, grant) : grant.scopes
    if (!wanted.every(scope => grant.scopes.includes(scope)))
      throw new OAuthRejection('invalid_scope', 'The scope exceeds what was granted: authorize again')
    if (grant.subject.kind === 'issuer') await this.#renew(id, grant.subject.session)
    const access = await this.#accessOf(id, grant)
    if (dayOf(lastIssued(grant)) !== dayOf(Date.now())) await this.#ofPrincipal.keep(grant.principal, id, grant)
    const result = await this.#records.change(id, current => refreshGrant(id, current, text, access, wanted))
    if (result === undefined) throw invalidGrant('The grant has ended')
    return result === 'reused' ? this.#endReused(id, grant) : result
  }

  /** Ends the grant of an access or refresh token of this client. */
  async revoke(text: string, client: string): Promise<void> {
    const secret = parseGrantSecret(text, 'dro_') ?? parseGrantSecret(text, 'drr_')
    const grant = secret && (await this.#records.read(secret.grant))
    if (!secret || grant?.client !== client) return
    const { access, refresh } = grant
    const hashes = [...access.map(({ hash }) => hash), refresh?.current, refresh?.previous, refresh?.retired?.hash]
    if (hashes.includes(secret.hash)) await this.end(secret.grant, 'the client revoked it')
  }

  async end(id: string, reason: string): Promise<void> {
    const grant = await this.#records.remove(id)
    if (!grant) return
    this.#options.record('grant_ended', { grant: grantName(id), reason })
    await this.#ended.announce(grantName(id))
    await this.#ofPrincipal.remove(grant.principal, id)
  }

  /** Whether the principal has allowed this before, with at least these scopes. */
  async isRemembered(principal: string, consent: ConsentKey, scopes: readonly string[]): Promise<boolean> {
    for (const id of (await this.#ofPrincipal.find(principal, consent)).slice(0, 5)) {
      const grant = await this.#records.read(id)
      if (grant?.refresh && scopes.every(scope => grant.scopes.includes(scope))) return true
    }
    return false
  }

  /** The clients that a principal has connected, the newest first. */
  async list(principal: string): Promise<readonly (ConnectedClient & { readonly id: string })[]> {
    const found = await this.#ofPrincipal.all(principal)
    const grants = await Promise.all(found.map(async id => ({ id, grant: await this.#records.read(id) })))
    return grants.flatMap(({ id, grant }) => (grant?.refresh ? [{ id, ...describeGrant(grant) }] : []))
  }

  /** The clients that all principals have connected, by the names of their grants, the newest first. */
  async listAll(): Promise<readonly (ConnectedClient & { readonly name: string; readonly principal: string })[]> {
    const grants = await this.#records.all(MOST_LISTED)
    return grants
      .map(({ id, grant }) => ({ name: grantName(id), principal: grant.principal, ...describeGrant(grant) }))
      .toSorted((a, b) => b.since - a.since)
  }

  /** Ends the grant of that name; false if there is none. */
  async endNamed(name: string, reason: string): Promise<boolean> {
    const found = (await this.#records.all(MOST_LISTED)).find(({ id }) => grantName(id) === name)
    if (found) await this.end(found.id, reason)
    return found !== undefined
  }

  async findGrant(secret: string): Promise<GrantAccess | undefined> {
    const token = parseGrantSecret(secret, 'dro_')
    const grant = token && (await this.#records.read(token.grant))
    const found = grant?.access.find(({ hash, expires }) => hash === token?.hash && Date.now() < expires)
    const access = grant && found && (await this.#options.accessOf(grant.subject))
    if (!token || !grant || !found || access?.principal !== grant.principal) return undefined
    const { client, principal, subject, workspace } = grant
    return {
      id: grantName(token.grant),
      client,
      principal,
      workspaces: workspace === undefined ? access.workspaces : canAccess(access, workspace) ? [workspace] : [],
      policy: access.policy,
      scopes: found.scopes,
      expires: found.expires,
      tokenId: subject.kind === 'token' ? subject.id : undefined,
    }
  }

  onGrantEnded(listener: (id: string) => void): () => void {
    return this.#ended.onEnded(listener)
  }

  close(): void {
    this.#ended.close()
  }

  /** What the visitor of a grant may use now; if nothing, the grant ends. */
  async #accessOf(id: string, { subject, principal }: GrantRecord): Promise<SubjectAccess> {
    const access = await this.#options.accessOf(subject)
    if (access?.principal === principal) return access
    await this.end(id, 'the visitor may no longer sign in')
    throw invalidGrant('The user may no longer sign in here')
  }

  async #renew(id: string, session: string): Promise<void> {
    const state = await this.#options.sessions.renew(session)
    if (state === 'valid') return
    if (state === 'unavailable')
      throw new OAuthRejection('temporarily_unavailable', 'The identity provider does not answer: try again', 503, {
        'retry-after': '5',
      })
    await this.end(id, 'the session at the issuer has ended')
    throw invalidGrant('The session at the identity provider has ended')
  }

  async #endReused(id: string, { client, principal }: GrantRecord): Promise<never> {
    this.#options.record('refresh_token_reused', { grant: grantName(id), client, principal })
    await this.end(id, 'a refresh token was used again')
    throw invalidGrant('The refresh token was used before: the grant has ended')
  }
}

const describeGrant = (grant: GrantRecord): ConnectedClient => {
  const { client, clientName, redirectUri, workspace, scopes, created } = grant
  return {
    client: clientName ?? client,
    redirectUri,
    workspace,
    scopes,
    since: created,
    refreshedAt: lastIssued(grant),
  }
}

const lastIssued = ({ created, access }: GrantRecord): number =>
  Math.max(created, ...access.map(({ issued }) => issued))

const dayOf = (time: number): number => Math.floor(time / DAY_MS)

const invalidGrant = (message: string): OAuthRejection => new OAuthRejection('invalid_grant', message)

const withBaseScopes = (wanted: readonly string[], base: readonly string[], { scopes }: GrantRecord): string[] => [
  ...new Set([...base.filter(scope => scopes.includes(scope)), ...wanted]),
]

const checkTarget = (grant: GrantRecord, workspace: string | undefined): void => {
  if (workspace === undefined || grant.workspace === undefined || workspace === grant.workspace) return
  throw new OAuthRejection('invalid_target', 'The grant is for another workspace: authorize again')
}

const fitsCode = ({ client, redirectUri, code }: GrantRecord, hash: string, proof: CodeProof): boolean =>
  code.hash === hash &&
  client === proof.client &&
  (proof.redirectUri === undefined || proof.redirectUri === redirectUri) &&
  createHash('sha256').update(proof.verifier).digest('base64url') === code.challenge

const refreshGrant = (
  id: string,
  grant: GrantRecord,
  token: string,
  access: SubjectAccess,
  scopes: readonly string[],
): GrantChange<IssuedTokens | 'reused'> => {
  const now = Date.now()
  const chain = grant.refresh
  const use: RefreshUse = chain ? judgeRefresh(chain, hashSecret(token), now) : 'reused'
  if (!chain || use === 'reused') return { result: 'reused' }
  if (use === 'access-only') return issueAccess(id, grant, access, scopes, undefined)
  const successor = deriveSuccessor(grant.seed, token)
  const refresh = use === 'rotate' ? rotateChain(chain, hashSecret(successor), now) : chain
  return issueAccess(id, { ...grant, refresh }, access, scopes, successor)
}

/** Adds an access token to a grant. It does not outlive the API token of the visitor. */
const issueAccess = (
  id: string,
  grant: GrantRecord,
  { expires: end = Number.POSITIVE_INFINITY }: SubjectAccess,
  scopes: readonly string[],
  refresh: string | undefined,
): GrantChange<IssuedTokens> => {
  const now = Date.now()
  const access = createGrantSecret('dro_', id)
  const expires = Math.min(now + ACCESS_MS, end)
  const added: AccessTokenRecord = { hash: hashSecret(access), issued: now, expires, scopes }
  const valid = grant.access.filter(each => each.expires > now).slice(1 - MOST_ACCESS_TOKENS)
  return {
    next: { ...grant, access: [...valid, added] },
    expires: Math.min(now + IDLE_MS, end),
    result: { access, refresh, expiresInMs: expires - now, scopes },
  }
}
