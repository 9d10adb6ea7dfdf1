import { randomBytes } from 'node:crypto'
import type { OpenerTokens } from '../protocol/admission.ts'
import { BoundedCache } from '../std/bounded-cache.ts'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import { EndedSignIns } from './ended-sign-ins.ts'
import type { Sealer } from './server/sealer.ts'
import { SignInCodes } from './sign-in-codes.ts'
import { isExpired, type Token } from './token.ts'

interface ConsoleSessionsOptions {
  readonly sealer: Sealer
  readonly documents: Pick<Shared, 'document' | 'writeDocument' | 'on'> // of the store
  readonly log: Log
  /** A stored token, or the one of this process; undefined: it was revoked. */
  readonly tokenOf: (id: string) => Token | undefined
  readonly onRevoked: OpenerTokens['onRevoked']
}

/** A user who is signed in to the console. */
export interface ConsoleSession {
  readonly id: string
  readonly csrf: string
  readonly token: Token // that it was opened with
  readonly created: number
  readonly until: number
}

interface SealedSession {
  readonly id: string
  readonly csrf: string
  readonly token: string
  readonly created: number
  readonly until: number
}

interface SealedMcpToken {
  readonly session: string // the id
  readonly token: string // the id
}

const IDLE_MS = 12 * 60 * 60_000 // an open page renews its session
const LONGEST_MS = 7 * 24 * 60 * 60_000
const MCP_MS = 10 * 60_000
const MCP_PREFIX = 'drg_console.' // a dot is in no API token
const MOST_ENDED = 10_000

/**
 * The sessions of the console. A session is its sealed cookie: the gateway keeps none, so their number needs no bound, they
 * survive a restart, and every replica knows them. It ends with its token, by sign-out, or when the secret is replaced. The
 * store keeps the ids of those that were signed out.
 */
export class ConsoleSessions {
  readonly #sealer: Sealer
  readonly #tokenOf: ConsoleSessionsOptions['tokenOf']
  readonly #onRevoked: ConsoleSessionsOptions['onRevoked']
  readonly #log: Log
  readonly #ended: EndedSignIns // by sign-out, at any replica
  readonly #endedHere = new BoundedCache<true>(MOST_ENDED, LONGEST_MS) // also while the store is away
  readonly #listeners = new Map<() => void, string>() // ids of sessions

  /** Codes of links that sign in once. */
  readonly codes: SignInCodes

  constructor({ sealer, tokenOf, onRevoked, documents, log }: ConsoleSessionsOptions) {
    this.#sealer = sealer
    this.#tokenOf = tokenOf
    this.#onRevoked = onRevoked
    this.#log = log
    this.#ended = new EndedSignIns(documents, log, isEnded => this.#endListeners(isEnded))
    this.codes = new SignInCodes(sealer, this.#ended)
  }

  close(): void {
    this.#ended.close()
  }

  /** Opens a session for the owner of a token; undefined if the token is not valid. */
  open(token: string): ConsoleSession | undefined {
    const random = (): string => randomBytes(24).toString('base64url')
    return this.#check({ id: random(), csrf: random(), token, created: Date.now(), until: Number.POSITIVE_INFINITY })
  }

  /** The value of the cookie, valid for some hours more. */
  seal({ id, csrf, token, created }: ConsoleSession): { readonly value: string; readonly ms: number } {
    const now = Date.now()
    const until = Math.min(now + IDLE_MS, created + LONGEST_MS)
    const content: SealedSession = { id, csrf, token: token.id, created, until }
    const ms = until - now
    return { value: this.#sealer.seal('console', content, ms), ms }
  }

  /** The session of a cookie; undefined if it has ended. */
  find(cookie: string | undefined): ConsoleSession | undefined {
    const sealed = this.#sealer.open<SealedSession>('console', cookie)
    return sealed && this.#check(sealed)
  }

  /** Ends a session: here at once, and at other replicas as soon as they are notified. */
  async end({ id, created }: ConsoleSession): Promise<void> {
    this.#endedHere.set(id, true)
    this.#endListeners(ended => ended === id)
    try {
      await this.#ended.add(id, created + LONGEST_MS)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#log.warn({ reason }, 'sign-out could not be stored; other replicas accept the session until it expires')
    }
  }

  #endListeners(isEnded: (session: string) => boolean): void {
    for (const [end, session] of [...this.#listeners]) if (isEnded(session) && this.#listeners.delete(end)) end()
  }

  /** Calls `end` when a session ends, unless the returned function was called before. */
  onEnded({ id, token, until }: ConsoleSession, end: () => void): () => void {
    const once = (): void => {
      release()
      end()
    }
    const timer = setTimeout(once, Math.min(until - Date.now(), LONGEST_TIMER_MS)).unref()
    const releaseToken = this.#onRevoked(token.id, once)
    const release = (): void => {
      clearTimeout(timer)
      this.#listeners.delete(once)
      releaseToken()
    }
    this.#listeners.set(once, id)
    return release
  }

  /** A bearer token for MCP with the access of the session's one, for some minutes: the page keeps it, and no API token. */
  createMcpToken({ id, token }: Pick<ConsoleSession, 'id' | 'token'>): string {
    const content: SealedMcpToken = { session: id, token: token.id }
    return MCP_PREFIX + this.#sealer.seal('console-mcp', content, MCP_MS)
  }

  /** The token that a token of `createMcpToken` stands for. */
  findMcpToken(secret: string): Token | undefined {
    if (!secret.startsWith(MCP_PREFIX)) return undefined
    const sealed = this.#sealer.open<SealedMcpToken>('console-mcp', secret.slice(MCP_PREFIX.length))
    return sealed && !this.#isEnded(sealed.session) ? this.#tokenOf(sealed.token) : undefined
  }

  #check({ token: tokenId, ...session }: SealedSession): ConsoleSession | undefined {
    const token = this.#tokenOf(tokenId)
    if (!token || isExpired(token, Date.now()) || this.#isEnded(session.id)) return undefined
    return { ...session, token }
  }

  #isEnded(id: string): boolean {
    return this.#endedHere.get(id) === true || this.#ended.has(id)
  }
}
