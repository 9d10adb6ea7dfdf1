import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** A bearer token as it is stored: everything but the secret. */
export interface Token {
  readonly id: string
  readonly name: string
  readonly hash: string // SHA-256 of the secret, in hex
  readonly principal: string
  readonly workspaces: readonly string[] // names, or EVERY_WORKSPACE
  readonly policy?: string | undefined // the name of a policy in the configuration
  readonly admin?: boolean | undefined // its holder may change the gateway
  readonly created: string // ISO 8601
  readonly expires?: string | undefined
}

/** The stored API tokens, valid or expired. */
export interface ApiTokens {
  find(secret: string): Token | undefined
  byId(id: string): Token | undefined
}

export const EVERY_WORKSPACE = '*'

const PREFIX = 'drg_'
const SECRET_BYTES = 32
const SECRET = /^drg_[A-Za-z0-9_-]{43}$/

/** True for what looks like the secret of an API token. */
export const isApiSecret = (text: string): boolean => text.startsWith(PREFIX)

export const createSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString('base64url')

/** A short name for a token that may be shown and logged. */
export const createTokenId = (): string => randomBytes(5).toString('hex')

/** A secret has 256 random bits and cannot be guessed, so one round without salt is enough. */
export const hashSecret = (secret: string): string => hash('sha256', secret, 'hex')

/** Finds the token of a secret. The duration depends on the hash only, which reveals nothing about the secret. */
export const findToken = (tokens: ReadonlyMap<string, Token>, secret: string): Token | undefined => {
  if (!SECRET.test(secret)) return undefined
  const digest = hashSecret(secret)
  const token = tokens.get(digest)
  return token && timingSafeEqual(Buffer.from(token.hash, 'hex'), Buffer.from(digest, 'hex')) ? token : undefined
}

/** Epoch milliseconds; infinite for a token that never expires. */
export const expiryOf = ({ expires }: Token): number =>
  expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires)

export const isExpired = (token: Token, now: number): boolean => now >= expiryOf(token)

export const canAccess = (token: Pick<Token, 'workspaces'>, workspace: string): boolean =>
  token.workspaces.includes(EVERY_WORKSPACE) || token.workspaces.includes(workspace)
