import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
  UnauthorizedError as UnauthorizedV2,
} from '@modelcontextprotocol/client'
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'

/** What a client keeps of its login. */
export interface KeptLogin {
  client?: { client_id: string }
  tokens?: { access_token: string; refresh_token?: string; token_type: string; scope?: string }
}

/** A client of an SDK that logs in by itself when it is told to. */
export interface LoginClient {
  readonly kept: KeptLogin
  /** How often a person had to open a link. */
  links(): number
  tools(): Promise<string[]>
  call(name: string, given?: Record<string, unknown>): Promise<string>
  close(): Promise<void>
}

/** Opens an authorization request as a person; the address that the browser is sent to at last. */
export type Visit = (request: URL, redirect: string) => Promise<URL>

/** Connects an SDK client with its own OAuth code; a person opens the links it has. */
export const connectWithLogin = async (
  kind: 'SDK v1' | 'SDK v2',
  url: string,
  visit: Visit,
  { keepsRefreshToken = true } = {},
): Promise<LoginClient> => {
  const callback = await startCallback()
  const kept: KeptLogin & { verifier?: string; discovery?: unknown } = {}
  let links = 0
  let arrived: Promise<URL> | undefined
  const authProvider = {
    redirectUrl: callback.redirect,
    clientMetadata: {
      client_name: `${kind} <script>alert(1)</script>`,
      redirect_uris: [callback.redirect],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    state: () => randomUUID(),
    clientInformation: () => kept.client,
    saveClientInformation: (client: { client_id: string }) => {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens: ({ refresh_token, ...tokens }: NonNullable<KeptLogin['tokens']>) => {
      kept.tokens = keepsRefreshToken && refresh_token ? { ...tokens, refresh_token } : tokens
    },
    saveCodeVerifier: (verifier: string) => {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier ?? '',
    saveDiscoveryState: (state: unknown) => {
      kept.discovery = state
    },
    discoveryState: () => kept.discovery,
    redirectToAuthorization: (request: URL) => {
      links++
      arrived = visit(request, callback.redirect)
      arrived.catch(() => undefined)
    },
  }
  const make = {
    'SDK v1': () => {
      const client = new ClientV1({ name: 'login-v1', version: '1.0.0' })
      const transport = new TransportV1(new URL(url), { authProvider: authProvider as never })
      return { client, connect: () => client.connect(transport as Transport), transport }
    },
    'SDK v2': () => {
      const client = new ClientV2(
        { name: 'login-v2', version: '1.0.0' },
        { versionNegotiation: { mode: { pin: '2026-07-28' } } },
      )
      const transport = new TransportV2(new URL(url), { authProvider: authProvider as never })
      return { client, connect: () => client.connect(transport), transport }
    },
  }[kind]
  let current = make()
  /** The person logs in where that was the reason of a failure, and the client connects again. */
  const logIn = async (error: unknown): Promise<void> => {
    const isLogin = error instanceof UnauthorizedV1 || error instanceof UnauthorizedV2
    if (!isLogin || !arrived) throw error
    const { searchParams } = await arrived
    arrived = undefined
    const code = searchParams.get('code')
    if (!code) throw new Error(`No code came back: ${searchParams}`)
    if (kind === 'SDK v1') await current.transport.finishAuth(code)
    else await (current.transport as TransportV2).finishAuth(searchParams)
    await current.client.close()
    current = make()
    await current.connect()
  }
  const withLogin = <Value>(act: () => Promise<Value>): Promise<Value> =>
    act().catch(async error => {
      await logIn(error)
      return act()
    })
  await current.connect().catch(logIn)
  return {
    kept,
    links: () => links,
    tools: () => withLogin(async () => (await current.client.listTools()).tools.map(({ name }) => name)),
    call: (name, given = {}) =>
      withLogin(async () => {
        const { content } = await current.client.callTool({ name, arguments: given })
        return (content as { text?: string }[]).map(({ text }) => text ?? '').join('\n')
      }),
    close: async () => {
      await current.client.close()
      await callback.close()
    },
  }
}

/** Where the browser ends: a page of the client. */
const startCallback = async (): Promise<{ redirect: string; close(): Promise<void> }> => {
  const server = createServer((_, response) => response.end('You are logged in.'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    redirect: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}
