import type { ServerResponse } from 'node:http'
import type { Admission, OpenerTokens, RequestInfo } from '../protocol/admission.ts'
import type { Policy } from '../protocol/policy.ts'
import { BoundedCache } from '../std/bounded-cache.ts'
import { LastAdmissions } from './last-admissions.ts'
import { OpenResponses } from './open-responses.ts'
import {
  type AuthRejection,
  forbidden,
  invalidToken,
  missingBaseScopes,
  restrictedToken,
  uncheckedToken,
} from './rejections.ts'
import type { ProtectedResource } from './resource.ts'
import { EVERY_WORKSPACE } from './token.ts'
import { isRefused, type RefusedToken, type TokenCheck, type VerifiedToken } from './verify/verified-token.ts'
import type { TokenVerifier } from './verify/verifier.ts'

interface OAuthAdmissionOptions {
  readonly verifier: TokenVerifier
  readonly resource: ProtectedResource
  readonly policyFor: (principal: string, name: string) => Policy
  /** Counts a rejection; returns it, or another one if its address has had too many. */
  readonly recordFailure: (rejection: AuthRejection, request: RequestInfo, workspace: string) => AuthRejection
  /** Calls `end` when an API token becomes invalid: grants that were given with it end, too. */
  readonly onRevoked: OpenerTokens['onRevoked']
}

interface AdmittedToken {
  readonly token: VerifiedToken
  readonly admission: Admission
}

/** What was opened with an OAuth token of an issuer: it ends with the token's expiry, not by a revocation. */
const OF_ISSUER = 'oauth'
const OF_GRANT = 'grant:'
const MOST_FOLLOWED = 10_000
const MOST_WORKSPACES = 1000 // remembered of one token: callers may name some that do not exist
const FOLLOWED_MS = 2 * 60 * 60_000 // longer than an access token is valid
/** A token for the whole gateway is meant for this workspace, too. */
const DEFAULT_WORKSPACE = 'default'

/** True for the id of an OAuth token in `Admission.token`. */
export const isOAuthToken = (id: string | undefined): boolean => id === OF_ISSUER || id?.startsWith(OF_GRANT) === true

/** Admits requests with OAuth tokens. Nothing waits if the token was checked within the last minute. */
export const createOAuthAdmission = (options: OAuthAdmissionOptions) => {
  const { verifier, resource, policyFor, recordFailure, onRevoked } = options
  const accepted = new WeakMap<VerifiedToken, Set<string>>() // workspaces that the token opens; not all of them
  const lastAdmissions = new LastAdmissions<AdmittedToken>()
  const sessions = new Map<() => void, string>() // ids of grants, by the function that ends what was opened with it
  const responses = new OpenResponses<string>() // ids of grants

  const followed = new BoundedCache<() => void>(MOST_FOLLOWED, FOLLOWED_MS, { onEvict: release => release() }) // by grant

  /** Ends everything that was opened with a grant. */
  const endGrant = (grant: string): void => {
    lastAdmissions.clear()
    followed.delete(grant)
    for (const [end, id] of [...sessions]) if (id === OF_GRANT + grant && sessions.delete(end)) end()
    responses.destroyUnless(id => id !== grant)
  }
  verifier.onGrantEnded(endGrant)

  /** A grant that was given with an API token ends with it, at once. */
  const follow = (grant: string, tokenId: string | undefined): void => {
    if (tokenId === undefined || followed.get(grant)) return
    const release = onRevoked(tokenId, () => {
      verifier.forget(grant)
      endGrant(grant)
    })
    followed.set(grant, release)
  }

  const track = (grant: string, { socket }: RequestInfo, response: ServerResponse | undefined): void => {
    if (response && !socket.destroyed) responses.add(response, grant)
  }

  const refuse = ({ kind, reason }: RefusedToken, request: RequestInfo): AuthRejection => {
    if (kind === 'invalid') return invalidToken(request, reason, resource.challenge)
    return kind === 'forbidden' ? forbidden(request, reason) : uncheckedToken(request, reason)
  }

  const isMeantFor = (
    audiences: readonly string[],
    accepted: readonly string[] | undefined,
    workspace: string,
  ): boolean => (accepted ? accepted.some(each => audiences.includes(each)) : resource.isMeantFor(audiences, workspace))

  /** Why a valid token does not open a workspace; undefined if it does. */
  const rejectionFor = (token: VerifiedToken, request: RequestInfo, workspace: string): AuthRejection | undefined => {
    const { audiences, acceptedAudiences, workspaces, scopes } = token
    if (audiences && !isMeantFor(audiences, acceptedAudiences, workspace))
      return invalidToken(request, wrongAudience(audiences), resource.challenge)
    if (!workspaces.includes(EVERY_WORKSPACE) && !workspaces.includes(workspace))
      return forbidden(request, `the token does not open workspace ${JSON.stringify(workspace)}`)
    const missing = resource.baseScopes.filter(scope => !scopes.has(scope))
    if (missing.length === 0) return undefined
    return missingBaseScopes(request, missing, resource.scopeChallenge(request, scopes, missing))
  }

  const opens = (token: VerifiedToken, workspace: string): boolean => accepted.get(token)?.has(workspace) ?? false

  const admit = (token: VerifiedToken): Admission => {
    const { principal, policy, scopes, expires, grant } = token
    const id = grant ? OF_GRANT + grant.id : OF_ISSUER
    if (policy === undefined) return { kind: 'in', principal, scopes, expires, token: id }
    const policyName = policy
    return { kind: 'in', principal, policy: policyFor(principal, policy), policyName, scopes, expires, token: id }
  }

  const decide = (
    check: TokenCheck,
    request: RequestInfo,
    workspace: string,
    response: ServerResponse | undefined,
  ): Admission => {
    if (isRefused(check)) {
      const rejection = refuse(check, request)
      const isCounted = check.kind !== 'unavailable' && !check.isExpired
      return isCounted ? recordFailure(rejection, request, workspace) : rejection
    }
    if (!opens(check, workspace)) {
      const rejection = rejectionFor(check, request, workspace)
      if (rejection) return recordFailure(rejection, request, workspace)
      const known = accepted.get(check) ?? new Set()
      if (known.size < MOST_WORKSPACES) accepted.set(check, known.add(workspace))
      if (check.grant) follow(check.grant.id, check.grant.tokenId)
    }
    if (check.grant) track(check.grant.id, request, response)
    const admission = admit(check)
    lastAdmissions.set(request, workspace, { token: check, admission }, check.expires)
    return admission
  }

  return {
    /** Admits a request that is like the one before it on its connection; undefined if it is not. */
    readmit: (request: RequestInfo, workspace: string, response?: ServerResponse): Admission | undefined => {
      const last = lastAdmissions.find(request, workspace)
      if (!last) return undefined
      const { token, admission } = last
      if (token.grant) track(token.grant.id, request, response)
      return token.policy === undefined ? admission : admit(token) // the policy may have changed
    },
    check: (
      secret: string,
      request: RequestInfo,
      workspace: string,
      response?: ServerResponse,
    ): Admission | Promise<Admission> => {
      const check = verifier.check(secret)
      if (!(check instanceof Promise)) return decide(check, request, workspace, response)
      return check.then(found => decide(found, request, workspace, response))
    },
    /** The workspaces that a token opens; counts and logs nothing. */
    accessible: async (
      secret: string,
      request: RequestInfo,
      workspaces: readonly string[],
    ): Promise<readonly string[]> => {
      const check = await verifier.check(secret)
      if (isRefused(check)) return []
      return workspaces.filter(name => rejectionFor(check, request, name) === undefined)
    },
    /**
     * Whether a request may see the state of the whole gateway: only with an unrestricted token of an issuer. A client that
     * a person has connected was allowed to use workspaces, and nothing else.
     */
    checkOperator: async (secret: string, request: RequestInfo): Promise<Admission> => {
      const check = await verifier.check(secret)
      const admission = decide(check, request, DEFAULT_WORKSPACE, undefined)
      if (admission.kind === 'out' || isRefused(check)) return admission
      if (check.grant) return forbidden(request, CONNECTED_CLIENT)
      const isUnrestricted = check.workspaces.includes(EVERY_WORKSPACE) && check.policy === undefined
      return isUnrestricted ? admission : restrictedToken(request)
    },
    tokens: {
      isValid: () => true, // the request that uses the session has shown a valid token of the same principal
      onRevoked: (id: string | undefined, end: () => void): (() => void) => {
        if (id === undefined || id === OF_ISSUER) return () => {}
        sessions.set(end, id)
        return () => sessions.delete(end)
      },
    } satisfies OpenerTokens,
    close: (): void => {
      verifier.close()
      followed.clear()
    },
  }
}

const CONNECTED_CLIENT =
  'a client that you have connected may use workspaces; the state of the whole gateway needs an API token for every workspace'
const SHOWN_AUDIENCES = 3

const wrongAudience = (audiences: readonly string[]): string => {
  if (audiences.length === 0) return 'The token has no audience ("aud"), so it may be meant for another program'
  const shown = audiences.slice(0, SHOWN_AUDIENCES).join(', ').slice(0, 200)
  return `The token is meant for another audience (${shown})`
}
