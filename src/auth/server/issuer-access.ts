import type { Issuer } from '../../config/snapshot.ts'
import { readClaims } from '../verify/claims.ts'
import type { SubjectAccess } from './access.ts'
import type { IssuerClaims } from './issuer-login.ts'

/** What a person with these claims may use; a text says why nothing. */
export const accessOfClaims = (issuer: Issuer, claims: IssuerClaims): SubjectAccess | string => {
  const { name, principal: claim } = issuer
  const reading = readClaims(issuer, claims)
  if (reading.kind === 'invalid')
    return `${name} did not say who you are: the claim "${claim ?? 'sub'}" is missing, or not verified.`
  if (reading.kind === 'forbidden')
    return `You are signed in at ${name}, but none of its grants in the configuration fits you.`
  const { principal, grant } = reading
  return { principal, name: principal, workspaces: grant.workspaces, policy: grant.policy }
}
