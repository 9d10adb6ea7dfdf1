import { createPrivateKey, type JsonWebKey, type KeyObject, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'

/** The algorithms that fit a key, the preferred first. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  rsa: ['RS256', 'PS256', 'RS384', 'RS512', 'PS384', 'PS512'],
  'rsa-pss': ['PS256', 'PS384', 'PS512'],
  ed25519: ['EdDSA', 'Ed25519'],
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
}
const LIFETIME_S = 60

interface SigningKey {
  readonly key: KeyObject
  readonly id?: string | undefined
  readonly algorithms: readonly string[]
}

/** Reads a private key in PEM or as a JWK; throws if it is neither. */
const readPrivateKey = (text: string): SigningKey => {
  const jwk = text.trimStart().startsWith('{') ? (JSON.parse(text) as JsonWebKey) : undefined
  const key = jwk ? createPrivateKey({ key: jwk, format: 'jwk' }) : createPrivateKey(text)
  const kind = key.asymmetricKeyDetails?.namedCurve ?? key.asymmetricKeyType ?? ''
  const stated = typeof jwk?.alg === 'string' ? [jwk.alg] : undefined
  return {
    key,
    id: typeof jwk?.kid === 'string' ? jwk.kid : undefined,
    algorithms: stated ?? ALGORITHMS[kind] ?? [],
  }
}

/** What an assertion says, and how it is signed. */
export interface AssertionOptions {
  readonly clientId: string
  readonly audience: string // the issuer of the authorization server
  readonly privateKey: string
  readonly supported?: readonly string[] | undefined // algorithms of the authorization server
  readonly now: number // as Date.now() counts; the authorization server's time, if it is known
}

/** The JWT with which a client proves that it has its key (`private_key_jwt`, RFC 7523). Throws if the key is unusable. */
export const createClientAssertion = async (options: AssertionOptions): Promise<string> => {
  const { clientId, audience, supported, now } = options
  const { key, id, algorithms } = readPrivateKey(options.privateKey)
  const alg = algorithms.find(each => supported?.includes(each)) ?? algorithms[0]
  if (alg === undefined) throw new Error('the kind of the private key is not supported')
  const seconds = Math.floor(now / 1000)
  return new SignJWT({})
    .setProtectedHeader({ alg, ...(id !== undefined && { kid: id }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setJti(randomUUID())
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + LIFETIME_S)
    .sign(key)
}
