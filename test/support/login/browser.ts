/** What a browser shows at the end of its way. */
export interface ShownPage {
  readonly url: string
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

const MOST_REDIRECTS = 20

/** A browser: keeps cookies of each origin and follows redirects. `user`: who it is at every authorization server. */
export const createBrowser = (user?: string) => {
  const jar = new Map<string, Map<string, string>>()

  const cookiesOf = (origin: string): Map<string, string> => {
    const cookies = jar.get(origin) ?? new Map(user === undefined ? [] : [['user', user]])
    jar.set(origin, cookies)
    return cookies
  }

  /** One request, without following its redirect. */
  const send = async (url: string, init: RequestInit = {}): Promise<Response> => {
    const cookies = cookiesOf(new URL(url).origin)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' }
    const headers = { ...navigation, ...(cookie && { cookie }), ...(init.headers as Record<string, string>) }
    const response = await fetch(url, { ...init, redirect: 'manual', headers })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/max-age=0/i.test(line)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return response
  }

  const open = async (first: string): Promise<ShownPage> => {
    let url = first
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const response = await send(url)
      const location = response.headers.get('location')
      const { status, headers } = response
      if (location === null) return { url, status, text: await response.text(), headers }
      await response.body?.cancel()
      url = new URL(location, url).href
    }
    throw new Error(`too many redirects at ${url}`)
  }

  return { open, send, cookiesOf }
}
