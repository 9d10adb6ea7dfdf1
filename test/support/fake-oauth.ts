import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** One request to the authorization server or to the server it protects. */
interface SeenRequest {
  readonly method: string
  readonly path: string // without the query
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly form: URLSearchParams // also of a JSON body, as far as it has texts
  readonly body: string
}

type Answer = (request: SeenRequest, response: ServerResponse) => void

const listen = async (handler: RequestListener): Promise<string> => {
  const server = createServer(handler)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const readAll = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

export const sendJson = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

/**
 * An authorization server on a real socket. It grants what it is asked for; a test replaces answers by path, changes
 * its metadata, and reads what was requested. Refresh tokens are rotated: one that was used is refused.
 */
export const startFakeIssuer = async () => {
  const requests: SeenRequest[] = []
  const answers = new Map<string, Answer>() // by path, instead of those below
  const codes = new Map<string, URLSearchParams>() // the authorization request of each code
  const refreshTokens = new Map<string, URLSearchParams>() // valid ones
  const accessTokens = new Map<string, { readonly scope: string; readonly endsAt: number }>()
  const settings = {
    lifetimeS: 3600 as number | undefined,
    rotates: true,
    path: '',
    sendsIss: true,
    rejectsReuse: true,
  }
  const metadata: Record<string, unknown> = {}
  let count = 0

  const nameOf = (kind: string): string => `${kind}-${++count}-${randomBytes(8).toString('hex')}`

  const issueTokens = (
    response: ServerResponse,
    granted: URLSearchParams,
    scope = granted.get('scope') ?? '',
  ): void => {
    const [access, refresh] = [nameOf('access'), nameOf('refresh')]
    const { lifetimeS } = settings
    accessTokens.set(access, { scope, endsAt: Date.now() + (lifetimeS ?? 1e9) * 1000 })
    if (settings.rotates) refreshTokens.set(refresh, granted)
    sendJson(response, {
      access_token: access,
      token_type: 'Bearer',
      ...(lifetimeS !== undefined && { expires_in: lifetimeS }),
      ...(settings.rotates && { refresh_token: refresh }),
      ...(scope !== '' && { scope }),
    })
  }

  const grants: Readonly<Record<string, Answer>> = {
    authorization_code: ({ form }, response) => {
      const code = codes.get(form.get('code') ?? '')
      codes.delete(form.get('code') ?? '')
      const challenge = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url')
      const isRight = code?.get('code_challenge') === challenge && code.get('redirect_uri') === form.get('redirect_uri')
      if (code && isRight) issueTokens(response, code)
      else sendJson(response, { error: 'invalid_grant', error_description: 'wrong code' }, 400)
    },
    refresh_token: ({ form }, response) => {
      const token = form.get('refresh_token') ?? ''
      const granted = refreshTokens.get(token)
      if (!granted) return sendJson(response, { error: 'invalid_grant' }, 400)
      if (settings.rejectsReuse) refreshTokens.delete(token)
      issueTokens(response, granted)
    },
    client_credentials: ({ form }, response) => issueTokens(response, form),
    'urn:ietf:params:oauth:grant-type:jwt-bearer': ({ form }, response) => issueTokens(response, form),
  }

  const routes: Readonly<Record<string, Answer>> = {
    '/register': ({ body }, response) => {
      const { token_endpoint_auth_method: method } = JSON.parse(body) as Record<string, string>
      const secret = method === 'none' ? {} : { client_secret: nameOf('secret') }
      sendJson(response, { client_id: nameOf('client'), token_endpoint_auth_method: method, ...secret }, 201)
    },
    '/authorize': ({ query }, response) => {
      const code = nameOf('code')
      codes.set(code, query)
      const back = new URL(query.get('redirect_uri') ?? '')
      back.searchParams.set('code', code)
      back.searchParams.set('state', query.get('state') ?? '')
      if (settings.sendsIss) back.searchParams.set('iss', origin + settings.path)
      response.writeHead(302, { location: back.href }).end()
    },
    '/token': (request, response) => {
      const grant = grants[request.form.get('grant_type') ?? '']
      if (grant) grant(request, response)
      else sendJson(response, { error: 'unsupported_grant_type' }, 400)
    },
    '/revoke': ({ form }, response) => {
      refreshTokens.delete(form.get('token') ?? '')
      accessTokens.delete(form.get('token') ?? '')
      response.end()
    },
  }

  const documentOf = () => ({
    issuer: origin + settings.path,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    revocation_endpoint: `${origin}/revoke`,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    authorization_response_iss_parameter_supported: settings.sendsIss,
    ...metadata,
  })

  const origin = await listen((request, response) => {
    void readAll(request).then(body => {
      const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://x')
      const seen = { method: request.method ?? '', path: pathname, query, headers: request.headers, body }
      const full = { ...seen, form: new URLSearchParams(body) }
      requests.push(full)
      const answer = answers.get(pathname) ?? routes[pathname]
      if (answer) return answer(full, response)
      if (pathname === `/.well-known/oauth-authorization-server${settings.path}`)
        return sendJson(response, documentOf())
      response.writeHead(404).end()
    })
  })

  return {
    origin,
    /** The issuer that its metadata states. */
    issuer: () => origin + settings.path,
    settings,
    metadata,
    answers,
    requests,
    routes,
    accessTokens,
    refreshTokens,
    /** How often a path was requested; of the token endpoint, with this grant. */
    count: (path: string, grant?: string): number =>
      requests.filter(each => each.path === path && (grant === undefined || each.form.get('grant_type') === grant))
        .length,
  }
}

export type FakeIssuer = Awaited<ReturnType<typeof startFakeIssuer>>

/** A server at `/mcp` that accepts the access tokens of an issuer; `scope` is what a call needs. */
export const startProtectedServer = async (first: FakeIssuer) => {
  const requests: SeenRequest[] = []
  const state = {
    issuer: first,
    metadataPath: '/.well-known/oauth-protected-resource/mcp',
    scope: undefined as string | undefined, // named in the challenge
    stepUp: undefined as string | undefined, // refused with 403 without it
    metadata: {} as Record<string, unknown>, // besides what is needed
    hasMetadata: true,
    namesMetadata: true, // in the challenge
  }
  const answers = new Map<string, Answer>()
  const document = () => ({
    resource: `${origin}/mcp`,
    authorization_servers: [state.issuer.issuer()],
    ...state.metadata,
  })

  const origin = await listen((request, response) => {
    void readAll(request).then(body => {
      const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://x')
      const seen = { method: request.method ?? '', path: pathname, query, headers: request.headers, body }
      const full = { ...seen, form: new URLSearchParams(body) }
      requests.push(full)
      const answer = answers.get(pathname)
      if (answer) return answer(full, response)
      if (pathname === state.metadataPath && state.hasMetadata) return sendJson(response, document())
      if (pathname !== '/mcp') return response.writeHead(404).end()
      const challenge = challengeFor(request.headers.authorization)
      if (challenge) return response.writeHead(challenge.status, { 'www-authenticate': challenge.header }).end()
      sendJson(response, { jsonrpc: '2.0', id: 1, result: {} })
    })
  })

  const challengeFor = (authorization = ''): { readonly status: number; readonly header: string } | undefined => {
    const token = state.issuer.accessTokens.get(authorization.replace(/^Bearer /, ''))
    const named = state.namesMetadata && state.hasMetadata ? `, resource_metadata="${origin}${state.metadataPath}"` : ''
    if (!token || token.endsAt <= Date.now())
      return { status: 401, header: `Bearer realm="x"${named}${state.scope ? `, scope="${state.scope}"` : ''}` }
    if (state.stepUp && !token.scope.split(' ').includes(state.stepUp))
      return { status: 403, header: `Bearer error="insufficient_scope", scope="${state.stepUp}"${named}` }
    return undefined
  }

  return { origin, url: `${origin}/mcp`, state, answers, requests }
}
