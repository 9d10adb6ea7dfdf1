import type { IncomingMessage, ServerResponse } from 'node:http'
import { rpcError } from '../../protocol/errors.ts'
import { LOGIN_PATHS, type LoginPage, type Logins, type LoginVisitor } from '../../protocol/oauth.ts'
import type { BrowserResponse, SignIn } from '../../protocol/sign-in.ts'
import type { Log } from '../../telemetry/log.ts'
import { isFromThisMachine } from '../http/guard.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import { rejectUnread, sendJson } from '../http/response.ts'
import { page } from './oauth-routes.ts'

interface LoginRoutesOptions {
  readonly logins: Logins
  readonly signIn: SignIn
  /** Whether callers need a token; otherwise the visitor is the local user. */
  readonly isTokenRequired: () => boolean
  /** The gateway's client metadata document at a path; undefined if authorization servers could not fetch it. */
  readonly document: (path: string) => Readonly<Record<string, unknown>> | undefined
  readonly isSecure: () => boolean // browsers reach the gateway with https
  readonly log: Log
}

const COOKIE_SECONDS = 15 * 60 // a little longer than a link is valid
const LOCAL = 'local'

/** The pages on which users log in at servers. */
export const createLoginRoutes = (options: LoginRoutesOptions): HttpRoutes => {
  const { logins, signIn, isTokenRequired, isSecure, log } = options

  const visitorOf = async (cookies: string | undefined): Promise<LoginVisitor> => {
    const signedIn = await signIn.visitorOf(cookies)
    const principal = signedIn?.principal ?? (isTokenRequired() ? undefined : LOCAL)
    return { principal, cookie: cookieIn(cookies, isSecure()) }
  }

  /** A link of the local user, whom no sign-in proves, works for browsers on the same machine. */
  const openAsLocal = async (id: string, visitor: LoginVisitor): Promise<LoginPage | undefined> => {
    const shown = await logins.open(id, { ...visitor, principal: LOCAL })
    return shown.kind === 'refused' ? undefined : shown
  }

  const open = async (id: string, cookies: string | undefined, isLocal: boolean): Promise<BrowserResponse> => {
    const visitor = await visitorOf(cookies)
    const first = await logins.open(id, visitor)
    const shown = (first.kind === 'sign_in' && isLocal ? await openAsLocal(id, visitor) : undefined) ?? first
    if (shown.kind !== 'sign_in') return show(shown, isSecure())
    return signIn.ask({ cookies }, LOGIN_PATHS.login + encodeURIComponent(id), PURPOSE, { issuer: shown.issuer })
  }

  const finish = page('GET', log, async ({ cookies }, _last, { url = '' }) =>
    show(await logins.finish(new URL(url, 'http://gateway'), await visitorOf(cookies)), isSecure()),
  )
  const sendClientDocument: RequestHandler = (request, response, path) =>
    sendDocument(request, response, options.document(path))

  return {
    [`${LOGIN_PATHS.login}*`]: page('GET', log, ({ cookies }, id, raw) => open(id, cookies, isFromThisMachine(raw))),
    [LOGIN_PATHS.callback]: finish,
    [`${LOGIN_PATHS.callback}/*`]: finish,
    [LOGIN_PATHS.clientDocument]: sendClientDocument,
    [`${LOGIN_PATHS.clientDocuments}*`]: sendClientDocument,
  }
}

const sendDocument = (
  request: IncomingMessage,
  response: ServerResponse,
  document: Readonly<Record<string, unknown>> | undefined,
): void => {
  if (document)
    return sendJson(response, 200, [Buffer.from(JSON.stringify(document))], { 'cache-control': 'max-age=300' })
  rejectUnread(request, response, 404, rpcError('invalidRequest', 'Not Found: "listen.publicUrl" is no https URL'))
}

const PURPOSE = 'A server needs your login. Sign in at this gateway first, so that the login becomes yours.'

const show = (shown: LoginPage, isSecure: boolean): BrowserResponse => {
  switch (shown.kind) {
    case 'redirect':
      return { kind: 'redirect', to: shown.url, cookies: [cookieOf(shown.cookie, isSecure)] }
    case 'done':
      return { kind: 'message', page: { status: 200, title: 'Logged in', text: shown.text } }
    case 'refused': {
      const { status, text, quoted } = shown
      const said = quoted === undefined ? '' : ` It said: “${quoted}”`
      return { kind: 'message', page: { status, title: 'Not logged in', text: text + said } }
    }
    case 'sign_in':
      return {
        kind: 'message',
        page: { status: 401, title: 'Not logged in', text: 'Open the link again, and sign in.' },
      }
  }
}

/** No other host, not even a subdomain, can set a cookie with the prefix `__Host-`: it proves who has opened the link. */
const cookieName = (isSecure: boolean): string => `${isSecure ? '__Host-' : ''}dragoman-login`

/** `Lax`: it is sent when the authorization server leads the browser back. */
const cookieOf = (value: string, isSecure: boolean): string =>
  `${cookieName(isSecure)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_SECONDS}${isSecure ? '; Secure' : ''}`

const cookieIn = (header: string | undefined, isSecure: boolean): string | undefined =>
  new RegExp(`(?:^|;\\s*)${cookieName(isSecure)}=([^;]*)`).exec(header ?? '')?.[1]
