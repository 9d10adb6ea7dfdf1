import type { DeclaredEndpoints } from '../../protocol/oauth.ts'
import { FetchFailed, type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'
import type { BearerChallenge } from './challenge.ts'
import { LOGIN_FAILURES, LoginProblem } from './messages.ts'
import {
  assumedServer,
  coversUrl,
  declaredServer,
  type IssuerMetadata,
  isSameIssuer,
  issuerLocations,
  type ResourceMetadata,
  readIssuerMetadata,
  readResourceMetadata,
  resourceLocations,
} from './metadata.ts'

/** Where the tokens of a server come from. */
export interface DiscoveredIssuer {
  readonly authServer: IssuerMetadata
  readonly resource?: string | undefined // as the server writes it; sent with each request for tokens
  readonly scopes?: readonly string[] | undefined // that the server supports
  readonly from: string // the URL of the configuration that led to the authorization server
}

/** The part of a server's configuration that discovery needs. */
interface DiscoveredServer {
  readonly url: string
  readonly issuer?: string | undefined // configured
  readonly declared?: DeclaredEndpoints | undefined // by a description of the server
}

type Document = Readonly<Record<string, unknown>>

/** Finds the authorization server of a server. Rejects with LoginProblem. */
export const discover = async (
  fetch: GuardedFetch,
  { url, issuer: configured, declared }: DiscoveredServer,
  challenge: BearerChallenge | undefined,
): Promise<DiscoveredIssuer> => {
  const metadata = await findResource(fetch, url, challenge)
  if (metadata && !coversUrl(metadata.resource, url))
    throw new LoginProblem(LOGIN_FAILURES.foreignMetadata(metadata.resource, url))
  const from = configured ?? url
  const issuer = configured ?? metadata?.issuers[0]
  const found = await findServer(fetch, issuer ?? new URL(url).origin, from)
  if (!found && issuer !== undefined) throw new LoginProblem(LOGIN_FAILURES.noMetadata(issuer))
  const authServer = found ?? (declared ? declaredServer(declared) : assumedServer(url))
  const scopes = metadata?.scopes ?? (found ? undefined : declared?.scopes)
  return { authServer, resource: metadata?.resource, scopes, from }
}

/** The metadata of the server: where its challenge says, else by its path, else at the root of its origin. */
const findResource = async (
  fetch: GuardedFetch,
  url: string,
  challenge: BearerChallenge | undefined,
): Promise<ResourceMetadata | undefined> => {
  const named = challenge?.resourceMetadata && URL.parse(challenge.resourceMetadata, url)?.href
  const locations = [...(named ? [named] : []), ...resourceLocations(url)]
  for (const location of new Set(locations)) {
    const document = await fetchDocument(fetch, location, url)
    const metadata = document && readResourceMetadata(document, url)
    if (metadata) return metadata
  }
  return undefined
}

/** The metadata of an issuer; undefined if it has none. Also used for issuers of the configuration. */
export const findServer = async (
  fetch: GuardedFetch,
  issuer: string,
  from: string,
): Promise<IssuerMetadata | undefined> => {
  if (!URL.canParse(issuer)) throw new LoginProblem(LOGIN_FAILURES.invalidIssuer())
  for (const location of issuerLocations(issuer)) {
    const document = await fetchDocument(fetch, location, from)
    const server = document && readIssuerMetadata(document)
    if (server && !isSameIssuer(server.issuer, issuer))
      throw new LoginProblem(LOGIN_FAILURES.foreignIssuer(issuer, server.issuer))
    if (server) return server
  }
  return undefined
}

/** The JSON object at a URL; undefined if there is none, for example a page instead. */
const fetchDocument = async (fetch: GuardedFetch, url: string, from: string): Promise<Document | undefined> => {
  const response = await fetch(url, { from }).catch((error: unknown) => {
    if (!(error instanceof FetchFailed)) throw error
    if (error.reason === 'unreachable') throw new LoginProblem(LOGIN_FAILURES.issuerDownBefore(new URL(url).origin))
    if (error.reason === 'too_large') throw new LoginProblem(LOGIN_FAILURES.unusable(error.message))
    throw new LoginProblem(LOGIN_FAILURES.addressRefused(error.message))
  })
  if (response.status >= 500 || response.status === 429)
    throw new LoginProblem(LOGIN_FAILURES.issuerDownBefore(new URL(url).origin))
  return response.status === 200 ? readJsonObject(response) : undefined
}
