import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { createSecret, createTokenId, hashSecret, type Token } from '../../../src/auth/token.ts'
import { changeTokens, tokenFilePath } from '../../../src/auth/token-file.ts'
import {
  type Auth,
  type AuthServerConfig,
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type ServerConfig,
} from '../../../src/config/snapshot.ts'
import { createTestLog } from '../../support/log.ts'
import { type ShownPage, TestBrowser } from '../../support/test-browser.ts'

type GatewayState = Parameters<typeof startGateway>[1]['state']

/** A token that people sign in with. */
export interface ApiToken {
  readonly id: string
  readonly secret: string
}

interface Options {
  readonly auth?: Omit<Auth, 'server'>
  readonly server?: Partial<AuthServerConfig>
  readonly state?: GatewayState
  readonly data?: string
  readonly upstream?: string // the URL of the server, instead of the demo
  readonly host?: string
}

export const CALLBACK = 'https://app.example/cb'
const VERIFIER = randomBytes(32).toString('base64url')
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

const serverAt = (url: string | undefined): ServerConfig => {
  const common = { name: 'server', disabled: false } as const
  if (url === undefined) return { ...common, kind: 'builtin', builtin: 'demo' }
  return { ...common, kind: 'remote', url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 5000 }
}

/** A gateway with an embedded authorization server on a port of its own: the demo behind `default` and `other`. */
export const startOAuthGateway = async (options: Options = {}) => {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'dragoman-oauth-')))
  const { log, lines, saw } = createTestLog({ isDebug: true })
  const gateway: Gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0, host: options.host ?? DEFAULT_LISTEN.host },
      auth: {
        ...options.auth,
        server: { signIn: ['token'], registration: 'open', clients: new Map(), ...options.server },
      },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
      servers: new Map([['server', serverAt(options.upstream)]]),
      workspaces: new Map(['default', 'other'].map(name => [name, { name, servers: ['server'], ...defaultRules(1) }])),
      warnings: [],
    },
    { log, data, state: options.state },
  )
  const { origin } = gateway

  const changed = async (change: (tokens: readonly Token[]) => readonly Token[]): Promise<void> => {
    const from = lines.length
    await changeTokens(tokenFilePath(data), change)
    await saw(({ message }) => message === 'tokens read', from)
  }

  /** The JSON answer of an endpoint for clients. */
  const post = async (path: string, body: Readonly<Record<string, string>> | string) => {
    const response = await fetch(`${origin}${path}`, {
      method: 'POST',
      body: typeof body === 'string' ? body : new URLSearchParams(body),
      ...(typeof body === 'string' && { headers: { 'content-type': 'application/json' } }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? {} : JSON.parse(text)) as Record<string, string>,
    }
  }

  const register = async (more: object = {}): Promise<string> => {
    const answer = await post(
      '/oauth/register',
      JSON.stringify({ redirect_uris: [CALLBACK], client_name: 'App', ...more }),
    )
    return answer.body.client_id ?? ''
  }

  const authorizeUrl = (client: string, more: Readonly<Record<string, string>> = {}): string =>
    `${origin}/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: client,
      redirect_uri: CALLBACK,
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      state: 'state-1',
      ...more,
    })}`

  const redeem = (client: string, code: string, more: Readonly<Record<string, string>> = {}) =>
    post('/oauth/token', {
      grant_type: 'authorization_code',
      client_id: client,
      code,
      redirect_uri: CALLBACK,
      code_verifier: VERIFIER,
      ...more,
    })

  const browser = (): TestBrowser => new TestBrowser(origin)

  return {
    gateway,
    origin,
    data,
    lines,
    post,
    register,
    authorizeUrl,
    redeem,
    browser,
    refresh: (client: string, token: string) =>
      post('/oauth/token', { grant_type: 'refresh_token', client_id: client, refresh_token: token }),
    createToken: async (more: Partial<Token> = {}): Promise<ApiToken> => {
      const secret = createSecret()
      const id = createTokenId()
      const token = {
        id,
        name: 'test',
        principal: 'ada',
        workspaces: ['*'],
        created: new Date().toISOString(),
        ...more,
      }
      await changed(tokens => [...tokens, { ...token, hash: hashSecret(secret) }])
      return { id, secret }
    },
    revokeToken: ({ id }: ApiToken) => changed(tokens => tokens.filter(token => token.id !== id)),
    /** Opens the URL and signs in; returns the page after that. */
    signIn: async (by: TestBrowser, url: string, { secret }: ApiToken): Promise<ShownPage> =>
      by.submit(await by.open(url), '/oauth/sign-in', { token: secret }),
    close: async () => {
      await gateway.close()
      if (options.data === undefined) await rm(data, { recursive: true, force: true })
    },
  }
}

export type OAuthGateway = Awaited<ReturnType<typeof startOAuthGateway>>

/** Parameters of the response with which a client got its browser back. */
export const responseIn = ({ leftTo }: ShownPage): Record<string, string> =>
  Object.fromEntries(new URL(leftTo ?? 'none:').searchParams)
