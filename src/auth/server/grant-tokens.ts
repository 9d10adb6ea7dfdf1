import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { hashSecret } from '../token.ts'

/** Secrets of a grant: `dro_` access tokens, `drr_` refresh tokens and `drk_` codes, each with the id of its grant. */
export type GrantSecretKind = 'dro_' | 'drr_' | 'drk_'

export interface GrantSecret {
  readonly kind: GrantSecretKind
  readonly grant: string // the id
  readonly hash: string
}

const ID_BYTES = 18
const SECRET_BYTES = 30
const ID_LENGTH = (ID_BYTES / 3) * 4
const PROOF_BYTES = 12 // of the secret part of a refresh token; the others are random
const PROOF_LENGTH = (PROOF_BYTES / 3) * 4
const FORM = /^(dr[ork]_)([\w-]{24})[\w-]{40}$/

export const createGrantId = (): string => randomBytes(ID_BYTES).toString('base64url')

export const createGrantSecret = (kind: GrantSecretKind, grant: string): string =>
  kind + grant + randomBytes(SECRET_BYTES).toString('base64url')

/** Undefined if the text has not the form of such a secret. */
export const parseGrantSecret = (text: string, kind: GrantSecretKind): GrantSecret | undefined => {
  const [, found, grant] = FORM.exec(text) ?? []
  return found === kind && grant !== undefined ? { kind, grant, hash: hashSecret(text) } : undefined
}

/** The first refresh token of a grant. */
export const createRefreshToken = (seed: string, grant: string): string =>
  withProof(seed, `drr_${grant}${randomBytes(SECRET_BYTES - PROOF_BYTES).toString('base64url')}`)

/**
 * The successor of a refresh token is always the same, so that a client whose response was lost, or which refreshes from two
 * machines at once, gets the same one again. It cannot be derived without the seed of the grant.
 */
export const deriveSuccessor = (seed: string, token: string): string => {
  const secret = macOf(seed, token).subarray(0, SECRET_BYTES - PROOF_BYTES)
  return withProof(seed, token.slice(0, 'drr_'.length + ID_LENGTH) + secret.toString('base64url'))
}

/**
 * True for a refresh token that was issued for the grant, also if it is no longer valid. A code shows the id of its grant to a
 * browser, and a text made up with that must not end the grant as a reused token does.
 */
export const isIssuedRefreshToken = (seed: string, token: string): boolean =>
  timingSafeEqual(Buffer.from(withProof(seed, token.slice(0, -PROOF_LENGTH))), Buffer.from(token))

const withProof = (seed: string, text: string): string =>
  text + macOf(seed, `proof ${text}`).subarray(0, PROOF_BYTES).toString('base64url')

const macOf = (seed: string, text: string): Buffer =>
  createHmac('sha256', Buffer.from(seed, 'base64url')).update(text).digest()

/** The refresh tokens of a grant, as hashes. */
export interface RefreshChain {
  readonly current: string
  readonly previous?: string | undefined // rotated, and its successor, the current one, was not used yet
  readonly retired?: { readonly hash: string; readonly until: number } | undefined // the one before the previous one
}

/**
 * What a refresh token is good for. `rotate`: it is the current one. `repeat`: its successor was not used yet, so the response may
 * have been lost. `access-only`: its successor has just been used, by another machine of the client. `reused`: it was stolen.
 */
export type RefreshUse = 'rotate' | 'repeat' | 'access-only' | 'reused'

export const RETIRED_MS = 60_000

export const judgeRefresh = ({ current, previous, retired }: RefreshChain, hash: string, now: number): RefreshUse => {
  if (hash === current) return 'rotate'
  if (hash === previous) return 'repeat'
  return hash === retired?.hash && now < retired.until ? 'access-only' : 'reused'
}

/** The tokens after the current one has been used. */
export const rotateChain = ({ current, previous }: RefreshChain, successor: string, now: number): RefreshChain => ({
  current: successor,
  previous: current,
  retired: previous === undefined ? undefined : { hash: previous, until: now + RETIRED_MS },
})
