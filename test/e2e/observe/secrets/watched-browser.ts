import { createBrowser, type ShownPage } from '../../../support/login/browser.ts'

export const CALLBACK = 'http://127.0.0.1:1/callback' // of a client; nothing listens there

/** A browser that collects what it is given: cookies, handles of forms, and codes in the URLs that it is led to. */
export const createWatchedBrowser = (secrets: string[]) => {
  const browser = createBrowser('ada@site')
  const seen = (page: ShownPage): ShownPage => {
    for (const cookie of page.headers['set-cookie'] ?? []) secrets.push(/=([^;]*)/.exec(cookie)?.[1] ?? '')
    for (const [, handle = ''] of page.text.matchAll(/(?:name="handle" value="|handle=)([^"&]+)/g)) secrets.push(handle)
    const { location } = page.headers
    for (const url of [page.url, ...(location === undefined ? [] : [location])])
      for (const name of ['code', 'state', 'handle', 'nonce'])
        secrets.push(new URL(url, page.url).searchParams.get(name) ?? '')
    return page
  }
  const visit = async (url: string, form?: Readonly<Record<string, string>>, isOwnLink = false): Promise<ShownPage> => {
    let page = seen(await browser.send(url, form, isOwnLink))
    for (let hops = 0; hops < 20 && page.headers.location !== undefined; hops++) {
      const next = new URL(page.headers.location, page.url).href
      if (next.startsWith(CALLBACK)) break
      page = seen(await browser.send(next))
    }
    return page
  }

  /** Opens the link of a login at a server; signs in at the gateway if it is asked to. */
  const openLink = async (link: string, token: string): Promise<ShownPage> => {
    secrets.push(link.slice(link.lastIndexOf('/') + 1))
    const page = await visit(link)
    return page.text.includes('name="token"') ? signIn(page, token) : page
  }

  const signIn = async (page: ShownPage, token: string): Promise<ShownPage> => {
    const signedIn = await visit(new URL('/oauth/sign-in', page.url).href, { handle: handleIn(page), token })
    const next = /url=([^"]+)"/.exec(signedIn.text)?.[1]?.replaceAll('&amp;', '&')
    return next === undefined ? signedIn : visit(new URL(next, page.url).href)
  }

  return { visit, openLink, signIn }
}

export type WatchedBrowser = ReturnType<typeof createWatchedBrowser>

export const handleIn = ({ text }: ShownPage): string => /name="handle" value="([^"]+)"/.exec(text)?.[1] ?? 'no handle'
