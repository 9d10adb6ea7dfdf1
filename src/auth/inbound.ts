import type { ServerResponse } from 'node:http'
import { ConfigError } from '../config/problems.ts'
import type { RateLimits } from '../config/snapshot.ts'
import type { Admission, Admit, HoldGrant, RequestInfo } from '../protocol/admission.ts'
import { networkOf } from '../protocol/network.ts'
import type { Log } from '../telemetry/log.ts'
import { Authenticator, type PolicyOf } from './authenticate.ts'
import { createRateLimiter } from './rate-limit.ts'
import { noWorkspace, tooMany } from './refusals.ts'
import { createSecret, EVERY_WORKSPACE, hashSecret, type Token } from './token.ts'

export interface InboundAuthOptions {
  readonly host: string
  readonly isLoopback: boolean // nobody from another machine reaches the host
  readonly data?: string | undefined // the data directory; without one there are no tokens
  readonly required?: boolean | undefined // undefined: from the first token on
  readonly insecure?: boolean | undefined // everybody may come in, and nobody is known
  readonly rate?: RateLimits | undefined
  readonly policyOf?: PolicyOf | undefined // of tokens
  readonly hasWorkspace?: ((name: string, request: RequestInfo) => boolean) | undefined
  readonly log: Log
}

/** Who may come in. */
export interface InboundAuth {
  readonly admit: Admit
  /** Whether a request could come into a workspace; it is not counted as having done so. */
  canAccess(request: RequestInfo, workspace: string): boolean
  /** Whether a request may see the state of the whole gateway; undefined where no token is needed. */
  admitOperator(request: RequestInfo): Admission | undefined
  readonly onRevoked: HoldGrant
  /** Good for every workspace while this process lives: for programs of the same user on the same machine. */
  readonly localSecret: string
  close(): Promise<void>
}

type Identify = (request: RequestInfo, workspace: string, response?: ServerResponse) => Admission

const LOCAL = 'local'
const nothing = (): void => {}
const OPEN_TO_ALL = 'everybody who reaches this address may use every server (--insecure)'
const UNENCRYPTED = 'tokens travel unencrypted to this address: put a proxy with TLS before it'

/** Decides how callers are known, and refuses to stand open to a network. */
export const createInboundAuth = async (options: InboundAuthOptions): Promise<InboundAuth> => {
  const { host, isLoopback, data, required, insecure = false, rate, log } = options
  const { policyOf = () => undefined, hasWorkspace = () => true } = options
  if (insecure && required) throw new ConfigError('--insecure contradicts auth.required in the configuration')
  const localSecret = createSecret()
  const authenticator =
    insecure || required === false
      ? undefined
      : await Authenticator.open({ data, required: required ?? false, own: localToken(localSecret), policyOf, log })
  if (!isLoopback && !insecure && !authenticator?.isRequired) {
    await authenticator?.close()
    throw new ConfigError(exposed(host))
  }
  if (!isLoopback) log.warn({ host }, insecure ? OPEN_TO_ALL : UNENCRYPTED)

  // Without tokens a caller is somebody we know only where nobody else can come in.
  const unasked: Admission = { kind: 'in', principal: insecure ? undefined : LOCAL }
  const identify: Identify = (request, workspace, response) => {
    if (!authenticator?.isRequired) authenticator?.trackAnonymous(request, response)
    const admission = authenticator?.isRequired ? authenticator.check(request, workspace, response) : unasked
    // Only now: whoever may not come in learns no names.
    return admission.kind === 'out' || hasWorkspace(workspace, request) ? admission : noWorkspace(workspace)
  }
  return {
    admit: rate ? metered(identify, rate) : identify,
    canAccess: (request, workspace) => !authenticator?.isRequired || authenticator.canAccess(request, workspace),
    admitOperator: request => (authenticator?.isRequired ? authenticator.checkOperator(request) : undefined),
    onRevoked: (request, end) => authenticator?.onRevoked(request, end) ?? nothing,
    localSecret,
    close: async () => authenticator?.close(),
  }
}

const exposed = (host: string): string =>
  `refusing to listen on ${host}, where everybody who reaches it could use every server; ` +
  'create a token first (dragoman token create NAME), or listen on 127.0.0.1, or let everybody in with --insecure'

const localToken = (secret: string): Token => ({
  id: LOCAL,
  name: LOCAL,
  hash: hashSecret(secret),
  principal: LOCAL,
  workspaces: [EVERY_WORKSPACE],
  created: new Date().toISOString(),
})

/** Counts admitted requests by principal; those of anonymous callers by network. */
const metered = (identify: Identify, rate: RateLimits): Admit => {
  const meter = createRateLimiter(rate)
  return async (request, workspace, response) => {
    const admission = identify(request, workspace, response)
    if (admission.kind === 'out') return admission
    const key =
      admission.principal === undefined ? `@${networkOf(request.socket.remoteAddress)}` : `=${admission.principal}`
    const wait = await meter(key, workspace)
    return wait === undefined ? admission : tooMany(request, wait)
  }
}
