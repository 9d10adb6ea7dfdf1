import type { Logins, RefusalOutcome, ServerCredentials, TokenRefusal } from '../../src/protocol/oauth.ts'

/** Credentials of one server that a test sets; `refusals` has what was reported. */
export const createFakeCredentials = (outcome: (refusal: TokenRefusal) => RefusalOutcome) => {
  const tokens = new Map<string | undefined, string>()
  const listeners = new Set<(principal: string | undefined) => void>()
  const refusals: { readonly principal: string | undefined; readonly refusal: TokenRefusal }[] = []
  const credentials: ServerCredentials = {
    bearerOf: principal => tokens.get(principal),
    rejected: async (principal, refusal) => {
      refusals.push({ principal, refusal })
      return tokens.get(principal) === refusal.token ? outcome(refusal) : { kind: 'retry' }
    },
    onChanged: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  /** A login came, or with undefined: went. */
  const set = (principal: string | undefined, token: string | undefined): void => {
    if (token === undefined) tokens.delete(principal)
    else tokens.set(principal, token)
    for (const listener of [...listeners]) listener(principal)
  }
  return { credentials, refusals, set }
}

/** Logins whose links lead to `target`; `forgotten` has those that were ended. */
export const createFakeLogins = (origin: string, target: string) => {
  const forgotten: string[] = []
  const logins: Logins = {
    begin: async server => {
      const link = {
        id: `login-${server}`,
        url: `${origin}/oauth/login/login-${server}`,
        expires: Date.now() + 600_000,
      }
      return { kind: 'login', text: `needs a login. Open ${link.url} in a browser.`, link }
    },
    open: async (_, { principal }) =>
      principal === undefined ? { kind: 'sign_in' } : { kind: 'redirect', url: target, cookie: 'cookie' },
    finish: async (query, { cookie }) =>
      cookie === 'cookie'
        ? { kind: 'done', server: query.get('state') ?? '', text: 'You are logged in.' }
        : { kind: 'refused', status: 403, text: 'This login was started in another browser.', quoted: '<b>' },
    status: async server => ({ kind: forgotten.includes(server) ? 'missing' : 'unneeded' }),
    forget: async server => ({ wasPresent: forgotten.push(server) > 0, isRevoked: true }),
  }
  return { logins, forgotten }
}
