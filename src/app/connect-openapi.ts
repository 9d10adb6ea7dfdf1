import { resolve } from 'node:path'
import type { OpenapiServer } from '../config/openapi.ts'
import { watchFile } from '../config/watch.ts'
import type { Upstream } from '../protocol/exchange.ts'
import type { DocumentSource } from '../servers/openapi/file-document.ts'
import { fileDocument, MOST_DOCUMENT_BYTES } from '../servers/openapi/file-document.ts'
import { type ApiToolServer, openapiServer } from '../servers/openapi/openapi-server.ts'
import type { DeclaredLogin } from '../servers/openapi/plan.ts'
import { headerValueError } from '../std/header-text.ts'
import type { Log } from '../telemetry/log.ts'
import { type CallerUpstream, connectPerCaller } from '../upstreams/connect-per-caller.ts'
import type { BearerTokens } from '../upstreams/http/authorized-request.ts'
import type { AddressScope } from '../upstreams/http/connections.ts'
import { targetOf } from '../upstreams/http/redirect.ts'
import { connectWithLogins } from '../upstreams/login/connect-with-logins.ts'
import { tokensOf, type UpstreamLogins, withoutTokens } from '../upstreams/login/upstream-logins.ts'
import { ApiClient } from '../upstreams/openapi/api-client.ts'
import { urlDocument } from '../upstreams/openapi/url-document.ts'

interface ConnectOpenapiOptions {
  readonly version: string
  readonly ownPort: () => number | undefined
  readonly logins?: UpstreamLogins | undefined // undefined: the API is called without OAuth
  readonly connectMs?: number | undefined
  readonly log: Log
}

/**
 * Makes a server of an OpenAPI document. Its tools are the same for all callers; the HTTP client of a call is that of its caller,
 * with the credentials that other remote servers would get.
 */
export const connectOpenapi = (
  config: OpenapiServer & { readonly name: string },
  options: ConnectOpenapiOptions,
): Upstream => {
  const { name, document, url, api, headers, personal, timeoutMs } = config
  const { logins, log, version, ownPort, connectMs } = options
  const isFile = !/^https?:/i.test(document)
  const shared = {
    name,
    version,
    timeoutMs,
    ownPort,
    connectMs,
    allowsCrossOrigin: config.allowCrossOriginRedirect,
    log,
  }
  const origin = url === undefined ? undefined : new URL(url).origin
  const accessOf = (tokens: BearerTokens | undefined) =>
    tokens && origin !== undefined ? { tokens: { origin, tokens } } : {}
  const ownTokens = logins && !logins.isPersonal ? tokensOf(logins.credentials, undefined) : undefined

  // The document gets the credentials of the entry only where they are meant for its origin.
  const isAtHome = !isFile && new URL(document).origin === origin
  const reader = new ApiClient({ ...shared, headers: isAtHome ? headers : {}, ...(isAtHome && accessOf(ownTokens)) })
  /** A document from elsewhere must not lead requests to this machine's network, unless it comes from there. */
  const scopeOf = (requested: string): AddressScope | undefined => {
    if (isFile || api.baseUrl !== undefined) return undefined
    const [from, to] = [targetOf(document), targetOf(requested)]
    return reader.http.withScope({ target: from, keepsSecrets: true }, { target: to, keepsSecrets: false }).target.scope
  }
  const source: DocumentSource = isFile
    ? fileDocument(resolve(document), watchFile)
    : urlDocument({ name, url: document, client: reader, mostBytes: MOST_DOCUMENT_BYTES, refreshMs: api.refreshMs })
  const personalHeaders = Object.values(personal?.credentials ?? {}).flatMap(each =>
    each.kind === 'values' ? Object.keys(each.values) : [],
  )
  const setHeaders = [...Object.keys(headers), ...Object.keys(personal?.values ?? {}), ...personalHeaders]
  const server = openapiServer({
    name,
    source,
    settings: { include: api.include, exclude: api.exclude, setHeaders, setQuery: Object.keys(api.query) },
    choice: api,
    origin: {
      ...(!isFile && { url: document }),
      hasCredentials: setHeaders.length > 0 || Object.keys(api.query).length > 0 || Boolean(config.oauth),
    },
    query: api.query,
    log,
    onRead: login => declareLogin(logins, login, url),
  })

  const connect = (own: Readonly<Record<string, string>>, tokens?: BearerTokens): CallerUpstream =>
    callerUpstream(server, new ApiClient({ ...shared, headers: { ...headers, ...own }, ...accessOf(tokens), scopeOf }))
  const upstream = ((): Upstream => {
    if (logins?.isPersonal)
      return connectWithLogins({
        name,
        personal,
        logins,
        connectShared: () => connect({}, withoutTokens(logins)),
        connectOwn: (own, principal) => connect(own, tokensOf(logins.credentials, principal)),
      })
    if (!personal) return connect({}, ownTokens)
    return connectPerCaller({ name, personal, faultOf: headerValueError, connect: own => connect(own, ownTokens) })
  })()
  return {
    ...upstream,
    close: async () => {
      await Promise.all([upstream.close(), server.close()])
      await reader.close()
    },
  }
}

const callerUpstream = (server: ApiToolServer, client: ApiClient): CallerUpstream => ({
  open: caller => server.open(caller, client),
  isIdle: () => client.isIdle,
  close: () => client.close(),
})

/** What the document says about its authorization server is used if that has no metadata. */
const declareLogin = (
  logins: UpstreamLogins | undefined,
  login: DeclaredLogin | undefined,
  url: string | undefined,
): void => {
  if (!login) return
  const [authorization, token] = [login.authorizationUrl, login.tokenUrl].map(each => URL.parse(each, url)?.href)
  if (authorization !== undefined && token !== undefined)
    logins?.credentials.declare?.({ authorizationEndpoint: authorization, tokenEndpoint: token, scopes: login.scopes })
}
