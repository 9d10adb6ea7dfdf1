import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that the protected server was sent with a valid token. */
interface Admitted {
  readonly user: string
  readonly method: string | undefined // of the JSON-RPC message
  readonly session: string | undefined
  readonly text: string
}

interface Issued {
  readonly user: string
  readonly scope: string
  readonly expires: number
}

interface Pending extends Issued {
  readonly challenge: string
  readonly redirectUri: string
  readonly client: string
}

export interface LoginSiteOptions {
  readonly upstream: string // the MCP server behind it
  readonly lifetimeMs?: number // of access tokens
  readonly scopeOf?: (message: { method?: string; params?: { name?: string } }) => string | undefined // that a message needs
  readonly isOpen?: (message: { method?: string; params?: { name?: string } }) => boolean // messages that need no token
  readonly path?: string // of the MCP server
  readonly refusal?: () => string // what it says to browsers without a user; nothing when absent
  readonly hasMetadata?: boolean // false: as in 2025-03-26, its endpoints have their default paths
  readonly metadata?: object // further members of that of the authorization server
  readonly isLoud?: boolean // the MCP server repeats the token that it refuses
}

/** How the token endpoint refuses what it was sent, and where it repeats that. */
type LoudRefusal = (sent: string, response: ServerResponse) => void

/**
 * A small authorization server, and an MCP server that takes its tokens only: a proxy in front of a real one. Browsers say
 * who they are with the cookie `user`.
 */
export const startLoginSite = async (options: LoginSiteOptions) => {
  const { upstream, lifetimeMs = 3_600_000, scopeOf = () => undefined, isOpen = () => false } = options
  const { hasMetadata = true, isLoud = false } = options
  const target = new URL(upstream)
  const path = options.path ?? target.pathname
  const access = new Map<string, Issued>()
  const refresh = new Map<string, Issued>()
  const codes = new Map<string, Pending>()
  const admitted: Admitted[] = []
  const refused: { token: string | undefined; method: string | undefined }[] = []
  const secrets: string[] = [] // that it has issued or was sent
  const counts = { registrations: 0, refreshes: 0, revocations: 0 }
  let origin = ''
  let refusal: LoudRefusal | undefined

  const issue = ({ user, scope }: Pick<Issued, 'user' | 'scope'>) => {
    const [accessToken, refreshToken] = [`at-${user}-${randomUUID()}`, `rt-${user}-${randomUUID()}`]
    secrets.push(accessToken, refreshToken)
    access.set(accessToken, { user, scope, expires: Date.now() + lifetimeMs })
    refresh.set(refreshToken, { user, scope, expires: Number.POSITIVE_INFINITY })
    return {
      access_token: accessToken,
      refresh_token: refreshToken,
      token_type: 'Bearer',
      expires_in: Math.ceil(lifetimeMs / 1000),
      scope,
    }
  }

  const authorize = (query: URLSearchParams, request: IncomingMessage, response: ServerResponse): void => {
    const user = /(?:^|; )user=([^;]+)/.exec(request.headers.cookie ?? '')?.[1]
    const back = new URL(query.get('redirect_uri') ?? '')
    back.searchParams.set('state', query.get('state') ?? '')
    back.searchParams.set('iss', origin)
    if (user === undefined) {
      back.searchParams.set('error', 'access_denied')
      if (options.refusal) back.searchParams.set('error_description', options.refusal())
    } else {
      const code = randomUUID()
      secrets.push(code, query.get('state') ?? '')
      codes.set(code, {
        user,
        scope: query.get('scope') ?? '',
        expires: 0,
        challenge: query.get('code_challenge') ?? '',
        redirectUri: query.get('redirect_uri') ?? '',
        client: query.get('client_id') ?? '',
      })
      back.searchParams.set('code', code)
    }
    response.writeHead(302, { location: back.href }).end()
  }

  const token = (form: URLSearchParams, response: ServerResponse): void => {
    secrets.push(form.get('client_assertion') ?? '')
    if (form.get('grant_type') === 'refresh_token') {
      const known = refresh.get(form.get('refresh_token') ?? '')
      if (!known) return send(response, 400, { error: 'invalid_grant' })
      refresh.delete(form.get('refresh_token') ?? '')
      counts.refreshes++
      return send(response, 200, issue(known))
    }
    const assertion = form.get('assertion') // names the user, because it comes from an issuer that the site trusts
    if (assertion !== null) return send(response, 200, issue({ user: assertion, scope: '' }))
    if (form.get('grant_type') === 'client_credentials')
      return send(response, 200, issue({ user: 'machine', scope: '' }))
    secrets.push(form.get('code_verifier') ?? '')
    const pending = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isValid = pending?.challenge === challenge && pending.redirectUri === form.get('redirect_uri')
    if (!pending || !isValid) return send(response, 400, { error: 'invalid_grant' })
    send(response, 200, issue(pending))
  }

  const register = (body: string, response: ServerResponse): void => {
    counts.registrations++
    send(response, 201, { ...JSON.parse(body), client_id: `client-${counts.registrations}` })
  }

  const revoke = (form: URLSearchParams, response: ServerResponse): void => {
    counts.revocations++
    access.delete(form.get('token') ?? '')
    refresh.delete(form.get('token') ?? '')
    response.writeHead(200).end()
  }

  const challenge = (response: ServerResponse, status: number, more = ''): void => {
    if (!hasMetadata) return void response.writeHead(status).end()
    response
      .writeHead(status, {
        'www-authenticate': `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource${path}"${more}`,
      })
      .end(isLoud ? `refused ${more}` : undefined)
  }

  const protect = (body: Buffer, request: IncomingMessage, response: ServerResponse): void => {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    const found = bearer === undefined ? undefined : access.get(bearer)
    const message = body.length > 0 ? (JSON.parse(body.toString()) as { method?: string }) : {}
    const isKnown = found !== undefined && found.expires > Date.now()
    if (!isKnown && !(bearer === undefined && isOpen(message))) {
      refused.push({ token: bearer, method: message.method })
      const said = isLoud ? `, error_description="${bearer} is not valid"` : ''
      return challenge(response, 401, bearer === undefined ? '' : `, error="invalid_token"${said}`)
    }
    const scope = scopeOf(message)
    if (scope !== undefined && !found?.scope.split(' ').includes(scope))
      return challenge(response, 403, `, error="insufficient_scope", scope="${scope}"`)
    const session = request.headers['mcp-session-id']
    admitted.push({
      user: found?.user ?? '',
      method: message.method,
      session: String(session ?? '') || undefined,
      text: body.toString(),
    })
    forward(target, body, request, response)
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', origin)
    void read(request).then(body => {
      const form = new URLSearchParams(body.toString())
      if (!hasMetadata && url.pathname.startsWith('/.well-known/')) return void response.writeHead(404).end()
      switch (url.pathname) {
        case `/.well-known/oauth-protected-resource${path}`:
          return send(response, 200, { resource: `${origin}${path}`, authorization_servers: [origin] })
        case '/.well-known/oauth-authorization-server':
          return send(response, 200, { ...metadataOf(origin), ...options.metadata })
        case '/authorize':
          return authorize(url.searchParams, request, response)
        case '/token':
          secrets.push(decodedCredentials(request.headers.authorization))
          return refusal ? refusal(sentSecrets(form, request), response) : token(form, response)
        case '/register':
          return register(body.toString(), response)
        case '/revoke':
          return revoke(form, response)
        default:
          if (url.pathname.startsWith('/.well-known/')) return void response.writeHead(404).end()
          return protect(body, request, response)
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${origin}${path}`,
    origin,
    admitted,
    refused,
    secrets,
    counts,
    /** Access tokens stop working; refresh tokens too, if `isAll`. */
    expire: (isAll = false): void => {
      access.clear()
      if (isAll) refresh.clear()
    },
    /** Token requests are refused in this way from now on. */
    refuseLoudly: (next: LoudRefusal | undefined): void => {
      refusal = next
    },
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** What a token request proves itself with. */
const sentSecrets = (form: URLSearchParams, { headers }: IncomingMessage): string =>
  [...SECRET_FIELDS.flatMap(name => form.get(name) ?? []), decodedCredentials(headers.authorization)].join(' ')

const SECRET_FIELDS = ['code', 'code_verifier', 'refresh_token', 'client_secret', 'client_assertion', 'assertion']

/** The secret of a client in a Basic header. */
const decodedCredentials = (authorization = ''): string =>
  Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
    .toString()
    .split(':')[1] ?? ''

const metadataOf = (origin: string): object => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
  revocation_endpoint: `${origin}/revoke`,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
  authorization_response_iss_parameter_supported: true,
})

const read = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const send = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(JSON.stringify(body))
}

const forward = (target: URL, body: Buffer, incoming: IncomingMessage, outgoing: ServerResponse): void => {
  const { authorization: _, host: __, ...headers } = incoming.headers
  const onward = request(
    { host: target.hostname, port: target.port, path: incoming.url, method: incoming.method, headers },
    response => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers)
      outgoing.flushHeaders()
      response.pipe(outgoing)
      response.on('error', () => outgoing.destroy())
    },
  )
  onward.on('error', () => outgoing.destroy())
  outgoing.on('close', () => onward.destroy())
  onward.end(body)
}
