import type { IncomingMessage } from 'node:http'
import type { Listen } from '../../config/snapshot.ts'
import { clientAddressOf } from '../../protocol/admission.ts'
import { hostName, isLoopback } from '../../std/host.ts'

/** The headers the guard judges: what a request says about its target and its origin. */
interface RequestOrigin {
  readonly host: string | undefined
  readonly origin: string | undefined
  /** Sec-Fetch-Site: how the page that sent the request relates to the gateway; browsers leave Origin out of some requests. */
  readonly fetchSite?: string | undefined
  readonly isPageVisit?: boolean // a browser opens one of the gateway's pages, from a link or by hand
}

/** Says why a request is forbidden (DNS rebinding, a page of another site in a browser); undefined if it is not. */
export type RequestGuard = (request: RequestOrigin) => string | undefined

/** Other schemes belong to applications: `foo://localhost` is no page on this machine. */
const WEB_SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:'])
const isForeignSite = (site: string | undefined): boolean => site === 'cross-site' || site === 'same-site'

export const createRequestGuard = (listen: Listen): RequestGuard => {
  const { publicUrl, allowedHosts, allowedOrigins } = listen
  const own = publicUrl === undefined ? [] : [publicUrl]
  const hosts = new Set([...allowedHosts, ...own.map(origin => new URL(origin).host)].map(host => host.toLowerCase()))
  const origins = new Set([...allowedOrigins, ...own].map(origin => origin.toLowerCase()))
  // Beyond loopback the gateway cannot know all its names; a list, if configured, is complete.
  const isOpen = !isLoopback(listen.host) && allowedHosts.length === 0

  const isServed = (name: string): boolean => isLoopback(name) || hosts.has(name)

  const refusalOf = ({ host, origin, fetchSite, isPageVisit = false }: RequestOrigin): string | undefined => {
    const name = host === undefined ? undefined : hostName(host)
    if (host === undefined || name === undefined) return 'The Host header is missing or malformed'
    if (!isOpen && !isServed(name) && !hosts.has(host.toLowerCase()))
      return `Host ${name} is not served here; add it to listen.allowedHosts`
    if (origins.has('*')) return undefined
    if (origin === undefined)
      return isForeignSite(fetchSite) && !isPageVisit
        ? `Sec-Fetch-Site is ${fetchSite} and there is no Origin: a page of another origin must not use the gateway`
        : undefined
    if (origins.has(origin.toLowerCase())) return undefined
    const from = URL.canParse(origin) ? new URL(origin) : undefined
    const isSameHost =
      from !== undefined &&
      WEB_SCHEMES.has(from.protocol) &&
      (from.host === host.toLowerCase() || (isLoopback(from.hostname) && isLoopback(name)))
    return isSameHost ? undefined : `Origin ${origin} is not allowed; add it to listen.allowedOrigins`
  }

  // Without Origin and Sec-Fetch-Site, the result depends only on Host.
  let lastHost: string | undefined
  return request => {
    const isPlain = request.origin === undefined && request.fetchSite === undefined
    if (isPlain && request.host === lastHost && lastHost !== undefined) return undefined
    const refusal = refusalOf(request)
    if (isPlain && refusal === undefined) lastHost = request.host
    return refusal
  }
}

const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/**
 * True if a program on this machine has sent the request itself. A proxy on this machine connects from loopback too: it adds a
 * header, or keeps the public host name.
 */
export const isFromThisMachine = (request: IncomingMessage): boolean =>
  isLoopback((clientAddressOf(request) ?? '').replace(/^::ffff:/i, '')) &&
  isLoopback(hostName(request.headers.host ?? '') ?? '') &&
  !PROXY_HEADERS.some(name => request.headers[name] !== undefined)
