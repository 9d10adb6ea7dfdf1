interface Cookie {
  readonly name: string
  readonly value: string
  readonly host: string
  readonly path: string
  readonly isLax: boolean
  readonly expires: number
}

/** The cookies of one browser: by host and path, whatever the port. */
export interface CookieJar {
  /** The `Cookie` header of a request; a cross-site POST gets only those that are sent everywhere. */
  header(url: URL, isLaxAllowed: boolean): string
  /** Keeps what a response has set. */
  take(url: URL, lines: string | readonly string[] | undefined): void
}

export const createCookieJar = (): CookieJar => {
  const kept = new Map<string, Cookie>()
  return {
    header: (url, isLaxAllowed) =>
      [...kept.values()]
        .filter(({ host, path }) => host === url.hostname && isBelow(url.pathname, path))
        .filter(({ isLax, expires }) => expires > Date.now() && (isLaxAllowed || !isLax))
        .map(({ name, value }) => `${name}=${value}`)
        .join('; '),
    take: (url, lines = []) => {
      for (const line of [lines].flat()) {
        const cookie = readCookie(line, url)
        kept.set(`${cookie.host} ${cookie.path} ${cookie.name}`, cookie)
      }
    },
  }
}

const isBelow = (pathname: string, path: string): boolean =>
  pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`)

const readCookie = (line: string, url: URL): Cookie => {
  const [pair = '', ...rest] = line.split(';').map(part => part.trim())
  const attributes = new Map(rest.map(part => [part.split('=', 1).join().toLowerCase(), part.replace(/^[^=]*=?/, '')]))
  const age = attributes.get('max-age')
  const until = attributes.get('expires')
  const expires = age !== undefined ? Date.now() + Number(age) * 1000 : until ? Date.parse(until) : Infinity
  return {
    name: pair.split('=', 1).join(),
    value: pair.replace(/^[^=]*=/, ''),
    host: url.hostname,
    path: attributes.get('path') || url.pathname.replace(/\/[^/]*$/, '') || '/',
    isLax: attributes.get('samesite')?.toLowerCase() !== 'none', // what is not said is Lax
    expires,
  }
}
