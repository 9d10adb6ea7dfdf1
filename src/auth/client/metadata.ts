import type { DeclaredEndpoints } from '../../protocol/oauth.ts'
import { isLoopback } from '../../std/host.ts'
import { boundTexts } from './scopes.ts'

/** A server as its protected-resource metadata describes it (RFC 9728). */
export interface ResourceMetadata {
  readonly resource: string // as written
  readonly issuers: readonly string[]
  readonly scopes?: readonly string[] | undefined
}

/** An authorization server as its metadata describes it (RFC 8414, OpenID Connect DiscoveredIssuer). */
export interface IssuerMetadata {
  readonly issuer: string
  readonly authorizationEndpoint?: string | undefined
  readonly tokenEndpoint: string
  readonly registrationEndpoint?: string | undefined
  readonly revocationEndpoint?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly authMethods?: readonly string[] | undefined // of its token endpoint
  readonly signingAlgorithms?: readonly string[] | undefined // of `private_key_jwt`
  readonly supportsPkce: boolean // says so, with S256
  readonly supportsClientDocuments: boolean
  readonly sendsIssuer: boolean // in each authorization response (RFC 9207)
  readonly isAssumed?: boolean // it has no metadata: endpoints of the revision 2025-03-26
}

type Document = Readonly<Record<string, unknown>>

const LONGEST_URL = 2000 // characters; what is longer is treated as if it was not there

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const texts = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value)
    ? boundTexts(value.filter((each): each is string => typeof each === 'string' && each !== ''))
    : undefined
const endpoint = (value: unknown): string | undefined => {
  const url = URL.parse(text(value) ?? '')
  const isUsable = (url?.protocol === 'https:' || url?.protocol === 'http:') && url.href.length <= LONGEST_URL
  return isUsable ? url.href : undefined
}

/** Undefined if the document describes no resource. */
export const readResourceMetadata = (document: Document, serverUrl: string): ResourceMetadata | undefined => {
  const { resource, authorization_servers: servers, scopes_supported: scopes } = document
  if (resource === undefined && servers === undefined) return undefined
  return {
    resource: text(resource) ?? new URL(serverUrl).href,
    issuers: texts(servers) ?? [],
    scopes: texts(scopes),
  }
}

/** Undefined if the document has no issuer or no token endpoint. */
export const readIssuerMetadata = (document: Document): IssuerMetadata | undefined => {
  const [issuer, tokenEndpoint] = [text(document.issuer), endpoint(document.token_endpoint)]
  if (issuer === undefined || tokenEndpoint === undefined) return undefined
  return {
    issuer,
    tokenEndpoint,
    authorizationEndpoint: endpoint(document.authorization_endpoint),
    registrationEndpoint: endpoint(document.registration_endpoint),
    revocationEndpoint: endpoint(document.revocation_endpoint),
    scopes: texts(document.scopes_supported),
    authMethods: texts(document.token_endpoint_auth_methods_supported),
    signingAlgorithms: texts(document.token_endpoint_auth_signing_alg_values_supported),
    supportsPkce: texts(document.code_challenge_methods_supported)?.includes('S256') ?? false,
    supportsClientDocuments: document.client_id_metadata_document_supported === true,
    sendsIssuer: document.authorization_response_iss_parameter_supported === true,
  }
}

/** The endpoints of a server without any metadata, as the revision 2025-03-26 has them. */
export const assumedServer = (serverUrl: string): IssuerMetadata => {
  const { origin } = new URL(serverUrl)
  return {
    issuer: origin,
    authorizationEndpoint: `${origin}/authorize`,
    tokenEndpoint: `${origin}/token`,
    registrationEndpoint: `${origin}/register`,
    supportsPkce: true,
    supportsClientDocuments: false,
    sendsIssuer: false,
    isAssumed: true,
  }
}

/** An authorization server without metadata that an API describes; whether it supports PKCE is not known. */
export const declaredServer = ({ authorizationEndpoint, tokenEndpoint }: DeclaredEndpoints): IssuerMetadata => ({
  issuer: new URL(tokenEndpoint).origin,
  authorizationEndpoint,
  tokenEndpoint,
  supportsPkce: false,
  supportsClientDocuments: false,
  sendsIssuer: false,
})

/** Whether a resource covers a URL: the same origin, and the path or a folder above it. */
export const coversUrl = (resource: string, serverUrl: string): boolean => {
  const [covering, url] = [URL.parse(resource), new URL(serverUrl)]
  if (covering?.origin !== url.origin || resource.length > LONGEST_URL) return false
  const folder = covering.pathname.replace(/\/$/, '')
  return url.pathname === folder || url.pathname.startsWith(`${folder}/`)
}

/**
 * Whether users may be led to an authorization endpoint: by https, or where the configuration itself uses http, at the same
 * origin or on this machine. The guarded fetch has the same rule for the gateway.
 */
export const isSafeForUsers = (authorizationEndpoint: string, from: string): boolean => {
  const [url, configured] = [new URL(authorizationEndpoint), new URL(from)]
  if (url.protocol === 'https:' || url.origin === configured.origin) return true
  return isLoopback(url.hostname) && isLoopback(configured.hostname)
}

/** Whether metadata is that of the issuer; an empty path is the same as `/`, and nothing else is normalized. */
export const isSameIssuer = (a: string, b: string): boolean => withRootPath(a) === withRootPath(b)

const withRootPath = (issuer: string): string => (/^[a-z]+:\/\/[^/?#]+$/i.test(issuer) ? `${issuer}/` : issuer)

const WELL_KNOWN = '/.well-known'

/** Where the metadata of a server may be, in order. */
export const resourceLocations = (serverUrl: string): readonly string[] => {
  const { origin, pathname, search } = new URL(serverUrl)
  const root = `${origin}${WELL_KNOWN}/oauth-protected-resource`
  const path = pathname.replace(/\/$/, '') + search
  return path === '' ? [root] : [root + path, root]
}

/** Where the metadata of an issuer may be, in order. */
export const issuerLocations = (issuer: string): readonly string[] => {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const [oauth, openid] = [`${WELL_KNOWN}/oauth-authorization-server`, `${WELL_KNOWN}/openid-configuration`]
  return path === ''
    ? [origin + oauth, origin + openid]
    : [origin + oauth + path, origin + openid + path, origin + path + openid]
}
