import type { Issuer } from '../../config/snapshot.ts'
import type { BrowserRequest, BrowserResponse, SignIn } from '../../protocol/sign-in.ts'
import { isApiSecret } from '../token.ts'
import type { StoredApiTokens } from '../token-store.ts'
import type { AccessOf } from './access.ts'
import { AttemptLimit } from './attempt-limit.ts'
import type { RecordAuthEvent } from './auth-events.ts'
import type { CookieJar } from './cookies.ts'
import { type IssuerLogin, type PendingLogin, SignInFailed } from './issuer-login.ts'
import type { IssuerSessions } from './issuer-sessions.ts'
import type { Sealer } from './sealer.ts'
import type { Visitors } from './visitors.ts'

export interface SignInOptions {
  readonly byToken: boolean
  readonly issuers: ReadonlyMap<string, Issuer> // at which people can sign in
  readonly offered: readonly string[] // those of them that are offered to all
  readonly tokens: Pick<StoredApiTokens, 'find' | 'refresh'>
  readonly visitors: Visitors
  readonly sessions: Pick<IssuerSessions, 'create'>
  readonly login: IssuerLogin
  readonly accessOf: AccessOf
  readonly sealer: Sealer
  readonly jar: CookieJar
  readonly record: RecordAuthEvent
}

/** The way back from the sign-in page. */
interface ReturnHandle {
  readonly browser: string
  readonly returnTo: string // a path with its query
  readonly purpose?: string | undefined
  readonly issuer?: string | undefined // the only way to sign in
}

/** A sign-in at an issuer that is under way in this browser. */
interface IssuerCookie {
  readonly issuer: string
  readonly returnTo: string
  readonly pending: PendingLogin
}

const ISSUER_COOKIE = 'issuer'
const HANDLE_MS = 60 * 60_000
const ISSUER_MS = 10 * 60_000
const FAILURES_PER_MINUTE = 20 // of one address
/** How issuers refuse offline access: Keycloak answers `not_allowed` to people without the role. */
const OFFLINE_REFUSALS: ReadonlySet<string> = new Set(['not_allowed', 'invalid_scope'])

const EXPIRED: BrowserResponse = {
  kind: 'message',
  page: {
    status: 400,
    title: 'This page is no longer valid',
    text: 'It has expired, or it was opened in another browser. Start again from your client. Cookies must be allowed.',
  },
}

const foreignAnswer = (expected: string, name: string): SignInFailed =>
  new SignInFailed(
    'refused',
    `The answer came from ${name.slice(0, 100)}, not from ${expected}: nothing was sent there.`,
  )

/** Signs people in by an API token that they paste, or at an issuer. Keeps nothing about browsers that have not signed in. */
export const createSignIn = (options: SignInOptions): SignIn => {
  const { byToken, issuers, offered, tokens, visitors, sessions, login, accessOf, sealer, jar, record } = options
  const attempts = new AttemptLimit(FAILURES_PER_MINUTE)

  const openHandle = ({ params, cookies }: BrowserRequest): ReturnHandle | undefined => {
    const handle = sealer.open<ReturnHandle>('sign-in', params.get('handle'))
    return handle && visitors.isFrom(cookies, handle.browser) ? handle : undefined
  }

  const showForm = (handle: ReturnHandle, status: number, error?: string): BrowserResponse => ({
    kind: 'sign-in',
    page: {
      status,
      purpose: handle.purpose,
      handle: sealer.seal('sign-in', handle, HANDLE_MS),
      byToken: byToken && handle.issuer === undefined,
      issuers: handle.issuer === undefined ? offered : [handle.issuer],
      error,
    },
  })

  const failed = (error: unknown, issuer: string, address: string | undefined): BrowserResponse => {
    if (!(error instanceof SignInFailed)) throw error
    record('sign_in_failed', { address, issuer, reason: error.message })
    const said = error.quoted === undefined ? '' : ` It said: “${error.quoted}”`
    const page = { status: error.status, title: `Signing in with ${issuer} failed`, text: error.message + said }
    return { kind: 'message', page }
  }

  /** Leads the browser to the issuer. */
  const lead = async (issuer: Issuer, returnTo: string, isOffline?: boolean): Promise<BrowserResponse> => {
    const { url, pending } = await login.begin(issuer, isOffline)
    const content: IssuerCookie = { issuer: issuer.name, returnTo, pending }
    const cookie = jar.write(ISSUER_COOKIE, sealer.seal('issuer', content, ISSUER_MS), ISSUER_MS)
    return { kind: 'redirect', to: url, cookies: [cookie] }
  }

  const ask: SignIn['ask'] = ({ cookies }, returnTo, purpose, { error, issuer } = {}) => {
    if (!/^\/(?![/\\])/.test(returnTo)) throw new Error(`not a path of the gateway: ${returnTo}`)
    const found = visitors.browserOf(cookies)
    const handle = { browser: found.browser, returnTo, purpose, issuer }
    return { ...showForm(handle, error === undefined ? 200 : 403, error), cookies: found.cookies }
  }

  return {
    visitorOf: cookies => visitors.signedIn(cookies),
    ask,

    submit: async request => {
      const handle = openHandle(request)
      if (!handle || !byToken || handle.issuer !== undefined) return EXPIRED
      const secret = (request.params.get('token') ?? '').trim()
      const mayBeNew = isApiSecret(secret) && !tokens.find(secret) && !attempts.isExhausted(request.address)
      if (mayBeNew) await tokens.refresh() // it may have been created just now
      const token = tokens.find(secret)
      const access = token && (await accessOf({ kind: 'token', id: token.id }))
      if (!token || !access) {
        // Valid tokens are not counted: the visitors behind a proxy share its address, and none may lock out the others.
        const waitMs = attempts.take(request.address)
        if (waitMs !== undefined)
          return showForm(handle, 429, `Too many attempts: try again in ${Math.ceil(waitMs / 1000)} seconds.`)
        const reason = token ? 'This token has expired.' : 'This token is unknown or was revoked.'
        record('sign_in_failed', { address: request.address, token: token?.id, reason })
        return showForm(handle, 403, reason)
      }
      record('signed_in', { principal: access.principal, token: token.id, address: request.address })
      const cookies = [visitors.signIn({ kind: 'token', id: token.id })]
      return { kind: 'continue', to: handle.returnTo, visitor: access.name, cookies }
    },

    begin: async (name, request) => {
      const handle = openHandle(request)
      const issuer = issuers.get(name)
      if (!handle || !issuer || !(handle.issuer === undefined ? offered : [handle.issuer]).includes(name))
        return EXPIRED
      try {
        return await lead(issuer, handle.returnTo)
      } catch (error) {
        return failed(error, name, request.address)
      }
    },

    finish: async (name, { params, cookies, address }) => {
      const known = sealer.open<IssuerCookie>('issuer', jar.read(cookies, ISSUER_COOKIE))
      const issuer = known && issuers.get(known.issuer)
      if (!known || !issuer) return EXPIRED
      // Also of an issuer that does not send its name: a code is redeemed only where it was issued.
      if (known.issuer !== name) return failed(foreignAnswer(known.issuer, name), known.issuer, address)
      const clear = jar.remove(ISSUER_COOKIE)
      try {
        const identity = await login.finish(issuer, known.pending, params)
        const session = await sessions.create(issuer, identity)
        record('signed_in', { principal: session.principal, issuer: issuer.name, address })
        const signedIn = visitors.signIn({ kind: 'issuer', session: session.id })
        return { kind: 'redirect', to: known.returnTo, cookies: [signedIn, clear] }
      } catch (error) {
        if (known.pending.isOffline && error instanceof SignInFailed && OFFLINE_REFUSALS.has(error.code ?? ''))
          return lead(issuer, known.returnTo, false).catch((second: unknown) => failed(second, issuer.name, address))
        return { ...failed(error, issuer.name, address), cookies: [clear] }
      }
    },

    signOut: async request => {
      const handle = openHandle(request)
      if (!handle) return EXPIRED
      await visitors.signOut(request.cookies)
      return ask({ cookies: undefined }, handle.returnTo, handle.purpose, { issuer: handle.issuer }) // the new cookie replaces the old one
    },
  }
}
