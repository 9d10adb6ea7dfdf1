import type { AddressScope } from './connections.ts'

/** Where a request goes. */
export interface HttpTarget {
  readonly origin: string
  readonly path: string
  readonly scope?: AddressScope // undefined: `configured`
}

/** A target that a server named. */
export interface Redirect {
  readonly target: HttpTarget
  readonly keepsSecrets: boolean // the configured headers may be sent there
}

export const targetOf = (url: string): HttpTarget => {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search }
}

/** Resolves a Location header; undefined if it is no HTTP URL. */
export const resolveRedirect = (from: Redirect, location: string): Redirect | undefined => {
  const base = new URL(from.target.path, from.target.origin)
  const to = URL.canParse(location, base.href) ? new URL(location, base) : undefined
  if (to?.protocol !== 'http:' && to?.protocol !== 'https:') return undefined
  return { target: targetOf(to.href), keepsSecrets: from.keepsSecrets && isSameServer(base, to) }
}

/** Whether a redirect leaves the server. */
export const isCrossOrigin = (from: Redirect, to: Redirect): boolean =>
  !isSameServer(new URL(from.target.origin), new URL(to.target.origin))

/** The same origin, or the same host upgraded from http to https. */
const isSameServer = (from: URL, to: URL): boolean => {
  if (from.origin === to.origin) return true
  const isUpgrade = from.protocol === 'http:' && to.protocol === 'https:' && from.hostname === to.hostname
  return isUpgrade && (to.port === '' || to.port === from.port)
}

/** Removes the headers with these lower-case names. */
export const withoutSecretHeaders = (headers: readonly string[], secrets: ReadonlySet<string>): string[] => {
  const kept: string[] = []
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string
    if (!secrets.has(name.toLowerCase())) kept.push(name, headers[i + 1] as string)
  }
  return kept
}
