import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Held } from '../../stores/state/state-store.ts'
import { parseObject, type StoredClient } from './token-records.ts'

/** A login that a user was asked for. */
export interface LoginRecord {
  readonly server: string
  readonly url: string // of the server
  readonly principal?: string | undefined // undefined: for the whole gateway
  readonly secret: string // the part of the link that cannot be guessed
  readonly expires: number
  readonly isDone: boolean
  readonly request: LoginRequest
  readonly opened: readonly OpenedLogin[] // the latest last
  readonly hasNewClient?: boolean // the first one did not lead back
}

/** What a login requests, and where. */
export interface LoginRequest {
  readonly issuer: string
  readonly sendsIssuer: boolean // in its response
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly signingAlgorithms?: readonly string[] | undefined
  readonly revocationEndpoint?: string | undefined
  readonly client?: StoredClient | undefined // undefined: nothing to authorize, only a sign-in at `idp`
  readonly redirectUri: string
  readonly resource?: string | undefined
  readonly scopes: readonly string[]
  readonly idp?: string | undefined // the issuer of the configuration whose sign-in is used instead of the request
}

/** A browser that was sent to the authorization server. */
export interface OpenedLogin {
  readonly stateHash: string
  readonly cookieHash: string
  readonly verifier: string
  readonly client?: StoredClient | undefined
  readonly at: number
}

const LOGIN_MS = 10 * 60_000
const KEY_BYTES = 16
const KEY_LENGTH = 22 // in base64url
const SECRET = /^[A-Za-z0-9_-]{22}$/
const MOST_OPENED = 8

export const hashText = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The id of the record: there is one login per server, principal and set of scopes. */
export const loginKey = (server: string, principal: string | undefined, scopes: readonly string[]): string =>
  createHash('sha256')
    .update(JSON.stringify(['login', server, principal ?? null, [...scopes].sort()]))
    .digest()
    .subarray(0, KEY_BYTES)
    .toString('base64url')

export const createLinkSecret = (): string => randomBytes(KEY_BYTES).toString('base64url')

/** Splits what starts with the id of a login: the id of a link, or a state. */
export const splitLoginId = (text: string): { readonly key: string; readonly rest: string } => ({
  key: text.slice(0, KEY_LENGTH),
  rest: text.slice(KEY_LENGTH),
})

export const isLinkSecret = ({ secret }: LoginRecord, given: string): boolean =>
  SECRET.test(given) && timingSafeEqual(Buffer.from(secret), Buffer.from(given))

export const loginExpiry = (now: number): number => now + LOGIN_MS

/** Whether a link may be given out again: it is not used up, and asks for the same. */
export const isReusable = (record: LoginRecord, url: string, request: LoginRequest): boolean =>
  !record.isDone && record.url === url && JSON.stringify(record.request) === JSON.stringify(request)

/** The record after one more browser was sent to the authorization server. */
export const withOpened = (record: LoginRecord, opened: OpenedLogin): LoginRecord => ({
  ...record,
  opened: [...record.opened, opened].slice(-MOST_OPENED),
})

const LOST_MS = 10_000

/**
 * Whether a browser was sent to the authorization server before and did not come back: it may have been shown that the
 * client is not known, for example after a restart of a server that keeps registrations in memory.
 */
export const seemsLost = ({ opened, hasNewClient, request }: LoginRecord, now: number): boolean =>
  !hasNewClient && request.client?.kind === 'registered' && now - (opened.at(-1)?.at ?? now) > LOST_MS

export const decodeLogin = (held: Pick<Held, 'body'> | undefined): LoginRecord | undefined => {
  const record = held && parseObject(held.body)
  const isComplete = typeof record?.secret === 'string' && typeof record.request === 'object'
  return isComplete ? (record as unknown as LoginRecord) : undefined
}
