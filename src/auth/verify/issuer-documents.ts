import type { Issuer } from '../../config/snapshot.ts'
import { isSameIssuer, issuerLocations } from '../client/metadata.ts'
import { type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'

/** The metadata of an authorization server that verifying its tokens needs. */
export interface VerificationMetadata {
  readonly jwks_uri?: unknown
  readonly introspection_endpoint?: unknown
}

/** An issuer that cannot be used now, or says something that is not true. The message names it. */
export class IssuerUnusable extends Error {}

/** Reads the metadata of an issuer; its `issuer` must be exactly the configured one. */
export const fetchMetadata = async ({ name, url }: Issuer, fetch: GuardedFetch): Promise<VerificationMetadata> => {
  for (const location of issuerLocations(url)) {
    const response = await fetch(location, { from: url })
    if (response.status >= 500 || response.status === 429)
      throw new IssuerUnusable(`the issuer "${name}" answered ${location} with status ${response.status}`)
    const document = response.status === 200 ? readJsonObject(response) : undefined
    if (!document) continue
    if (isSameIssuer(String(document.issuer), url)) return document
    throw new IssuerUnusable(
      `the metadata at ${location} is of another issuer than "${name}": write its "issuer" as "url", exactly`,
    )
  }
  throw new IssuerUnusable(`the issuer "${name}" has no metadata: write where its keys are ("jwks")`)
}

/** Reads a JSON object of an issuer; `from` is the configured URL that led to it. */
export const fetchObject = async (
  { name }: Issuer,
  location: string,
  from: string,
  fetch: GuardedFetch,
): Promise<Readonly<Record<string, unknown>>> => {
  const response = await fetch(location, { from })
  const document = response.status === 200 ? readJsonObject(response) : undefined
  if (document) return document
  throw new IssuerUnusable(
    `the issuer "${name}" answered ${location} with status ${response.status} and no JSON object`,
  )
}
