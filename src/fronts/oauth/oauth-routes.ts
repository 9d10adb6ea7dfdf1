import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientAddressOf } from '../../protocol/admission.ts'
import type { AuthorizationServer, OAuthForm, OAuthResponse } from '../../protocol/authorization-server.ts'
import { rpcError } from '../../protocol/errors.ts'
import { LOGIN_PATHS } from '../../protocol/oauth.ts'
import type { BrowserRequest, BrowserResponse, SignIn } from '../../protocol/sign-in.ts'
import type { Log } from '../../telemetry/log.ts'
import { BodyAborted, BodyTooLarge, readBody } from '../../wire/http-body.ts'
import { allowCors } from '../http/cors.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import { readQuery } from '../http/request-url.ts'
import { discardBody, PRIVATE_HEADERS, rejectUnread, sendEmpty, sendJson } from '../http/response.ts'
import { sendToBrowser } from './send-to-browser.ts'

const MOST_BYTES = 64 * 1024
const FORM_TYPE = /^application\/x-www-form-urlencoded(?:\s*;|$)/i

/** Pages on which people sign in. */
export const createSignInRoutes = (signIn: SignIn, log: Log): HttpRoutes => ({
  '/oauth/sign-in': page('POST', log, request => signIn.submit(request)),
  '/oauth/sign-in/*': page('GET', log, (request, name) => signIn.begin(name, request)),
  '/oauth/signed-in/*': page('GET', log, (request, name) => signIn.finish(name, request)),
  '/oauth/sign-out': page('POST', log, request => signIn.signOut(request)),
})

/** The endpoints of the embedded authorization server. Those for clients use no cookies, so that pages may call them. */
export const createAuthServerRoutes = (server: AuthorizationServer, log: Log): HttpRoutes => ({
  '/oauth/authorize': page('GET', log, request => server.authorize(request)),
  '/oauth/consent': page('POST', log, request => server.consent(request)),
  '/oauth/clients': page('GET', log, request => server.connectedClients(request)),
  '/oauth/disconnect': page('POST', log, request => server.disconnect(request)),
  ...allowCors({
    '/.well-known/oauth-authorization-server': endpoint('GET', log, async () => server.metadata()),
    '/oauth/token': endpoint('POST', log, async request => server.token(await readForm(request))),
    '/oauth/revoke': endpoint('POST', log, async request => server.revoke(await readForm(request))),
    '/oauth/register': endpoint('POST', log, async request =>
      server.register(await readBody(request, MOST_BYTES), clientAddressOf(request)),
    ),
  }),
})

type Method = 'GET' | 'POST'

const UNREADABLE: BrowserResponse = {
  kind: 'message',
  page: { status: 400, title: 'The form could not be read', text: 'Go back, and send it again.' },
}

const UNAVAILABLE: BrowserResponse = {
  kind: 'message',
  page: {
    status: 503,
    title: 'This does not work at the moment',
    text: 'The gateway cannot reach its store, or has made a mistake; its log says which. Try again in a minute.',
  },
}

/** A handler for browsers. `rest` is the last segment of the path. */
export const page = (
  method: Method,
  log: Log,
  run: (request: BrowserRequest, rest: string, raw: IncomingMessage) => Promise<BrowserResponse>,
): RequestHandler =>
  only(method, async (raw, response, path) => {
    try {
      const params = method === 'GET' ? readQuery(raw) : (await readForm(raw)).params
      const request = { params, cookies: raw.headers.cookie, address: clientAddressOf(raw) }
      sendToBrowser(response, await run(request, decodeLast(path), raw))
    } catch (error) {
      if (error instanceof BodyAborted) return void response.destroy()
      discardBody(raw)
      if (error instanceof UnreadableForm || error instanceof BodyTooLarge) return sendToBrowser(response, UNREADABLE)
      log.error({ err: error, path: withoutSecret(path) }, 'page failed')
      sendToBrowser(response, UNAVAILABLE)
    }
  })

/** The path of a login link ends with its secret. */
const withoutSecret = (path: string): string => (path.startsWith(LOGIN_PATHS.login) ? LOGIN_PATHS.login : path)

/** A handler for clients. */
const endpoint = (
  method: Method,
  log: Log,
  run: (request: IncomingMessage) => Promise<OAuthResponse>,
): RequestHandler =>
  only(method, async (raw, response, path) => {
    try {
      sendOAuth(response, await run(raw))
    } catch (error) {
      if (error instanceof BodyAborted) return void response.destroy()
      discardBody(raw)
      const isUnread = error instanceof UnreadableForm || error instanceof BodyTooLarge
      if (!isUnread) log.error({ err: error, path }, 'OAuth request failed')
      const body = isUnread
        ? { error: 'invalid_request', error_description: error.message }
        : { error: 'temporarily_unavailable', error_description: 'The gateway cannot answer at the moment: try again' }
      sendOAuth(response, { status: isUnread ? 400 : 503, body, headers: isUnread ? {} : { 'retry-after': '5' } })
    }
  })

const only =
  (
    method: Method,
    serve: (request: IncomingMessage, response: ServerResponse, path: string) => Promise<void>,
  ): RequestHandler =>
  (request, response, path) => {
    if (request.method === method || (method === 'GET' && request.method === 'HEAD'))
      return void serve(request, response, path)
    const error = rpcError('invalidRequest', `Method not allowed: use ${method}`)
    rejectUnread(request, response, 405, error, { allow: method })
  }

const sendOAuth = (response: ServerResponse, { status, body, headers }: OAuthResponse): void => {
  const all = { ...PRIVATE_HEADERS, pragma: 'no-cache', ...headers }
  if (body) sendJson(response, status, [Buffer.from(JSON.stringify(body))], all)
  else sendEmpty(response, status, all)
}

class UnreadableForm extends Error {}

const readForm = async (request: IncomingMessage): Promise<OAuthForm> => {
  const { 'content-type': type = '', authorization } = request.headers
  if (!FORM_TYPE.test(type)) throw new UnreadableForm('Content-Type must be application/x-www-form-urlencoded')
  const body = await readBody(request, MOST_BYTES)
  return { params: new URLSearchParams(body.toString()), authorization }
}

const decodeLast = (path: string): string => {
  try {
    return decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
  } catch {
    return ''
  }
}
