import type { RefusalOutcome, ServerCredentials } from '../../protocol/oauth.ts'
import type { FailureDetails } from '../failures.ts'
import type { AfterRefusal, BearerTokens } from '../http/authorized-request.ts'

/** The logins at one server, as its upstream needs them. */
export interface UpstreamLogins {
  readonly credentials: ServerCredentials
  readonly isPersonal: boolean // each principal has a login of its own; false: the gateway has one for all
  readonly demand: LoginDemand
}

/** Whether a server has asked for a login before, in this process or an earlier one. */
export interface LoginDemand {
  readonly isKnown: boolean
  record(): void
}

const EACH_USER: FailureDetails = { reason: 'login_required', text: 'needs a login of each user' }

/** The tokens of one principal; undefined: an anonymous caller, or the gateway itself. */
export const tokensOf = (credentials: ServerCredentials, principal: string | undefined): BearerTokens => ({
  current: () => credentials.bearerOf(principal),
  refused: async refusal => afterOutcome(await credentials.rejected(principal, refusal)),
})

/**
 * For requests of callers that share an upstream: without a token. The first refusal is recorded, even if no login seems to
 * be offered: only a user's own request shows whether one can be started.
 */
export const withoutTokens = ({ credentials, demand }: UpstreamLogins): BearerTokens => ({
  current: () => undefined,
  refused: async refusal => {
    const { kind } = await credentials.rejected(undefined, refusal)
    demand.record()
    return kind === 'unsupported' ? 'pass' : EACH_USER
  },
})

/** For requests that no user waits for: a refusal starts no login. */
export const tokensWithoutLogin = (
  { credentials, isPersonal }: UpstreamLogins,
  principal: string | undefined,
): BearerTokens => ({
  current: () => credentials.bearerOf(isPersonal ? principal : undefined),
  refused: async () => 'pass',
})

const afterOutcome = (outcome: RefusalOutcome): AfterRefusal => {
  switch (outcome.kind) {
    case 'retry':
      return 'retry'
    case 'unsupported':
      return 'pass'
    case 'login':
      return { reason: 'login_required', text: 'needs a login', quoted: outcome.text, url: outcome.link.url }
    case 'failed':
      return { reason: outcome.reason, text: outcome.text }
  }
}
