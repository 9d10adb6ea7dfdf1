import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AdminError } from './endpoints.ts'

const CSRF_HEADER = 'x-dragoman-csrf'

const FOREIGN = new AdminError(
  403,
  'Forbidden: the request comes from a page of another origin; open the console at the address of the gateway',
)
const NO_ORIGIN = new AdminError(
  403,
  'Forbidden: a request with the cookie of the console needs an Origin or Sec-Fetch-Site header; programs send a token instead',
)
const WRONG_CSRF = new AdminError(
  403,
  `Forbidden: the header ${CSRF_HEADER} is missing or wrong; reload the page (GET /admin/session gives its value)`,
)

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD'

/** Where a page that sent a request comes from; `unknown`: no browser says so. Another port is another origin. */
const originOf = ({ headers }: IncomingMessage, publicUrl: string | undefined): 'own' | 'foreign' | 'unknown' => {
  const { origin, host = '' } = headers
  const site = headers['sec-fetch-site']
  if (origin === undefined && site === undefined) return 'unknown'
  if (site !== undefined && site !== 'same-origin') return 'foreign'
  if (origin === undefined || origin.toLowerCase() === publicUrl?.toLowerCase()) return 'own'
  const from = URL.canParse(origin) ? new URL(origin) : undefined
  const isWeb = from?.protocol === 'http:' || from?.protocol === 'https:'
  return isWeb && from.host === host.toLowerCase() ? 'own' : 'foreign'
}

/** Why a request with the cookie of a session is refused: another site may have caused it. Undefined: it may pass. */
export const findForgery = (
  request: IncomingMessage,
  csrf: string,
  publicUrl: string | undefined,
): AdminError | undefined => {
  if (isRead(request)) return undefined
  const from = originOf(request, publicUrl)
  if (from !== 'own') return from === 'foreign' ? FOREIGN : NO_ORIGIN
  const given = request.headers[CSRF_HEADER]
  return typeof given === 'string' && isEqual(given, csrf) ? undefined : WRONG_CSRF
}

/** Why a request that opens a session is refused: another site must not sign a user in. */
export const findForeignSignIn = (request: IncomingMessage, publicUrl: string | undefined): AdminError | undefined =>
  originOf(request, publicUrl) === 'foreign' ? FOREIGN : undefined

/** Takes as long for every text of the same length. */
const isEqual = (some: string, other: string): boolean => {
  const [a, b] = [Buffer.from(some), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
