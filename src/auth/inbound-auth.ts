import type { ServerResponse } from 'node:http'
import { ConfigError } from '../config/problems.ts'
import type { RateLimits } from '../config/snapshot.ts'
import type { Admission, Admit, OpenerTokens, RequestInfo } from '../protocol/admission.ts'
import { quotaOwner } from '../protocol/admission.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import { openAuthenticator, type PolicyOf } from './authenticator.ts'
import { createRateLimiter, type LimitRate } from './rate-limiter.ts'
import { tooManyRequests, unknownWorkspace } from './rejections.ts'
import { type ApiTokens, createSecret, EVERY_WORKSPACE, hashSecret, type Token } from './token.ts'

/** What the replicas of a cluster share. */
interface AuthCluster {
  readonly shared: Shared // tokens and rates
  readonly replicas: () => number // that are alive, this one too
}

export interface InboundAuthOptions {
  readonly host: string
  readonly isLoopback: boolean // the host cannot be reached from another machine
  readonly data?: string | undefined // the data directory; without one and without a cluster there are no tokens
  readonly required?: boolean | undefined // undefined: as soon as there is a token
  readonly insecure?: boolean | undefined // every caller is admitted, and all are anonymous
  readonly rate?: RateLimits | undefined
  readonly cluster?: AuthCluster | undefined // undefined: there are no other replicas
  readonly policyOf?: PolicyOf | undefined // of tokens
  readonly hasWorkspace?: ((name: string, request: RequestInfo) => boolean) | undefined
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

/** Authentication and rate limits of incoming requests. */
export interface InboundAuth {
  readonly admit: Admit
  /** Whether a request could use a workspace; it is not counted as a request. */
  canAccess(request: RequestInfo, workspace: string): boolean
  /** Whether a request may see the state of the whole gateway; undefined if no token is needed. */
  admitOperator(request: RequestInfo): Admission | undefined
  readonly tokens: OpenerTokens
  /** The tokens that people can sign in with. */
  readonly apiTokens: ApiTokens
  /** A token for every workspace, valid while this process lives: for programs of the same user on the same machine. */
  readonly localSecret: string
  close(): Promise<void>
}

type CheckRequest = (request: RequestInfo, workspace: string, response?: ServerResponse) => Admission

const LOCAL = 'local'
const OPEN_TO_ALL = 'everybody who reaches this address may use every server (--insecure)'
const UNENCRYPTED = 'tokens are sent unencrypted to this address: use a proxy with TLS in front of it'

/** Decides how callers are authenticated. Throws a ConfigError instead of serving a network without tokens. */
export const createInboundAuth = async (options: InboundAuthOptions): Promise<InboundAuth> => {
  const { host, isLoopback, data, required, insecure = false, rate, cluster, log } = options
  const { policyOf = () => undefined, hasWorkspace = () => true } = options
  if (insecure && required) throw new ConfigError('--insecure contradicts auth.required in the configuration')
  const localSecret = createSecret()
  const localToken = createLocalToken(localSecret)
  const authenticator =
    insecure || required === false
      ? undefined
      : await openAuthenticator({
          data,
          shared: cluster?.shared,
          required: required ?? false,
          localToken,
          policyOf,
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
  if (!isLoopback) log.warn({ host }, insecure ? OPEN_TO_ALL : UNENCRYPTED)

  // Without tokens callers have a principal only if the gateway cannot be reached from another machine.
  const withoutToken: Admission = { kind: 'in', principal: insecure ? undefined : LOCAL }
  const check: CheckRequest = (request, workspace, response) => {
    if (!authenticator?.isRequired()) authenticator?.trackAnonymous(request, response)
    const admission = authenticator?.isRequired() ? authenticator.check(request, workspace, response) : withoutToken
    // Last: a rejected caller learns no names.
    return admission.kind === 'out' || hasWorkspace(workspace, request) ? admission : unknownWorkspace(workspace)
  }
  const sharing = cluster && { replicas: cluster.replicas, count: cluster.shared.count, log }
  const limiter = rate && createRateLimiter(rate, sharing)
  return {
    admit: limiter ? withRateLimit(check, limiter.take) : check,
    canAccess: (request, workspace) => !authenticator?.isRequired() || authenticator.canAccess(request, workspace),
    admitOperator: request => (authenticator?.isRequired() ? authenticator.checkOperator(request) : undefined),
    tokens: authenticator?.tokens ?? NO_TOKENS,
    apiTokens: authenticator?.apiTokens ?? NO_API_TOKENS,
    localSecret,
    close: async () => {
      limiter?.close()
      await authenticator?.close()
    },
  }
}

/** While callers are not authenticated, what they opened does not end with a token. */
const NO_TOKENS: OpenerTokens = { idOf: () => undefined, isValid: () => true, onRevoked: () => () => {} }

const NO_API_TOKENS: ApiTokens = { find: () => undefined, byId: () => undefined }

const createLocalToken = (secret: string): Token => ({
  id: LOCAL,
  name: LOCAL,
  hash: hashSecret(secret),
  principal: LOCAL,
  workspaces: [EVERY_WORKSPACE],
  created: new Date().toISOString(),
})

const withRateLimit =
  (check: CheckRequest, limitRate: LimitRate): Admit =>
  (request, workspace, response) => {
    const admission = check(request, workspace, response)
    if (admission.kind === 'out') return admission
    const decide = (waitMs: number | undefined): Admission =>
      waitMs === undefined ? admission : tooManyRequests(request, waitMs)
    const waitMs = limitRate(quotaOwner(admission.principal, request.socket.remoteAddress), workspace)
    return waitMs instanceof Promise ? waitMs.then(decide) : decide(waitMs)
  }
