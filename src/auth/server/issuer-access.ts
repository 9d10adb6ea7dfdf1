import type { Issuer } from '../../config/snapshot.ts'
import type { SubjectAccess } from './access.ts'
import type { IssuerClaims } from './issuer-login.ts'

/** What a person with these claims may use; a text says why nothing. */
export const accessOfClaims = (issuer: Issuer, claims: IssuerClaims): SubjectAccess | string => {
  const { name, principal: claim } = issuer
  const found = claims[claim ?? 'sub']
  if (typeof found !== 'string' || found === '' || (claim === 'email' && claims.email_verified !== true))
    return `${name} did not say who you are: the claim "${claim ?? 'sub'}" is missing, or not verified.`
  const grant = issuer.grants.find(({ where }) =>
    Object.entries(where).every(([path, wanted]) =>
      [claims[path]].flat().some(value => wanted.includes(value as string)),
    ),
  )
  if (!grant) return `You are signed in at ${name}, but none of its grants in the configuration fits you.`
  const principal = claim === undefined ? `${name}:${found}` : found
  return { principal, name: principal, workspaces: grant.workspaces, policy: grant.policy }
}
