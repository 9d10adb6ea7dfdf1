/** A page that a browser shows, or the address outside of the gateway that it was led to. */
export interface ShownPage {
  readonly url: string
  readonly status: number
  readonly text: string // HTML
  readonly headers: Headers
  readonly leftTo: string | undefined // where the gateway has sent the browser; undefined: it is still there
}

interface Form {
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
}

const MOST_STEPS = 10

/** Opens pages as a browser does, without scripts: follows redirects and refreshes, keeps cookies, fills in forms. */
export class TestBrowser {
  readonly cookies = new Map<string, string>()
  readonly added: Record<string, string> = {} // headers, by a proxy on the way
  readonly #stays: ReadonlySet<string>

  /** Redirects to other origins than these are not followed. */
  constructor(...origins: string[]) {
    this.#stays = new Set(origins)
  }

  open(url: string): Promise<ShownPage> {
    return this.#load(url, 'GET', undefined, 'none')
  }

  /** Sends the form of a page with this action, as a click on the button of that name and value does. */
  submit(page: ShownPage, action: string, fields: Readonly<Record<string, string>> = {}): Promise<ShownPage> {
    const form = formsIn(page.text).find(each => each.action === action)
    if (!form) throw new Error(`no form for ${action} in:\n${page.text}`)
    const body = new URLSearchParams({ ...form.fields, ...fields })
    return this.#load(new URL(action, page.url).href, 'POST', body, 'same-origin')
  }

  /** Opens the link with that text. */
  follow(page: ShownPage, text: string): Promise<ShownPage> {
    const link = [...page.text.matchAll(/<a [^>]*href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].find(
      ([, , each]) => each === text,
    )
    if (!link) throw new Error(`no link "${text}" in:\n${page.text}`)
    return this.#load(new URL(unescapeHtml(link[1] ?? ''), page.url).href, 'GET', undefined, 'same-origin')
  }

  async #load(url: string, method: string, body: URLSearchParams | undefined, site: string): Promise<ShownPage> {
    let next = { url, method, body }
    for (let step = 0; step < MOST_STEPS; step++) {
      const origin = new URL(next.url).origin
      const response = await fetch(next.url, {
        method: next.method,
        body: next.body ?? null,
        redirect: 'manual',
        headers: {
          cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
          'sec-fetch-site': site,
          ...(next.method === 'POST' && { origin }),
          ...this.added,
        },
      })
      this.#keepCookies(response)
      const text = await response.text()
      const location = response.headers.get('location')
      const refresh = /<meta http-equiv="refresh" content="0;url=([^"]*)">/.exec(text)?.[1]
      const shown = { url: next.url, status: response.status, text, headers: response.headers }
      const target = location ?? (refresh === undefined ? undefined : unescapeHtml(refresh))
      if (target === undefined) return { ...shown, leftTo: undefined }
      const to = new URL(target, next.url).href
      if (!this.#stays.has(new URL(to).origin)) return { ...shown, leftTo: target }
      next = { url: to, method: 'GET', body: undefined }
    }
    throw new Error(`the browser is redirected without an end, at last to ${next.url}`)
  }

  #keepCookies(response: Response): void {
    for (const header of response.headers.getSetCookie()) {
      const [pair = ''] = header.split(';')
      const at = pair.indexOf('=')
      if (/max-age=0(;|$)/i.test(header)) this.cookies.delete(pair.slice(0, at))
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
  }
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const unescapeHtml = (text: string): string =>
  text.replace(/&(#?\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole)

const formsIn = (text: string): Form[] =>
  [...text.matchAll(/<form [^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/g)].map(([, action = '', content = '']) => ({
    action,
    fields: Object.fromEntries(
      [...content.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(
        ([, name = '', value = '']) => [name, unescapeHtml(value)],
      ),
    ),
  }))
