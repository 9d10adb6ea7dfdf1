import { type IncomingHttpHeaders, request } from 'node:http'

/** What a browser shows at the end of its way. */
export interface ShownPage {
  readonly url: string
  readonly status: number
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

const MOST_REDIRECTS = 20
const NAVIGATION = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

/** A browser: keeps cookies of each host and follows redirects. `user`: who it is at every authorization server. */
export const createBrowser = (user?: string) => {
  const jar = new Map<string, Map<string, string>>()

  const cookiesOf = (host: string): Map<string, string> => {
    const cookies = jar.get(host) ?? new Map<string, string>(user === undefined ? [] : [['user', user]])
    jar.set(host, cookies)
    return cookies
  }

  /** One request, without following its redirect. A form is posted from a page of the same origin; so is a link of one opened. */
  const send = async (url: string, form?: Readonly<Record<string, string>>, isOwnLink = false): Promise<ShownPage> => {
    const { origin } = new URL(url)
    const cookies = cookiesOf(new URL(url).hostname) // whatever the port
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = {
      ...NAVIGATION,
      'sec-fetch-site': form || isOwnLink ? 'same-origin' : 'cross-site',
      ...(form && { origin, 'content-type': 'application/x-www-form-urlencoded' }),
      ...(cookie && { cookie }),
    }
    // `fetch` writes its own Sec-Fetch headers.
    const page = await new Promise<ShownPage>((resolve, reject) => {
      const sending = request(url, { method: form ? 'POST' : 'GET', headers }, async response => {
        let text = ''
        for await (const chunk of response) text += String(chunk)
        resolve({ url, status: response.statusCode ?? 0, text, headers: response.headers })
      })
      sending.on('error', reject)
      sending.end(form && new URLSearchParams(form).toString())
    })
    for (const line of page.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/max-age=0/i.test(line)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return page
  }

  const follow = async (first: ShownPage): Promise<ShownPage> => {
    let page = first
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const { location } = page.headers
      if (location === undefined) return page
      page = await send(new URL(location, page.url).href)
    }
    throw new Error(`too many redirects at ${page.url}`)
  }

  return {
    send,
    open: async (url: string): Promise<ShownPage> => follow(await send(url)),
    submit: async (url: string, form: Readonly<Record<string, string>>): Promise<ShownPage> =>
      follow(await send(url, form)),
  }
}
