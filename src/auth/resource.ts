import { type Auth, acceptsOAuth, type Listen } from '../config/snapshot.ts'
import type { RequestInfo } from '../protocol/admission.ts'
import { hostName, isLoopback } from '../std/host.ts'

// The gateway as an OAuth 2.0 protected resource: its metadata (RFC 9728), its challenges (RFC 6750), and the audiences of its tokens.

const WELL_KNOWN = '/.well-known/oauth-protected-resource'
export const REALM = 'Bearer realm="dragoman"'
const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]']
const DEFAULT_WORKSPACE = 'default'

interface ResourceOptions {
  readonly auth: Auth
  readonly listen: Pick<Listen, 'publicUrl'> & Partial<Pick<Listen, 'host'>>
  readonly port: () => number | undefined // known once the gateway listens
}

/** What a challenge says besides where the metadata is. */
export interface ChallengeParameters {
  readonly error?: 'invalid_token' | 'insufficient_scope'
  readonly description?: string
  readonly scopes?: readonly string[] // default: those that any access needs
}

export type ProtectedResource = ReturnType<typeof createProtectedResource>

export const createProtectedResource = ({ auth, listen: { publicUrl, host = '' }, port }: ResourceOptions) => {
  const isOAuth = acceptsOAuth(auth)
  const rules = [...(auth.scopes ?? [])]
  const baseScopes = rules.filter(([, { tools }]) => tools === undefined).map(([name]) => name)
  /**
   * Those that clients hold already are the last: mcp-remote takes a challenge with all scopes in the order of the document for
   * its own request, and asks for the former scopes again.
   */
  const supportedScopes = [...rules.map(([name]) => name).filter(name => !baseScopes.includes(name)), ...baseScopes]

  /** Where it listens first: there are its documents, and there is its authorization server. */
  const names = isLoopback(host) ? [host.includes(':') ? `[${host}]` : host, ...LOOPBACK_NAMES] : LOOPBACK_NAMES

  /** Without a public URL only this machine reaches the gateway, by any of its names. */
  const origins = (): readonly string[] =>
    publicUrl === undefined ? names.map(name => new URL(`http://${name}:${port() ?? ''}`).origin) : [publicUrl]

  /** SDKs compare the origin of a document with the URL they use, so a loopback name stays the one of the request. */
  const originFor = ({ headers }: RequestInfo): string => {
    const name = hostName(headers.host ?? '')
    const all = origins()
    return all.find(origin => new URL(origin).hostname === name) ?? (all[0] as string)
  }

  /** A document covers URLs below its path only. Aliases of a workspace have other paths: the origin covers them. */
  const documentPath = ({ url = '' }: RequestInfo): string => {
    const [path = '', query = ''] = url.split('?')
    const isCovered = /^\/mcp(\/[^/]+)?(\/|\/sse)?$/.test(path) && !/(^|&)workspace=/.test(query)
    return isCovered ? path.replace(/\/(sse)?$/, '') : ''
  }

  const challenge = (request: RequestInfo, parameters: ChallengeParameters = {}): string => {
    const { error, description, scopes = baseScopes } = parameters
    const metadata = isOAuth ? `${originFor(request)}${WELL_KNOWN}${documentPath(request)}` : undefined
    const pairs: readonly (readonly [string, string | undefined])[] = [
      ['error', error],
      ['error_description', description],
      ['resource_metadata', metadata],
      ['scope', isOAuth && scopes.length > 0 ? scopes.join(' ') : undefined],
    ]
    return [
      REALM,
      ...pairs.flatMap(([name, value]) => (value === undefined ? [] : `${name}="${quotable(value)}"`)),
    ].join(', ')
  }

  return {
    /** Clients reach the gateway over TLS. */
    isEncrypted: publicUrl?.startsWith('https:') ?? false,
    /** The scopes that any access needs. */
    baseScopes,
    challenge,
    /** The challenge for a token that lacks scopes; it names those it holds, too, so that the client does not lose them. */
    scopeChallenge: (request: RequestInfo, held: ReadonlySet<string>, missing: readonly string[]): string => {
      const kept = rules.map(([name]) => name).filter(name => held.has(name))
      return challenge(request, { error: 'insufficient_scope', scopes: [...new Set([...kept, ...missing])] })
    },
    /** Whether a token for these audiences is meant for a workspace: for its URL, or for the whole gateway. */
    isMeantFor: (audiences: readonly string[], workspace: string): boolean => {
      const paths = ['', `/mcp/${encodeURIComponent(workspace)}`, ...(workspace === DEFAULT_WORKSPACE ? ['/mcp'] : [])]
      return origins().some(origin => paths.some(path => audiences.includes(origin + path)))
    },
    /**
     * The metadata document at a path below the well-known one; undefined: there is none. A workspace that does not exist has
     * one, too: names of workspaces are no secret that a caller without a token may find out.
     */
    document: (request: RequestInfo, path: string): object | undefined => {
      const name = path.slice(WELL_KNOWN.length)
      if (!isOAuth || !/^(|\/mcp(\/[^/]+)?)\/?$/.test(name)) return undefined
      const origin = originFor(request)
      return {
        resource: `${origin}${name.replace(/\/$/, '')}`,
        authorization_servers: auth.server ? [origins()[0]] : [...(auth.issuers?.values() ?? [])].map(({ url }) => url),
        ...(rules.length > 0 && { scopes_supported: supportedScopes }),
        bearer_methods_supported: ['header'],
        resource_name: 'Dragoman',
      }
    },
  }
}

/** RFC 6750, 3: values have no quotes, backslashes or characters beyond ASCII. */
const quotable = (text: string): string => text.replace(/["\\]|[^ -~]/g, '?')
