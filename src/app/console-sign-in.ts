import type { IncomingMessage } from 'node:http'
import type { ConsoleLink } from '../admin/api/session.ts'
import type { BrowserSession, CallerOptions } from '../admin/callers.ts'
import type { SessionEndpointsOptions } from '../admin/session-endpoints.ts'
import type { ConsoleSession } from '../auth/console-sessions.ts'
import type { InboundAuth } from '../auth/inbound-auth.ts'
import { type CookieJar, createCookieJar } from '../auth/server/cookies.ts'
import { hashSecret } from '../auth/token.ts'
import { clientAddressOf } from '../protocol/admission.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'

export interface ConsoleSignInOptions {
  readonly inbound: Pick<
    InboundAuth,
    'localSecret' | 'admitOperator' | 'tokens' | 'consoleSessions' | 'recordSignInFailure'
  >
  readonly version: string
  readonly origin: () => string // at which the gateway listens
  readonly publicUrl: string | undefined // the origin that browsers use, if the gateway is told
  readonly writeAudit: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

interface ConsoleSignIn {
  readonly callers: CallerOptions
  readonly endpoints: SessionEndpointsOptions
}

const COOKIE = 'console'

/** How users sign in to the console, and how their requests are known again. */
export const createConsoleSignIn = (options: ConsoleSignInOptions): ConsoleSignIn => {
  const { inbound, version, origin, publicUrl, writeAudit, log } = options
  const { consoleSessions, admitOperator, tokens } = inbound
  const ownHash = hashSecret(inbound.localSecret)
  const isOwnerSecret = (secret: string): boolean => hashSecret(secret) === ownHash
  const jarFor = (request: IncomingMessage): CookieJar =>
    createCookieJar(() => publicUrl ?? originSeen(request, origin()), { path: '/admin', sameSite: 'Strict' })

  const browserSession = (request: IncomingMessage, session: ConsoleSession): BrowserSession => ({
    csrf: session.csrf,
    principal: session.token.principal,
    token: session.token.id,
    isAdmin: session.token.admin ?? false,
    onEnded: end => consoleSessions.onEnded(session, end),
    createMcpToken: () => consoleSessions.createMcpToken(session),
    renew: () => {
      const { value, ms } = consoleSessions.seal(session)
      return jarFor(request).write(COOKIE, value, ms)
    },
    end: () => consoleSessions.end(session),
  })
  const findSession = (request: IncomingMessage): BrowserSession | undefined => {
    const session = consoleSessions.find(jarFor(request).read(request.headers.cookie, COOKIE))
    return session && browserSession(request, session)
  }
  const createLink = (): ConsoleLink => {
    const { code, expires } = consoleSessions.codes.create()
    return { url: `${origin()}/#/overview?code=${code}`, expires }
  }

  return {
    callers: { isOwnerSecret, admitOperator, findSession, onRevoked: tokens.onRevoked, publicUrl },
    endpoints: {
      version,
      isTokenRequired: () => !tokens.isValid(undefined),
      publicUrl,
      admitOperator,
      isOwnerSecret,
      takeCode: code => consoleSessions.codes.take(code),
      createLink,
      recordFailure: inbound.recordSignInFailure,
      openSession: (request, token) => {
        const session = consoleSessions.open(token)
        return session && browserSession(request, session)
      },
      clearCookie: request => jarFor(request).remove(COOKIE),
      onSignedIn: ({ principal, token }, request) => {
        log.info({ principal, token }, 'user signed in to the console')
        writeAudit?.('signed_in', { principal, token, address: clientAddressOf(request), to: 'console' })
      },
    },
  }
}

/** A proxy with TLS says so; that only decides the name and the attributes of the cookie. */
const originSeen = ({ headers, socket }: IncomingMessage, origin: string): string =>
  'encrypted' in socket || headers['x-forwarded-proto'] === 'https' ? origin.replace(/^http:/, 'https:') : origin
