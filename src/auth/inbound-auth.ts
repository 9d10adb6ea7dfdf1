import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { ConfigError } from '../config/problems.ts'
import type { RateLimits } from '../config/snapshot.ts'
import type { Admission, Admit, OpenerTokens, RequestInfo } from '../protocol/admission.ts'
import { clientAddressOf, quotaOwner } from '../protocol/admission.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import { bearerOf, openAuthenticator, type RecordFailure, type StoredTokens } from './authenticator.ts'
import { ConsoleSessions } from './console-sessions.ts'
import { FailedLogins } from './failed-logins.ts'
import { createOAuthAdmission, isOAuthToken } from './oauth-admission.ts'
import { createRateLimiter, type LimitRate } from './rate-limiter.ts'
import { tooManyFailures, tooManyRequests, unknownWorkspace } from './rejections.ts'
import { createProtectedResource, type ProtectedResource } from './resource.ts'
import { Sealer } from './server/sealer.ts'
import { createSecret, EVERY_WORKSPACE, hashSecret, isApiSecret, type Token } from './token.ts'
import { createTokenPolicies, type PolicyOf } from './token-policies.ts'
import type { StoredApiTokens } from './token-store.ts'
import type { TokenVerifier } from './verify/verifier.ts'

/** What the replicas of a cluster share. */
interface AuthCluster {
  readonly shared: Shared // rates, and tokens
  readonly hasTokens: boolean // false: tokens are in the data directory, which all replicas use
  readonly replicas: () => number // that are alive, this one too
}

export interface InboundAuthOptions {
  readonly host: string
  readonly isLoopback: boolean // the host cannot be reached from another machine
  readonly data?: string | undefined // the data directory; without one and without a cluster there are no API tokens
  readonly required?: boolean | undefined // undefined: if OAuth tokens are accepted, or as soon as there is an API token
  readonly oauth?: { readonly resource: ProtectedResource; readonly verifier: TokenVerifier } | undefined
  readonly insecure?: boolean | undefined // every caller is admitted, and all are anonymous
  readonly rate?: RateLimits | undefined
  readonly cluster?: AuthCluster | undefined // undefined: there are no other replicas
  readonly localSecret?: string | undefined // that other processes of this gateway have, too
  readonly documents: Pick<Shared, 'document' | 'writeDocument' | 'on'> // of the store: who has signed out
  readonly sealKeys?: readonly [Uint8Array, ...Uint8Array[]] | undefined // of cookies; undefined: they end with the process
  readonly policyOf?: PolicyOf | undefined // of tokens
  readonly hasWorkspace?: ((name: string, request: RequestInfo) => boolean) | undefined
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

/** Authentication and rate limits of incoming requests. */
export interface InboundAuth {
  readonly admit: Admit
  /** Those of the workspaces that a request could use; it is not counted as a request. */
  accessible(request: RequestInfo, workspaces: readonly string[]): readonly string[] | Promise<readonly string[]>
  /** Whether a request may see the state of the whole gateway; undefined if no token is needed. */
  admitOperator(request: RequestInfo): Admission | undefined | Promise<Admission>
  readonly tokens: OpenerTokens
  /** The tokens that people can sign in with. */
  readonly apiTokens: StoredApiTokens
  /** Undefined if tokens are not used: with --insecure, or `auth.required` set to false. */
  readonly storedTokens: StoredTokens | undefined
  readonly consoleSessions: ConsoleSessions
  /** Counts a sign-in that failed; returns the milliseconds to wait if its address has had too many. */
  recordSignInFailure(request: RequestInfo, reason: string): number | undefined
  /** A token for every workspace, valid while this process lives: for programs of the same user on the same machine. */
  readonly localSecret: string
  /** Of callers without a token, where none is needed; undefined: they are anonymous. */
  readonly principalWithoutToken: string | undefined
  close(): Promise<void>
}

type CheckRequest = (
  request: RequestInfo,
  workspace: string,
  response?: ServerResponse,
) => Admission | Promise<Admission>

const LOCAL = 'local'
const OPEN_TO_ALL = 'everybody who reaches this address may use every server (--insecure)'
const UNENCRYPTED = 'tokens are sent unencrypted to this address: use a proxy with TLS in front of it'

/** Decides how callers are authenticated. Throws a ConfigError instead of serving a network without tokens. */
export const createInboundAuth = async (options: InboundAuthOptions): Promise<InboundAuth> => {
  const { host, isLoopback, data, insecure = false, rate, cluster, log } = options
  const { required = options.oauth ? true : undefined } = options
  const { resource } = options.oauth ?? { resource: API_TOKENS_ONLY }
  const { policyOf = () => undefined, hasWorkspace = () => true } = options
  if (insecure && required) throw new ConfigError(CONTRADICTION)
  const { localSecret = createSecret() } = options
  const localToken = createLocalToken(localSecret)
  const failures = new FailedLogins(log)
  const recordFailure: RecordFailure = (rejection, request, workspace, token) => {
    const fields = { reason: rejection.error.message, workspace, token }
    const waitMs = failures.record(clientAddressOf(request), fields)
    return waitMs === undefined ? rejection : tooManyFailures(request, waitMs)
  }
  const policyFor = createTokenPolicies(policyOf, log)
  const consoleSessions: ConsoleSessions = new ConsoleSessions({
    sealer: new Sealer(options.sealKeys ?? [randomBytes(32)]),
    documents: options.documents,
    log,
    tokenOf: id => (id === LOCAL ? localToken : authenticator?.apiTokens.byId(id)),
    onRevoked: (id, end) => (authenticator?.tokens ?? NO_TOKENS).onRevoked(id, end),
  })
  const authenticator =
    insecure || required === false
      ? undefined
      : await openAuthenticator({
          data,
          shared: cluster?.hasTokens ? cluster.shared : undefined,
          required: required ?? false,
          localToken,
          findSubstitute: secret => consoleSessions.findMcpToken(secret),
          policyFor,
          challenge: resource.challenge,
          recordFailure,
          writeAudit: options.writeAudit,
          log,
        })
  if (!isLoopback && !insecure && !authenticator?.isRequired()) {
    await authenticator?.close()
    throw new ConfigError(
      `refusing to listen on ${host}, where everybody who reaches it could use every server; ` +
        'create a token first (dragoman token create NAME), or listen on 127.0.0.1, or let everybody in with --insecure',
    )
  }
  if (!isLoopback && (insecure || !resource.isEncrypted)) log.warn({ host }, insecure ? OPEN_TO_ALL : UNENCRYPTED)
  const onRevoked = authenticator?.tokens.onRevoked ?? NO_TOKENS.onRevoked
  const oauth = options.oauth && createOAuthAdmission({ ...options.oauth, policyFor, recordFailure, onRevoked })

  // Without tokens callers have a principal only if the gateway cannot be reached from another machine.
  const principalWithoutToken = insecure ? undefined : LOCAL
  const withoutToken: Admission = { kind: 'in', principal: principalWithoutToken }
  const admitAnonymous: CheckRequest = (request, _workspace, response) => {
    const token = authenticator?.trackAnonymous(request, response)
    return token === undefined ? withoutToken : { ...withoutToken, token }
  }
  /** The secret of a request if it is an OAuth token. */
  const oauthSecretOf = (request: RequestInfo): string | undefined => {
    const secret = oauth && bearerOf(request)
    return secret === undefined || isApiSecret(secret) ? undefined : secret
  }
  const authenticate: CheckRequest = (request, workspace, response) => {
    if (!authenticator?.isRequired()) return admitAnonymous(request, workspace, response)
    const again = oauth?.readmit(request, workspace, response)
    if (again) return again
    const secret = oauthSecretOf(request)
    if (oauth && secret !== undefined) return oauth.check(secret, request, workspace, response)
    return authenticator.check(request, workspace, response)
  }
  const check: CheckRequest = (request, workspace, response) => {
    const admission = authenticate(request, workspace, response)
    // Last: a rejected caller learns no names.
    const finish = (found: Admission): Admission =>
      found.kind === 'out' || hasWorkspace(workspace, request) ? found : unknownWorkspace(workspace)
    return admission instanceof Promise ? admission.then(finish) : finish(admission)
  }
  const sharing = cluster && { replicas: cluster.replicas, count: cluster.shared.count, log }
  const limiter = rate && createRateLimiter(rate, sharing)
  const ofApiTokens = authenticator?.tokens ?? NO_TOKENS
  const tokensOf = (id: string | undefined): OpenerTokens =>
    isOAuthToken(id) ? (oauth?.tokens ?? NONE_VALID) : ofApiTokens
  return {
    admit: limiter ? withRateLimit(check, limiter.take) : check,
    accessible: (request, workspaces) => {
      if (!authenticator?.isRequired()) return workspaces
      const secret = oauthSecretOf(request)
      if (!oauth || secret === undefined) return workspaces.filter(name => authenticator.canAccess(request, name))
      return oauth.accessible(secret, request, workspaces)
    },
    admitOperator: request => {
      if (!authenticator?.isRequired()) return undefined
      const secret = oauthSecretOf(request)
      return oauth && secret !== undefined ? oauth.checkOperator(secret, request) : authenticator.checkOperator(request)
    },
    tokens: {
      isValid: id => tokensOf(id).isValid(id),
      onRevoked: (id, end) => tokensOf(id).onRevoked(id, end),
    },
    apiTokens: authenticator?.apiTokens ?? NO_API_TOKENS,
    storedTokens: authenticator?.stored,
    consoleSessions,
    recordSignInFailure: (request, reason) =>
      failures.record(clientAddressOf(request), { reason, workspace: EVERY_WORKSPACE, token: undefined }),
    localSecret,
    principalWithoutToken,
    close: async () => {
      consoleSessions.close()
      limiter?.close()
      oauth?.close()
      failures.close()
      await authenticator?.close()
    },
  }
}

const CONTRADICTION = '--insecure contradicts auth.required, auth.issuers and auth.server in the configuration'

const API_TOKENS_ONLY = createProtectedResource({ auth: {}, listen: {}, port: () => undefined })

/** While callers are not authenticated, what they opened does not end with a token. */
const NO_TOKENS: OpenerTokens = { isValid: () => true, onRevoked: () => () => {} }
/** OAuth tokens are not accepted any more. */
const NONE_VALID: OpenerTokens = { ...NO_TOKENS, isValid: () => false }

const NO_API_TOKENS: StoredApiTokens = { find: () => undefined, byId: () => undefined, refresh: async () => {} }

const createLocalToken = (secret: string): Token => ({
  id: LOCAL,
  name: LOCAL,
  hash: hashSecret(secret),
  principal: LOCAL,
  workspaces: [EVERY_WORKSPACE],
  created: new Date().toISOString(),
  admin: true,
})

const withRateLimit =
  (check: CheckRequest, limitRate: LimitRate): Admit =>
  (request, workspace, response) => {
    const limit = (admission: Admission): Admission | Promise<Admission> => {
      if (admission.kind === 'out') return admission
      const decide = (waitMs: number | undefined): Admission =>
        waitMs === undefined ? admission : tooManyRequests(request, waitMs)
      const waitMs = limitRate(quotaOwner(admission.principal, clientAddressOf(request)), workspace)
      return waitMs instanceof Promise ? waitMs.then(decide) : decide(waitMs)
    }
    const admission = check(request, workspace, response)
    return admission instanceof Promise ? admission.then(limit) : limit(admission)
  }
