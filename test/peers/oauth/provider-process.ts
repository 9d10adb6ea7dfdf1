import { type Browser, createBrowser, type Page } from '../../support/oauth/browser.ts'
import { install } from '../install.ts'
import { identityProvider } from '../recipes.ts'
import { startServerProcess } from '../server-process.ts'

/** One request to the token or registration endpoint, as the provider saw it. */
export interface ProviderRequest {
  readonly path: string
  readonly status: number
  readonly asked: Readonly<Record<string, string>>
  readonly answered: Readonly<Record<string, unknown>>
}

/** A running oidc-provider. */
export interface Provider {
  readonly issuer: string
  requests(): Promise<readonly ProviderRequest[]>
  /** As an administrator who ends every session of every user. */
  endGrants(): Promise<void>
  stop(): Promise<void>
}

/** Starts oidc-provider, whose access tokens live so many seconds; says why where it cannot be installed. */
export const startProvider = async (
  seconds: number,
  redirectUris: readonly string[] = [],
): Promise<Provider | string> => {
  const program = identityProvider()
  const installed = await install(program.recipe)
  if (installed.kind === 'skipped') return installed.reason
  const { port, stop } = await startServerProcess(port => ({
    ...program.start(installed.folder, [String(port), String(seconds)]),
    ...(redirectUris.length > 0 && { env: { REDIRECT_URIS: redirectUris.join(' ') } }),
  }))
  const issuer = `http://127.0.0.1:${port}`
  return {
    issuer,
    requests: async () => (await (await fetch(`${issuer}/test/log`)).json()) as ProviderRequest[],
    endGrants: async () => void (await fetch(`${issuer}/test/end-grants`, { method: 'POST' })),
    stop,
  }
}

/** Opens a link and fills in the provider's forms as this person, until a page without a form of the provider. */
export const signInAs = async (person: string, link: string, browser: Browser = createBrowser()): Promise<Page> => {
  let page = await browser.open(link)
  for (let forms = 0; forms < 5 && page.url.pathname.startsWith('/interaction/'); forms++)
    page = await browser.submit(
      page,
      'login' in (page.forms[0]?.fields ?? {}) ? { login: person, password: `secret of ${person}` } : {},
    )
  return page
}
