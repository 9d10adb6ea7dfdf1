import { createHash } from 'node:crypto'
import { type Held, StateError, type StateStore } from '../../stores/state/state-store.ts'
import type { ClientMethod, GrantedTokens, OAuthIdentity } from './token-request.ts'

/** The tokens of one server and principal, with what a refresh needs: the client, the endpoints and the scopes. */
export interface TokenRecord {
  readonly server: string
  readonly url: string // of the server; the tokens go nowhere else
  readonly principal?: string | undefined // undefined: of the whole gateway
  readonly issuer: string
  readonly tokenEndpoint: string
  readonly signingAlgorithms?: readonly string[] | undefined
  readonly revocationEndpoint?: string | undefined
  readonly client?: StoredClient | undefined
  readonly resource?: string | undefined
  readonly requested: readonly string[] // scopes
  readonly granted: readonly string[]
  readonly access: string
  readonly refresh?: string | undefined
  readonly obtained: number // as Date.now() counts
  readonly expires?: number | undefined
  readonly since: number // when the user logged in
  readonly refreshing?: RefreshClaim | undefined
}

/** Says that a replica refreshes the tokens. */
export interface RefreshClaim {
  readonly id: string
  readonly replica: string
}

/** A client; the secrets of a configured one stay in the configuration. */
export type StoredClient =
  | { readonly kind: 'configured'; readonly id: string; readonly method: ClientMethod }
  | ({ readonly kind: 'registered' } & Pick<OAuthIdentity, 'id' | 'method' | 'secret'>)

const KEPT_MS = 365 * 24 * 60 * 60_000 // without a refresh
const MARGIN_MS = 60_000 // before the end
const FRESH_MS = 10_000

/** The id of the record of a server and principal. */
export const tokenKey = (server: string, principal: string | undefined): string =>
  createHash('sha256')
    .update(JSON.stringify(['token', server, principal ?? null]))
    .digest('base64url')

export const encodeRecord = (record: object): Buffer => Buffer.from(JSON.stringify(record))

/** The JSON of a record, which the store has authenticated: what another version wrote may lack members. */
export const decodeTokens = (held: Pick<Held, 'body'> | undefined): TokenRecord | undefined => {
  const record = held && parseObject(held.body)
  const isComplete =
    typeof record?.access === 'string' && typeof record.url === 'string' && typeof record.tokenEndpoint === 'string'
  return isComplete ? (record as unknown as TokenRecord) : undefined
}

/** The JSON object of a record; undefined if it holds anything else. */
export const parseObject = (body: Buffer): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}

/** How long a record is kept after its last change. */
export const keptUntil = (now: number): number => now + KEPT_MS

/** The record with new tokens. A refresh token that was not replaced stays valid. */
export const withTokens = (record: TokenRecord, tokens: GrantedTokens, now: number): TokenRecord => ({
  ...record,
  access: tokens.access,
  refresh: tokens.refresh ?? record.refresh,
  granted: tokens.scopes ?? record.granted,
  obtained: now,
  expires: tokens.lifetimeMs === undefined ? undefined : now + tokens.lifetimeMs,
  refreshing: undefined,
})

/** When a refresh is due: a minute before the end; for short-lived tokens, after three quarters of their life. */
export const refreshAt = ({ obtained, expires }: TokenRecord): number =>
  expires === undefined ? Number.POSITIVE_INFINITY : expires - Math.min(MARGIN_MS, (expires - obtained) / 4)

/** Whether the tokens were issued just now: a server that refuses them would refuse others, too. */
export const isFresh = ({ obtained, expires }: TokenRecord, now: number): boolean => {
  const age = now - obtained
  const half = expires === undefined ? FRESH_MS : (expires - obtained) / 2
  return age >= 0 && age < Math.min(FRESH_MS, half)
}

const SAVE_ATTEMPTS = 10

/** Stores the tokens of a new login, instead of those that are stored now. Rejects with StateError. */
export const saveTokens = async (store: StateStore, key: string, record: TokenRecord): Promise<void> => {
  const body = encodeRecord(record)
  const options = { expires: keptUntil(Date.now()), durable: true }
  for (let attempt = 0; attempt < SAVE_ATTEMPTS; attempt++) {
    const taken = await store.take('token', key)
    if (taken.kind === 'mine' && (await store.write(taken.held, body, options))) return
    if (taken.kind !== 'none') continue
    const isCreated = await store.create('token', key, body, options).then(
      () => true,
      (error: unknown) => {
        if (error instanceof StateError && error.reason === 'exists') return false
        throw error
      },
    )
    if (isCreated) return
  }
  throw new StateError('away', 'Several replicas write the same login.')
}
