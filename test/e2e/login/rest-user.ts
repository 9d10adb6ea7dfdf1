import type { ServerConfig } from '../../../src/config/snapshot.ts'
import type { createBrowser } from '../../support/login/browser.ts'
import type { Created } from '../auth/guarded.ts'

/** The entry of a server at that URL. */
export const remote = (url: string): ServerConfig => ({
  name: 'server',
  disabled: false,
  kind: 'remote',
  url,
  type: 'auto',
  headers: {},
  era: 'auto',
  timeoutMs: 10_000,
})

/** Calls a tool over REST, as that user. */
export const act = async (origin: string, { headers }: Pick<Created, 'headers'>, tool: string, args = {}) => {
  const response = await fetch(`${origin}/actions/default/${tool}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(args),
  })
  return { status: response.status, body: (await response.json()) as Record<string, never> & { error?: RestError } }
}
export type RestError = { message: string; data: { reason: string; upstream: string; url?: string } }

export const tokenOf = ({ headers }: Created): string => headers.authorization.replace('Bearer ', '')

/** Opens a link in a browser that signs in at the gateway, if it is asked to. */
export const openAs = async (browser: ReturnType<typeof createBrowser>, link: string, token: string) => {
  const page = await browser.open(link)
  const handle = /name="handle" value="([^"]+)"/.exec(page.text)?.[1]
  if (handle === undefined) return page
  const signedIn = await browser.submit(`${new URL(link).origin}/oauth/sign-in`, { handle, token })
  const next = /url=([^"]+)"/.exec(signedIn.text)?.[1]
  return next === undefined ? signedIn : browser.open(new URL(next, link).href)
}
