import type { IncomingMessage } from 'node:http'
import type { Admission, RequestInfo } from '../protocol/admission.ts'
import { clientAddressOf, setClientAddress } from '../protocol/admission.ts'
import type { ConsoleLink, SessionInfo } from './api/session.ts'
import type { BrowserSession } from './callers.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'
import { findForeignSignIn } from './same-origin.ts'

export interface SessionEndpointsOptions {
  readonly version: string
  readonly isTokenRequired: () => boolean
  readonly publicUrl?: string | undefined
  /** Checks a token that a user has pasted; undefined if no token is needed. */
  readonly admitOperator: (request: RequestInfo) => Admission | undefined | Promise<Admission>
  readonly isOwnerSecret: (secret: string) => boolean
  /** Whether a code of a one-time link is valid; it is not afterwards. */
  readonly takeCode: (code: string) => Promise<boolean>
  readonly createLink: () => ConsoleLink
  /** Counts a code that was not valid; returns the milliseconds to wait if there were too many. */
  readonly recordFailure: (request: RequestInfo, reason: string) => number | undefined
  /** Opens a session with the access of a token, by its id; undefined if it is not an API token. */
  readonly openSession: (request: IncomingMessage, token: string) => BrowserSession | undefined
  readonly clearCookie: (request: IncomingMessage) => string
  readonly onSignedIn: (session: BrowserSession, request: IncomingMessage) => void
}

const LOCAL = 'local' // the id of the token of this process
const TEXT = { type: 'string', minLength: 1 }
const CREDENTIALS = {
  type: 'object',
  properties: {
    token: { ...TEXT, description: 'an API token for every workspace' },
    code: { ...TEXT, description: 'of the link that "dragoman console" prints' },
  },
  additionalProperties: false,
}
const NOTHING_GIVEN = new AdminError(400, 'The body is not valid: give either "token" or "code"')
const WRONG_CODE = new AdminError(
  401,
  'This link is no longer valid: it works once, and for ten minutes. "dragoman console" prints another one',
)
const NOT_NEEDED = new AdminError(
  409,
  'This gateway asks for no token. To change it, open the link that "dragoman console" prints',
)
const NO_API_TOKEN = new AdminError(
  400,
  'Only API tokens open a session: create one with "dragoman token create NAME". Programs send other tokens with each request',
)

/** The endpoints with which a browser signs in and out, and learns who its user is. */
export const createSessionEndpoints = (options: SessionEndpointsOptions): readonly AdminEndpoint[] => {
  const { version, isTokenRequired, isOwnerSecret } = options

  const describe = ({ role, principal, session }: AdminCall['caller']): SessionInfo => ({
    role,
    principal,
    version,
    needsToken: isTokenRequired(),
    mcpToken: isTokenRequired() ? session?.createMcpToken() : undefined,
    csrf: session?.csrf,
  })

  const show = ({ caller, response }: AdminCall): SessionInfo => {
    if (caller.session) response.setHeader('set-cookie', caller.session.renew())
    return describe(caller)
  }

  /** The id of the token that a user has proven to hold. */
  const tokenFor = async (request: IncomingMessage, secret: string): Promise<string> => {
    if (isOwnerSecret(secret)) return LOCAL
    const asToken: RequestInfo = { headers: { authorization: `Bearer ${secret}` }, socket: request.socket }
    setClientAddress(asToken, clientAddressOf(request))
    const admission = await options.admitOperator(asToken)
    if (!admission) throw NOT_NEEDED
    if (admission.kind === 'in') return admission.token ?? ''
    throw new AdminError(admission.status, admission.error.message, undefined, retryHeaders(admission.headers))
  }

  const tokenForCode = async (request: IncomingMessage, code: string): Promise<string> => {
    if (await options.takeCode(code)) return LOCAL
    const waitMs = options.recordFailure(request, 'a one-time link is not valid')
    if (waitMs === undefined) throw WRONG_CODE
    const seconds = Math.ceil(waitMs / 1000)
    throw new AdminError(429, `Too many attempts: try again in ${seconds} s`, undefined, {
      'retry-after': String(seconds),
    })
  }

  const signIn = async (call: AdminCall): Promise<SessionInfo> => {
    const { request, response } = call
    const foreign = findForeignSignIn(request, options.publicUrl)
    if (foreign) throw foreign
    const body = await call.json()
    const [secret, code] = ['token', 'code'].map(name => body.get(name)?.asString())
    if ((secret === undefined) === (code === undefined)) throw NOTHING_GIVEN
    const token = code === undefined ? await tokenFor(request, secret ?? '') : await tokenForCode(request, code)
    const session = options.openSession(request, token)
    if (!session) throw NO_API_TOKEN
    options.onSignedIn(session, request)
    response.setHeader('set-cookie', session.renew())
    const { isAdmin, principal } = session
    return describe({ role: isAdmin ? 'owner' : 'viewer', principal, token, session })
  }

  const signOut = async ({ caller, request, response }: AdminCall): Promise<void> => {
    await caller.session?.end()
    response.setHeader('set-cookie', options.clearCookie(request))
  }

  return [
    {
      method: 'GET',
      path: '/admin/session',
      access: 'anyone',
      summary: 'Who the caller is, and what they may do',
      run: show,
    },
    {
      method: 'POST',
      path: '/admin/session',
      access: 'anyone',
      summary: 'Signs a browser in, with a token or with the code of a one-time link; sets a cookie',
      body: CREDENTIALS,
      checksOrigin: true,
      run: signIn,
    },
    {
      method: 'DELETE',
      path: '/admin/session',
      access: 'anyone',
      summary: 'Signs a browser out',
      isEmpty: true,
      run: signOut,
    },
    {
      method: 'POST',
      path: '/admin/session/link',
      access: 'owner',
      summary: 'Makes a link that signs a browser in once, as the owner',
      run: options.createLink,
    },
  ]
}

const retryHeaders = ({ 'retry-after': after }: Readonly<Record<string, string>> = {}): Record<string, string> =>
  after === undefined ? {} : { 'retry-after': after }
