import { request } from 'undici'
import { createCookieJar } from './cookie-jar.ts'
import { type Form, readForms, readText } from './page-forms.ts'

/** A page as a person sees it. */
export interface Page {
  readonly url: URL
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly html: string
  /** What is readable on it. */
  readonly text: string
  readonly forms: readonly Form[]
}

/** A browser without scripts: it follows redirects, keeps cookies, and sends the headers that the guard looks at. */
export interface Browser {
  /** Opens an address as if it was typed, or as a link of the page `from`. */
  open(url: string | URL, from?: Page): Promise<Page>
  /** Sends the first form of a page, or the one with this button, with what was typed into it. */
  submit(page: Page, typed?: Readonly<Record<string, string>>, button?: string): Promise<Page>
  /** What a server would be sent, for tests that steal it. */
  cookies(url: string | URL): string
}

interface BrowserOptions {
  /** An address that is not requested: the redirect to it is the last page, with status 0. */
  readonly stopsAt?: (url: URL) => boolean
}

const REDIRECTS = 20
const KEEP_METHOD: ReadonlySet<number> = new Set([307, 308])

/** What one navigation sends. */
interface Navigation {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly body?: string
  /** The origin of the page that caused it. */
  readonly initiator?: string
}

export const createBrowser = ({ stopsAt = () => false }: BrowserOptions = {}): Browser => {
  const jar = createCookieJar()

  const load = async ({ url, method, body, initiator }: Navigation, site: Site) => {
    const cookie = jar.header(url, site !== 'cross-site' || method === 'GET')
    const response = await request(url, {
      method,
      headers: {
        accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        'sec-fetch-site': site,
        ...(cookie && { cookie }),
        ...(method === 'POST' && {
          'content-type': 'application/x-www-form-urlencoded',
          origin: initiator ?? 'null',
        }),
      },
      ...(method === 'POST' && { body: body ?? '' }),
    })
    jar.take(url, response.headers['set-cookie'])
    return { status: response.statusCode, headers: response.headers, html: await response.body.text() }
  }

  const navigate = async (first: Navigation): Promise<Page> => {
    let next = first
    let site = siteOf(first.initiator, first.url)
    for (let hops = 0; hops <= REDIRECTS; hops++) {
      if (stopsAt(next.url) || !next.url.protocol.startsWith('http'))
        return { url: next.url, status: 0, headers: {}, html: '', text: '', forms: [] }
      const { status, headers, html } = await load(next, site)
      const location = status >= 300 && status < 400 ? headers.location : refreshOf(html)
      if (typeof location !== 'string')
        return { url: next.url, status, headers, html, text: readText(html), forms: readForms(html) }
      const url = new URL(location, next.url)
      site =
        status === 200 ? siteOf(next.url.origin, url) : farther(site, siteOf(first.initiator ?? next.url.origin, url))
      next = KEEP_METHOD.has(status) ? { ...next, url } : { url, method: 'GET' }
    }
    throw new Error(`More than ${REDIRECTS} redirects, the last to ${next.url}`)
  }

  return {
    open: (url, from) => navigate({ url: new URL(url), method: 'GET', ...(from && { initiator: from.url.origin }) }),
    submit: (page, typed = {}, button) => {
      const form = page.forms.find(({ buttons }) => button === undefined || buttons.some(({ text }) => text === button))
      if (!form) throw new Error(`No form${button ? ` with the button "${button}"` : ''} on this page:\n${page.text}`)
      const pressed = form.buttons.find(({ text }) => button === undefined || text === button)
      const fields = new URLSearchParams({ ...form.fields, ...typed, ...pressed?.field })
      const url = new URL(form.action || page.url, page.url)
      const initiator = page.url.origin
      if (form.method === 'POST') return navigate({ url, method: 'POST', body: String(fields), initiator })
      url.search = String(fields)
      return navigate({ url, method: 'GET', initiator })
    },
    cookies: url => jar.header(new URL(url), true),
  }
}

/** Where a page leads by itself. */
const refreshOf = (html: string): string | undefined => {
  const [tag = ''] = /<meta\b[^>]*http-equiv="?refresh[^>]*>/i.exec(html) ?? []
  const [, url] = /url=([^"'>\s]+)/i.exec(tag) ?? []
  return url?.replaceAll('&amp;', '&')
}

type Site = 'none' | 'same-origin' | 'same-site' | 'cross-site'

const DISTANCES: readonly Site[] = ['none', 'same-origin', 'same-site', 'cross-site']

/** A site is a host, whatever its port. */
const siteOf = (initiator: string | undefined, to: URL): Site => {
  if (initiator === undefined) return 'none'
  const from = new URL(initiator)
  if (from.origin === to.origin) return 'same-origin'
  return from.hostname === to.hostname ? 'same-site' : 'cross-site'
}

/** A chain of redirects is as far away as its farthest hop, but an address that was typed stays so. */
const farther = (before: Site, hop: Site): Site =>
  before === 'none' || DISTANCES.indexOf(before) > DISTANCES.indexOf(hop) ? before : hop
