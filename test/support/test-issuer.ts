import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface PendingCode {
  readonly challenge: string
  readonly redirectUri: string
  readonly nonce: string | null
}

/** A small identity provider on loopback: whoever opens its authorization endpoint is signed in with `claims` at once. */
export const startTestIssuer = async ({ givesRefreshTokens = true } = {}) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const codes = new Map<string, PendingCode>()
  const refreshTokens = new Set<string>()
  const state = {
    claims: { sub: 'u1', name: 'Ada' } as Record<string, unknown>,
    userinfo: {} as Record<string, unknown>,
    /** Answers token requests instead of the issuer, if it returns true. */
    interfere: undefined as ((response: ServerResponse) => boolean) | undefined,
    metadata: {} as Record<string, unknown>,
    nonce: undefined as string | undefined, // instead of the one of the request
    tokenRequests: [] as URLSearchParams[],
    authorizations: [] as URLSearchParams[],
  }

  const idToken = (nonce: string | null): string => {
    const now = Math.floor(Date.now() / 1000)
    const payload = { iss: url, aud: 'gateway', iat: now, exp: now + 300, ...(nonce && { nonce }), ...state.claims }
    const head = [{ alg: 'ES256', kid: 'k1' }, payload]
      .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    return `${head}.${sign('sha256', Buffer.from(head), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }

  const issue = (nonce: string | null, isOpenId = true) => {
    const refresh = randomBytes(12).toString('hex')
    if (givesRefreshTokens) refreshTokens.add(refresh)
    return {
      access_token: 'issuer-access',
      token_type: 'Bearer',
      expires_in: 300,
      ...(isOpenId && { id_token: idToken(nonce) }),
      ...(givesRefreshTokens && { refresh_token: refresh }),
    }
  }

  const tokensFor = (form: URLSearchParams): object | undefined => {
    const refresh = form.get('refresh_token')
    if (refresh !== null) return refreshTokens.delete(refresh) ? issue(null) : undefined
    const pending = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isValid = pending?.challenge === challenge && pending.redirectUri === form.get('redirect_uri')
    return pending && isValid ? issue(state.nonce ?? pending.nonce, pending.nonce !== null) : undefined
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', url)
    const send = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (pathname === '/.well-known/openid-configuration')
      return send(200, {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        userinfo_endpoint: `${url}/userinfo`,
        scopes_supported: ['openid', 'email', 'offline_access'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
        id_token_signing_alg_values_supported: ['ES256'],
        ...state.metadata,
      })
    if (pathname === '/authorize') {
      const code = randomBytes(12).toString('hex')
      const redirectUri = searchParams.get('redirect_uri') ?? ''
      state.authorizations.push(searchParams)
      codes.set(code, {
        challenge: searchParams.get('code_challenge') ?? '',
        redirectUri,
        nonce: searchParams.get('nonce'),
      })
      const answer = new URLSearchParams({ code, state: searchParams.get('state') ?? '' })
      return void response.writeHead(302, { location: `${redirectUri}?${answer}` }).end()
    }
    if (pathname === '/userinfo') return send(200, state.userinfo)
    if (pathname !== '/token') return send(404, {})
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const form = new URLSearchParams(Buffer.concat(chunks).toString())
    state.tokenRequests.push(form)
    if (state.interfere?.(response)) return
    const tokens = tokensFor(form)
    send(tokens ? 200 : 400, tokens ?? { error: 'invalid_grant' })
  }

  const server = createServer((request, response) => void serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    state,
    /** Forgets every session. */
    revokeAll: () => refreshTokens.clear(),
    close: async (): Promise<void> => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export type TestIssuer = Awaited<ReturnType<typeof startTestIssuer>>
