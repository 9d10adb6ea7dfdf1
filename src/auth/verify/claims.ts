import type { ClaimValue, Grant, Issuer } from '../../config/snapshot.ts'

// What the claims of an issuer mean here: who the caller is, and what they may use. Pure functions.

export type Claims = Readonly<Record<string, unknown>>

/** What an issuer's claims let a caller use, or why they let the caller use nothing. */
export type ClaimsReading =
  | { readonly kind: 'granted'; readonly principal: string; readonly grant: Grant }
  | { readonly kind: 'invalid'; readonly reason: string } // they do not say who the caller is
  | { readonly kind: 'forbidden'; readonly reason: string } // no grant fits

const LONGEST_PRINCIPAL = 256
/** The principal of the user of this machine, whom no issuer knows. */
const LOCAL = 'local'
/** Claims that hold several words in one text. */
const WORD_LISTS: ReadonlySet<string> = new Set(['scope', 'scp'])

/** Reads who the caller is, and which grant of the issuer applies. */
export const readClaims = (issuer: Issuer, claims: Claims): ClaimsReading => {
  const principal = principalIn(issuer, claims)
  if (typeof principal !== 'string') return { kind: 'invalid', reason: principal.problem }
  const grant = issuer.grants.find(({ where }) => fits(where, claims))
  if (grant) return { kind: 'granted', principal, grant }
  return { kind: 'forbidden', reason: `No grant of the issuer "${issuer.name}" fits the claims of the token` }
}

const principalIn = (issuer: Issuer, claims: Claims): string | { readonly problem: string } => {
  const { name, principal: claim, reservedNames = [] } = issuer
  const found = claimOf(claims, claim ?? 'sub')
  const text = typeof found === 'number' ? String(found) : found
  if (typeof text !== 'string' || text === '') return { problem: `The token has no claim "${claim ?? 'sub'}"` }
  if (claim === 'email' && !isEmailVerified(claims))
    return { problem: 'The token has an "email", but not "email_verified": true' }
  const principal = claim === undefined ? `${name}:${text}` : text
  const isReserved =
    principal === LOCAL || (claim !== undefined && reservedNames.some(each => text.startsWith(`${each}:`)))
  if (isReserved || principal.length > LONGEST_PRINCIPAL || /\p{Cc}/u.test(principal))
    return { problem: `The claim "${claim ?? 'sub'}" of the token cannot be the name of a caller` }
  return principal
}

/** Many issuers let people write any address, and verify it later or never. */
const isEmailVerified = ({ email_verified }: Claims): boolean => email_verified === true

const fits = (where: Grant['where'], claims: Claims): boolean =>
  Object.entries(where).every(([path, wanted]) => {
    if (path === 'email' && !isEmailVerified(claims)) return false
    const found = valuesOf(path, claimOf(claims, path))
    return wanted.some(value => found.includes(value))
  })

/** A claim by its name, which may contain dots, or by the path to a member of one. */
const claimOf = (claims: Claims, path: string): unknown => {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Claims)[step]
  }
  return value
}

const valuesOf = (name: string, value: unknown): readonly ClaimValue[] => {
  if (Array.isArray(value)) return value.filter(isClaimValue)
  if (typeof value === 'string' && WORD_LISTS.has(name)) return wordsIn(value)
  return isClaimValue(value) ? [value] : []
}

const isClaimValue = (value: unknown): value is ClaimValue => ['string', 'number', 'boolean'].includes(typeof value)

const wordsIn = (text: string): string[] => text.split(' ').filter(word => word !== '')

/** The scopes of a token: `scope` of RFC 9068, `scp` of Entra and Okta. */
export const scopesIn = (claims: Claims): ReadonlySet<string> =>
  new Set([...WORD_LISTS].flatMap(name => valuesOf(name, claims[name]).map(String)))

/** The audiences of a token, in the form in which they are compared. */
export const audiencesIn = ({ aud }: Claims): readonly string[] =>
  [aud].flat().flatMap(audience => (typeof audience === 'string' ? [plainAudience(audience)] : []))

/** `https://host/` and `https://host` are the same resource. */
export const plainAudience = (audience: string): string => audience.replace(/\/$/, '')
