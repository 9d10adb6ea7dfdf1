import { LOGIN_PATHS } from '../../protocol/oauth.ts'

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

/** The URL that authorization servers can fetch the gateway's document from; undefined without a public https origin. */
export const clientDocumentUrl = (origin: string): string | undefined =>
  new URL(origin).protocol === 'https:' ? origin + LOGIN_PATHS.clientDocument : undefined

/** The client metadata document of the gateway: its URL is the client id, so no registration is needed. */
export const clientDocument = (origin: string) => ({
  client_id: origin + LOGIN_PATHS.clientDocument,
  client_uri: origin,
  ...describeClient(origin + LOGIN_PATHS.callback),
  token_endpoint_auth_method: 'none',
})

/** The request that registers the gateway (RFC 7591). */
export const registrationRequest = (redirectUri: string, method: string, scopes: readonly string[]) => ({
  ...describeClient(redirectUri),
  token_endpoint_auth_method: method,
  software_id: 'dragoman',
  ...(scopes.length > 0 && { scope: scopes.join(' ') }),
})
