import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import type { Issuer } from '../../src/config/snapshot.ts'

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>

/** Changes of the answers of a test issuer. */
export interface IssuerFaults {
  keys?: RequestListener | undefined // instead of its keys
  metadata?: RequestListener | undefined // instead of its metadata
  introspection?: RequestListener | undefined // instead of what it says about opaque tokens
}

/** `kid: null`: the token names no key; it is signed with the last one. */
interface SignHeader {
  readonly alg?: string
  readonly kid?: string | null
  readonly typ?: string
}

const SECOND = 1000

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** An identity provider on 127.0.0.1 with discovery, keys and introspection; it signs any claims. */
export const startIssuer = async (path = '') => {
  const faults: IssuerFaults = {}
  const requests: string[] = []
  const opaque = new Map<string, object>()
  const codes = new Map<string, URLSearchParams>()
  const keys: { kid: string; pair: KeyPair; alg: string }[] = []

  const addKey = async (kid: string, alg = 'ES256') => {
    const key = { kid, alg, pair: await generateKeyPair(alg, { extractable: true }) }
    keys.push(key)
    return key
  }
  await addKey('one')

  const json = (response: ServerResponse, value: unknown): void => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(value))
  }
  const sendKeys = async (response: ServerResponse): Promise<void> => {
    const jwks = keys.map(async ({ kid, alg, pair }) => ({
      ...(await exportJWK(pair.publicKey)),
      kid,
      alg,
      use: 'sig',
    }))
    json(response, { keys: await Promise.all(jwks) })
  }
  const introspect = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const token = new URLSearchParams((await bodyOf(request)).toString()).get('token') ?? ''
    requests.push(`token ${token}`)
    const isClient = request.headers.authorization === `Basic ${Buffer.from('rs:s%26cret').toString('base64')}`
    if (isClient) json(response, opaque.get(token) ?? { active: false })
    else response.writeHead(401).end()
  }

  /** Redeems codes of `approve` as an authorization server does: the token is for the resource that was asked for. */
  const redeem = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const code = new URLSearchParams((await bodyOf(request)).toString()).get('code') ?? ''
    const asked = codes.get(code)
    if (!asked) return void response.writeHead(400).end('{"error":"invalid_grant"}')
    const claims = { aud: asked.get('resource') ?? '', scope: asked.get('scope') ?? '', sub: 'ada' }
    json(response, { access_token: await sign(claims), token_type: 'Bearer', expires_in: 300 })
  }

  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const is = (name: string): boolean => request.url?.includes(name) ?? false
    if (is('/.well-known/'))
      return faults.metadata
        ? faults.metadata(request, response)
        : json(response, {
            issuer: url,
            jwks_uri: `${url}/keys`,
            introspection_endpoint: `${url}/introspect`,
            authorization_endpoint: `${url}/authorize`,
            token_endpoint: `${url}/token`,
            registration_endpoint: `${url}/register`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
          })
    if (is('/keys')) return faults.keys ? faults.keys(request, response) : void sendKeys(response)
    if (is('/introspect'))
      return faults.introspection ? faults.introspection(request, response) : void introspect(request, response)
    if (is('/token')) return void redeem(request, response)
    if (is('/register'))
      return json(response, { client_id: 'registered', redirect_uris: ['http://127.0.0.1:3334/callback'] })
    response.writeHead(404).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`

  const sign = async (claims: JWTPayload, header: SignHeader = {}): Promise<string> => {
    const key = header.kid === null ? keys.at(-1) : (keys.find(({ kid }) => kid === header.kid) ?? keys[0])
    const now = Math.floor(Date.now() / SECOND)
    const payload = { iss: url, sub: 'ada', iat: now, exp: now + 300, ...claims }
    const { kid = key?.kid, alg = key?.alg ?? 'ES256', ...rest } = header
    return new SignJWT(JSON.parse(JSON.stringify(payload)) as JWTPayload)
      .setProtectedHeader({ alg, ...(kid && { kid }), ...rest })
      .sign(key?.pair.privateKey as KeyPair['privateKey'])
  }

  return {
    url,
    /** What the browser of a user who agrees comes back with. */
    approve: ({ searchParams }: URL): Record<string, string> => {
      const code = `code-${codes.size}`
      codes.set(code, searchParams)
      return { code, state: searchParams.get('state') ?? '' }
    },
    faults,
    requests,
    opaque,
    keys,
    addKey,
    /** The number of times its keys were fetched. */
    keyFetches: () => requests.filter(each => each.endsWith('/keys')).length,
    /** An entry of `auth.issuers`. */
    config: (more: Partial<Issuer> = {}): Issuer => ({
      name: 'corp',
      url,
      grants: [{ where: {}, workspaces: ['*'] }],
      ...more,
    }),
    /** Signs a token that is valid for five minutes, unless the claims say otherwise. */
    sign,
    close: () =>
      new Promise<void>(resolve => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

export type TestIssuer = Awaited<ReturnType<typeof startIssuer>>
