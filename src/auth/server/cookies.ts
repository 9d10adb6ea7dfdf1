/** A cookie of the gateway's own pages. Scripts cannot read it, and other sites can cause it to be sent by a link at most. */
export interface CookieJar {
  read(header: string | undefined, name: string): string | undefined
  /** The Set-Cookie header. */
  write(name: string, value: string, maxAgeMs: number): string
  remove(name: string): string
}

/**
 * Over https the name has the prefix `__Host-`: no other host, not even a subdomain, can set such a cookie. Cookies do not depend on
 * the port, so that on loopback the name has it: two gateways on one machine keep theirs apart.
 */
export const createCookieJar = (
  origin: () => string,
  { path = '/oauth', sameSite = 'Lax' }: { readonly path?: string; readonly sameSite?: 'Lax' | 'Strict' } = {},
): CookieJar => {
  const describe = (name: string): { readonly name: string; readonly attributes: string } => {
    const { protocol, port } = new URL(origin())
    const isSecure = protocol === 'https:'
    return {
      name: isSecure ? `__Host-dragoman-${name}` : `dragoman-${name}-${port || '80'}`,
      attributes: `Path=${isSecure ? '/' : path}; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`,
    }
  }
  return {
    read: (header, name) => findCookie(header, describe(name).name),
    write: (name, value, maxAgeMs) => {
      const cookie = describe(name)
      return `${cookie.name}=${value}; Max-Age=${Math.floor(maxAgeMs / 1000)}; ${cookie.attributes}`
    },
    remove: name => {
      const cookie = describe(name)
      return `${cookie.name}=; Max-Age=0; ${cookie.attributes}`
    },
  }
}

const findCookie = (header: string | undefined, name: string): string | undefined => {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}
