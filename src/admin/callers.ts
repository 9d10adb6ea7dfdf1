import type { IncomingMessage } from 'node:http'
import { isFromThisMachine } from '../fronts/http/guard.ts'
import type { Admission, RequestInfo } from '../protocol/admission.ts'
import type { AdminRole } from './api/session.ts'
import { AdminError } from './endpoints.ts'
import { findForgery } from './same-origin.ts'

/** Who sent a request to the admin API. */
export interface AdminCaller {
  readonly role: AdminRole
  readonly principal: string | undefined
  readonly token?: string | undefined // its id; undefined: admitted without one
  readonly session?: BrowserSession | undefined // undefined: the caller has sent a token, or nothing
  readonly rejection?: AdminError | undefined // why the role is `none`
  readonly forgery?: AdminError | undefined // why a request with a session may not change anything
  /** Calls `end` when the caller may not go on, unless the returned function was called before. */
  readonly onEnded?: ((end: () => void) => () => void) | undefined
}

/** A user who has signed in to the console with this browser. */
export interface BrowserSession {
  readonly csrf: string
  readonly principal: string
  readonly token: string // its id
  readonly isAdmin: boolean
  readonly onEnded: (end: () => void) => () => void
  /** A bearer token for MCP, with the access of this user. */
  createMcpToken(): string
  /** The header that keeps the user signed in for some hours more. */
  renew(): string
  end(): Promise<void>
}

export interface CallerOptions {
  /** Whether a secret is that of this process, which only programs of the same user on this machine can read. */
  readonly isOwnerSecret: (secret: string) => boolean
  /** Checks that a token may see the whole gateway; undefined if no token is needed. */
  readonly admitOperator: (request: RequestInfo) => Admission | undefined | Promise<Admission>
  readonly findSession: (request: IncomingMessage) => BrowserSession | undefined
  /** Calls `end` when a token becomes invalid; undefined: when one becomes necessary. */
  readonly onRevoked: (token: string | undefined, end: () => void) => () => void
  readonly publicUrl?: string | undefined // the origin that browsers use, if the gateway is told
}

const LOCAL = 'local' // the principal of programs of the same user on this machine, and the id of their token
const OWNER: AdminCaller = { role: 'owner', principal: LOCAL, token: LOCAL }
const ELSEWHERE: AdminCaller = {
  role: 'none',
  principal: undefined,
  rejection: new AdminError(403, 'Forbidden: only for callers on this machine, because no token is required'),
}

/** Makes the function that finds out who sent a request, and what they may do. */
export const createCallerFinder = (options: CallerOptions) => {
  const { isOwnerSecret, admitOperator, findSession, onRevoked, publicUrl } = options

  const ofSession = (request: IncomingMessage, session: BrowserSession): AdminCaller => ({
    role: session.isAdmin ? 'owner' : 'viewer',
    principal: session.principal,
    token: session.token,
    session,
    forgery: findForgery(request, session.csrf, publicUrl),
    onEnded: session.onEnded,
  })

  const ofToken = async (request: IncomingMessage): Promise<AdminCaller> => {
    const admission = await admitOperator(request)
    if (!admission) {
      if (!isFromThisMachine(request)) return ELSEWHERE
      return { role: 'viewer', principal: LOCAL, onEnded: end => onRevoked(undefined, end) }
    }
    if (admission.kind === 'in') {
      const { isAdmin, principal, token } = admission
      return { role: isAdmin ? 'owner' : 'viewer', principal, token, onEnded: end => onRevoked(token, end) }
    }
    const { status, error, headers } = admission
    const rejection = new AdminError(status, error.message, undefined, headers)
    return { role: 'none', principal: undefined, rejection }
  }

  return async (request: IncomingMessage): Promise<AdminCaller> => {
    const secret = bearerOf(request)
    if (secret !== undefined) return isOwnerSecret(secret) ? OWNER : ofToken(request)
    const session = findSession(request)
    return session ? ofSession(request, session) : ofToken(request)
  }
}

const bearerOf = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
