import { createHash, randomBytes } from 'node:crypto'
import { type Browser, createBrowser, type Page } from './browser.ts'

/** What the token endpoint of the gateway gave to a client. */
export interface GrantedTokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly scope?: string
}

/** A client that a person has let in. */
export interface GrantedClient {
  readonly clientId: string
  readonly tokens: GrantedTokens
  /** Where the browser was sent, with the code. */
  readonly redirected: URL
  readonly verifier: string
}

interface GrantOptions {
  readonly redirectUri?: string
  readonly resource?: string
  readonly scope?: string
  readonly clientName?: string
}

/** Signs a person in on the page that asks for it: with an API token, or at an issuer whose pages need no answer. */
export type SignIn = (browser: Browser, page: Page) => Promise<Page>

export const byToken =
  (token: string): SignIn =>
  (browser, page) =>
    browser.submit(page, { token }, 'Sign in')

export const byIssuer =
  (name: string): SignIn =>
  (browser, page) => {
    const [, href = ''] = new RegExp(`href="(/oauth/sign-in/${name}[^"]*)"`).exec(page.html) ?? []
    return browser.open(new URL(href.replaceAll('&amp;', '&'), page.url), page)
  }

/** Registers a client at the gateway, lets a person sign in and allow it, and redeems the code. */
export const grantAccess = async (
  origin: string,
  signIn: SignIn,
  { redirectUri = 'http://127.0.0.1:1/callback', clientName = 'Test client', ...asked }: GrantOptions = {},
): Promise<GrantedClient> => {
  const registered = await fetch(`${origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: clientName, redirect_uris: [redirectUri] }),
  })
  const { client_id: clientId } = (await registered.json()) as { client_id: string }
  const verifier = randomBytes(32).toString('base64url')
  const browser = createBrowser({ stopsAt: url => url.href.startsWith(redirectUri) })
  const request = new URL(`${origin}/oauth/authorize`)
  request.search = String(
    new URLSearchParams({
      ...{
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        state: randomBytes(8).toString('hex'),
      },
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      ...{ code_challenge_method: 'S256', ...asked },
    }),
  )
  let page = await browser.open(request)
  if (!page.forms.some(isConsent)) page = await signIn(browser, page)
  if (page.forms.some(isConsent)) page = await browser.submit(page, {}, 'Allow')
  const code = page.url.href.startsWith(redirectUri) && page.url.searchParams.get('code')
  if (!code) throw new Error(`The gateway gave no code: ${page.status} ${page.url.pathname} ${page.text}`)
  const tokens = await redeem(origin, {
    ...{
      grant_type: 'authorization_code',
      code,
      client_id: clientId,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    },
    ...(asked.resource && { resource: asked.resource }),
  })
  return { clientId, tokens, redirected: page.url, verifier }
}

const isConsent = ({ buttons }: Page['forms'][number]): boolean => buttons.some(({ text }) => text === 'Allow')

/** Sends a request to the token endpoint; throws what it answered instead of tokens. */
export const redeem = async (origin: string, fields: Record<string, string>): Promise<GrantedTokens> => {
  const response = await fetch(`${origin}/oauth/token`, { method: 'POST', body: new URLSearchParams(fields) })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`The token endpoint answered ${response.status}: ${text}`)
  return JSON.parse(text) as GrantedTokens
}
