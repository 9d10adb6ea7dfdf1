import { LOGIN_PATHS } from '../../protocol/oauth.ts'
import { issuerPath } from './callback.ts'
import type { IssuerMetadata } from './metadata.ts'

const NAME = 'Dragoman'

/** What the gateway says about itself as a client: in its document, and when it registers. */
const describeClient = (redirectUri: string) => ({
  client_name: NAME,
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  application_type: isLoopbackUri(redirectUri) ? 'native' : 'web',
})

/** OpenID Connect allows web clients https only, and native ones loopback addresses. */
const isLoopbackUri = (uri: string): boolean => {
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

const isFetchable = (origin: string): boolean => new URL(origin).protocol === 'https:'

/**
 * The URL that an authorization server can fetch the gateway's document from; undefined without a public https origin.
 * An issuer with a redirect URI of its own has a document of its own, which allows no other.
 */
export const clientDocumentUrl = (
  origin: string,
  { issuer, sendsIssuer }: Pick<IssuerMetadata, 'issuer' | 'sendsIssuer'>,
): string | undefined => {
  if (!isFetchable(origin)) return undefined
  const { clientDocument, clientDocuments } = LOGIN_PATHS
  return origin + (sendsIssuer ? clientDocument : clientDocuments + issuerPath(issuer))
}

const ISSUER_PATH = /^[\x21-\x7e]{1,500}$/

/** The client metadata document at a path: its URL is the client id, so no registration is needed. */
export const clientDocument = (origin: string, path: string) => {
  const { clientDocument: ofAll, clientDocuments: folder, callback } = LOGIN_PATHS
  const issuer = path.startsWith(folder) ? path.slice(folder.length) : ''
  if (!isFetchable(origin) || (path !== ofAll && !ISSUER_PATH.test(issuer))) return undefined
  return {
    client_id: origin + path,
    client_uri: origin,
    ...describeClient(origin + callback + (path === ofAll ? '' : `/${issuer}`)),
    token_endpoint_auth_method: 'none',
  }
}

/** The request that registers the gateway (RFC 7591). */
export const registrationRequest = (redirectUri: string, method: string, scopes: readonly string[]) => ({
  ...describeClient(redirectUri),
  token_endpoint_auth_method: method,
  software_id: 'dragoman',
  ...(scopes.length > 0 && { scope: scopes.join(' ') }),
})
