/** Redirect URIs: which ones a client may have, and which one of a request is one of them. */

const LONGEST = 1024
const URI_CHARACTERS = /^[\w\-.~:/?[\]@!$&'()*+,;=%]+$/ // RFC 3986, without #
const WEB_HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])$/
const LOOPBACK = /^(http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]))(?::(?:\d{1,5}|\*))?(?=[/?]|$)/i

/** Schemes that a browser handles itself, or that start something other than an application which waits for an answer. */
const FORBIDDEN_SCHEMES: ReadonlySet<string> = new Set(
  'about blob chrome chrome-extension data edge file filesystem ftp intent jar javascript livescript mailto mocha moz-extension ms-settings resource search-ms sms ssh tel urn vbscript view-source ws wss'
    .split(' ')
    .map(scheme => `${scheme}:`),
)

/** Why a client may not have this redirect URI; undefined if it may. */
export const findRedirectProblem = (uri: string): string | undefined => {
  if (uri.length > LONGEST) return `is longer than ${LONGEST} characters`
  if (uri.includes('#')) return 'has a fragment (#)'
  const url = parseUri(uri)
  if (!url) return 'is no valid URI'
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return FORBIDDEN_SCHEMES.has(url.protocol) ? `must not have the scheme ${url.protocol}` : undefined
  if (url.username || url.password) return 'has a user name or password'
  if (!WEB_HOST.test(url.hostname)) return 'has an invalid host'
  if (url.protocol === 'http:' && !LOOPBACK.test(uri)) return 'must be https:, or http: on a loopback address'
  return undefined
}

const parseUri = (uri: string): URL | undefined =>
  URI_CHARACTERS.test(uri) && URL.canParse(uri) ? new URL(uri) : undefined

/** Without the port of a loopback URI: native applications get a free one each time (RFC 8252, section 7.3). */
export const withoutLoopbackPort = (uri: string): string => uri.replace(LOOPBACK, '$1')

/** True if a client with these redirect URIs may use this one: the same characters, except for the port of a loopback URI. */
export const isRegisteredRedirect = (registered: readonly string[], uri: string): boolean => {
  if (findRedirectProblem(uri) !== undefined) return false
  const wanted = withoutLoopbackPort(uri)
  return registered.some(each => each === uri || (LOOPBACK.test(each) && withoutLoopbackPort(each) === wanted))
}

/** The redirect URI with the parameters of a response. Its own query is kept as it is. */
export const addToRedirect = (uri: string, params: Readonly<Record<string, string | undefined>>): string => {
  const added = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== undefined) added.set(name, value)
  return `${uri}${uri.includes('?') ? '&' : '?'}${added}`
}
