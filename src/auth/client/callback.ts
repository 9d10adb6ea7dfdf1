import { LOGIN_PATHS } from '../../protocol/oauth.ts'
import type { IssuerMetadata } from './metadata.ts'

type NamedIssuer = Pick<IssuerMetadata, 'issuer' | 'sendsIssuer'>

/**
 * The redirect URI of a login. An issuer that does not name itself in its responses (RFC 9207) has one of its own: otherwise
 * a hostile issuer could send a browser on to it, and would be given the code that comes back (RFC 9700, section 4.4).
 */
export const callbackUri = (origin: string, authServer: NamedIssuer): string =>
  origin + LOGIN_PATHS.callback + (authServer.sendsIssuer ? '' : `/${issuerPath(authServer.issuer)}`)

/** Every redirect URI that an issuer may have got: it may have begun to name itself. */
export const callbackUris = (origin: string, issuer: string): readonly string[] =>
  [true, false].map(sendsIssuer => callbackUri(origin, { issuer, sendsIssuer }))

/** Whether a browser has ended at the redirect URI of its login. */
export const isCallback = (address: URL, redirectUri: string): boolean =>
  address.pathname === new URL(redirectUri).pathname

/** An issuer as a path: readable, because people enter redirect URIs at authorization servers that register no clients. */
export const issuerPath = (issuer: string): string => {
  const { host, pathname } = new URL(issuer)
  return host.replace(/[[\]]/g, '') + pathname.replace(/\/$/, '')
}
