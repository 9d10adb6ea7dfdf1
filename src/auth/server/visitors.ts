import { randomBytes } from 'node:crypto'
import type { Visitor } from '../../protocol/sign-in.ts'
import type { EndedSignIns } from '../ended-sign-ins.ts'
import type { AccessOf, Subject } from './access.ts'
import type { CookieJar } from './cookies.ts'
import type { Sealer } from './sealer.ts'

/** What the cookie of a browser says, sealed. */
interface BrowserCookie {
  readonly browser: string // random; forms that were made for one browser are not accepted from another
  readonly subject?: Subject | undefined // undefined: not signed in
}

/** A visitor, and what they have signed in with. */
export interface SignedIn extends Visitor {
  readonly browser: string
  readonly subject: Subject
}

const COOKIE = 'visitor'
const SIGNED_IN_MS = 8 * 60 * 60_000
const UNKNOWN_MS = 60 * 60_000

/** Knows browsers by a sealed cookie. Each request looks up what the visitor may use now. */
export class Visitors {
  readonly #sealer: Sealer
  readonly #jar: CookieJar
  readonly #accessOf: AccessOf
  readonly #ended: Pick<EndedSignIns, 'has' | 'add'> // names of browsers that were signed out

  constructor(sealer: Sealer, jar: CookieJar, accessOf: AccessOf, ended: Pick<EndedSignIns, 'has' | 'add'>) {
    this.#sealer = sealer
    this.#jar = jar
    this.#accessOf = accessOf
    this.#ended = ended
  }

  async signedIn(cookies: string | undefined): Promise<SignedIn | undefined> {
    const { browser, subject } = this.#read(cookies) ?? {}
    const access = subject && (await this.#accessOf(subject))
    if (!access || browser === undefined) return undefined
    const { principal, name, workspaces, policy } = access
    return { principal, name, workspaces, policy, browser, subject }
  }

  /** The browser of a request; one without a cookie gets a new name, and the cookie to be sent. */
  browserOf(cookies: string | undefined): { readonly browser: string; readonly cookies: readonly string[] } {
    const known = this.#read(cookies)
    if (known) return { browser: known.browser, cookies: [] }
    const browser = newBrowser()
    return { browser, cookies: [this.#write({ browser }, UNKNOWN_MS)] }
  }

  /** True if the request comes from that browser. */
  isFrom(cookies: string | undefined, browser: string): boolean {
    return this.#read(cookies)?.browser === browser
  }

  /** The cookie of a browser whose visitor has just signed in. It gets a new name: what was made for the old one ends. */
  signIn(subject: Subject): string {
    return this.#write({ browser: newBrowser(), subject }, SIGNED_IN_MS)
  }

  /** Ends the sign-in of a cookie, also for copies of it, at every replica. Rejects if the store is away. */
  async signOut(cookies: string | undefined): Promise<void> {
    const { browser, subject } = this.#read(cookies) ?? {}
    if (browser !== undefined && subject) await this.#ended.add(browser, Date.now() + SIGNED_IN_MS)
  }

  #read(cookies: string | undefined): BrowserCookie | undefined {
    const cookie = this.#sealer.open<BrowserCookie>('visitor', this.#jar.read(cookies, COOKIE))
    return cookie && !this.#ended.has(cookie.browser) ? cookie : undefined
  }

  #write(content: BrowserCookie, ttlMs: number): string {
    return this.#jar.write(COOKIE, this.#sealer.seal('visitor', content, ttlMs), ttlMs)
  }
}

const newBrowser = (): string => randomBytes(16).toString('base64url')
