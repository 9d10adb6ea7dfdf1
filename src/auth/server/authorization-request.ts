import type { ScopeRule } from '../../config/snapshot.ts'
import { isLoopback } from '../../std/host.ts'
import type { OAuthClient } from './client-metadata.ts'
import { isRegisteredRedirect } from './redirect-uris.ts'

/** A valid authorization request. */
export interface AuthorizationRequest {
  readonly client: OAuthClient
  readonly redirectUri: string
  readonly state: string | undefined
  readonly challenge: string
  readonly scopes: readonly string[]
  readonly workspace: string | undefined // undefined: every workspace that the visitor may use
  readonly prompts: readonly string[]
}

/** `shown`: nothing may be sent to the redirect URI. `answered`: the client is to be told, by its redirect URI. */
export type RequestReading =
  | { readonly kind: 'valid'; readonly request: AuthorizationRequest }
  | { readonly kind: 'shown'; readonly text: string }
  | {
      readonly kind: 'answered'
      readonly redirectUri: string
      readonly state: string | undefined
      readonly code: string
      readonly text: string
    }

/** What requests are compared with. */
export interface RequestContext {
  readonly origin: string
  readonly scopes: ReadonlyMap<string, ScopeRule>
  /** The workspace at a path of the gateway; undefined if that is no path for MCP. */
  readonly workspaceAt: (path: string) => string | undefined
}

const CHALLENGE = /^[\w-]{43}$/
const LONGEST_STATE = 1024
const SCOPES = /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/

/** Parameters that RFC 6749 allows once; `resource` may be repeated. */
export const findRepeated = (params: URLSearchParams): string | undefined =>
  [...new Set(params.keys())].find(name => name !== 'resource' && params.getAll(name).length > 1)

/** Reads an authorization request of a known client. */
export const readAuthorizationRequest = (
  params: URLSearchParams,
  client: OAuthClient,
  context: RequestContext,
): RequestReading => {
  const repeated = findRepeated(params)
  if (repeated !== undefined && ['client_id', 'redirect_uri', 'state'].includes(repeated))
    return { kind: 'shown', text: `The request has more than one "${repeated}".` }
  const redirectUri = params.get('redirect_uri') ?? onlyOne(client.redirectUris)
  if (redirectUri === undefined) return { kind: 'shown', text: 'The request has no "redirect_uri".' }
  if (!isRegisteredRedirect(client.redirectUris, redirectUri))
    return {
      kind: 'shown',
      text: `The client is not allowed to lead you to ${redirectUri.slice(0, 200)}: it is none of its redirect URIs.`,
    }
  const state = params.get('state') ?? undefined
  const answer = (code: string, text: string): RequestReading => ({
    kind: 'answered',
    redirectUri,
    state: state?.slice(0, LONGEST_STATE),
    code,
    text,
  })
  if (repeated !== undefined) return answer('invalid_request', `more than one "${repeated}"`)
  if (state !== undefined && state.length > LONGEST_STATE)
    return answer('invalid_request', `"state" is longer than ${LONGEST_STATE} characters`)
  const wrong = findUnsupported(params)
  if (wrong) return answer(...wrong)
  const target = readResourceTarget(params.getAll('resource'), context)
  if (!target) return answer('invalid_target', `"resource" must be a URL of this gateway, like ${context.origin}/mcp`)
  const asked = params.get('scope') ?? ''
  if (asked !== '' && !SCOPES.test(asked)) return answer('invalid_scope', '"scope" has invalid characters')
  const request = {
    client,
    redirectUri,
    state,
    challenge: params.get('code_challenge') ?? '',
    scopes: grantedScopes(asked.split(' '), context.scopes),
    workspace: target.workspace,
    prompts: (params.get('prompt') ?? '').split(' ').filter(Boolean),
  }
  return { kind: 'valid', request }
}

const onlyOne = <T>(items: readonly T[]): T | undefined => (items.length === 1 ? items[0] : undefined)

/** What this server does not do: a code of RFC 6749 or OpenID Connect, and a text. */
const findUnsupported = (params: URLSearchParams): readonly [code: string, text: string] | undefined => {
  const type = params.get('response_type')
  if (type === null) return ['invalid_request', '"response_type" is missing: it must be "code"']
  if (type !== 'code') return ['unsupported_response_type', '"response_type" must be "code"']
  if (params.has('request')) return ['request_not_supported', 'request objects are not supported']
  if (params.has('request_uri')) return ['request_uri_not_supported', 'request objects are not supported']
  if ((params.get('response_mode') ?? 'query') !== 'query')
    return ['invalid_request', '"response_mode" must be "query"']
  const challenge = params.get('code_challenge')
  if (challenge === null) return ['invalid_request', '"code_challenge" is missing: PKCE is required']
  if (params.get('code_challenge_method') !== 'S256')
    return ['invalid_request', '"code_challenge_method" must be "S256"']
  if (!CHALLENGE.test(challenge)) return ['invalid_request', '"code_challenge" must have 43 characters of base64url']
  return undefined
}

/** Any access needs the scopes without tools: they are granted in any case. Unknown ones, such as `offline_access`, are left out. */
const grantedScopes = (asked: readonly string[], known: ReadonlyMap<string, ScopeRule>): readonly string[] =>
  [...known].flatMap(([name, { tools }]) => (tools === undefined || asked.includes(name) ? [name] : []))

/** What `resource` parameters (RFC 8707) stand for; undefined if they are not of this gateway, or contradict each other. */
export const readResourceTarget = (
  resources: readonly string[],
  context: Pick<RequestContext, 'origin' | 'workspaceAt'>,
): { readonly workspace: string | undefined } | undefined => {
  const found = new Set<string | undefined>()
  for (const resource of resources) {
    const url = URL.canParse(resource) ? new URL(resource) : undefined
    if (!url || !isSameOrigin(url, new URL(context.origin)) || url.hash !== '') return undefined
    const workspace = url.pathname === '/' ? undefined : context.workspaceAt(`${url.pathname}${url.search}`)
    if (url.pathname !== '/' && workspace === undefined) return undefined
    found.add(workspace)
  }
  if (found.size > 1) return undefined
  return { workspace: [...found][0] }
}

/** On this machine `localhost` and the loopback addresses are the same gateway. */
const isSameOrigin = (url: URL, own: URL): boolean =>
  url.origin === own.origin ||
  (url.protocol === own.protocol && url.port === own.port && isLoopback(url.hostname) && isLoopback(own.hostname))
