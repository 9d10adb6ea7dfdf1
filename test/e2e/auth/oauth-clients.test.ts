import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
  UnauthorizedError as UnauthorizedV2,
} from '@modelcontextprotocol/client'
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type ApiToken, type OAuthGateway, responseIn, startOAuthGateway } from './oauth-gateway.ts'

const REDIRECT = 'http://127.0.0.1:3334/callback'

/** What an SDK keeps of its login. */
interface Kept {
  client?: { readonly client_id: string }
  tokens?: { readonly access_token: string; readonly refresh_token?: string }
  verifier?: string
  visited?: URL
}

let gateway: OAuthGateway
let token: ApiToken
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  gateway = await startOAuthGateway({ auth: { scopes: new Map([['mcp', {}]]) } })
  token = await gateway.createToken()
})
afterEach(async () => {
  vi.useRealTimers()
  await gateway.close()
})

const providerFor = (kept: Kept) => ({
  redirectUrl: REDIRECT,
  clientMetadata: { client_name: 'SDK', redirect_uris: [REDIRECT] },
  clientInformation: () => kept.client,
  saveClientInformation: (client: NonNullable<Kept['client']>) => void Object.assign(kept, { client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens: NonNullable<Kept['tokens']>) => void Object.assign(kept, { tokens }),
  saveCodeVerifier: (verifier: string) => void Object.assign(kept, { verifier }),
  codeVerifier: () => kept.verifier ?? '',
  redirectToAuthorization: (visited: URL) => void Object.assign(kept, { visited }),
})

const SDKS = {
  'SDK v1': (url: string, kept: Kept) => {
    const client = new ClientV1({ name: 'v1', version: '1' })
    const transport = new TransportV1(new URL(url), { authProvider: providerFor(kept) as never })
    return {
      connect: () => client.connect(transport as Transport),
      finish: ({ code = '' }: Record<string, string>) => transport.finishAuth(code),
      tools: async () => (await client.listTools()).tools.length,
      close: () => client.close(),
    }
  },
  'SDK v2': (url: string, kept: Kept) => {
    const client = new ClientV2({ name: 'v2', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    const transport = new TransportV2(new URL(url), { authProvider: providerFor(kept) as never })
    return {
      connect: () => client.connect(transport),
      finish: (response: Record<string, string>) => transport.finishAuth(new URLSearchParams(response)),
      tools: async () => (await client.listTools()).tools.length,
      close: () => client.close(),
    }
  },
}

/** Connects, logs in by the pages of the gateway, and connects again. */
const logIn = async (sdk: keyof typeof SDKS, url: string, kept: Kept = {}) => {
  const first = SDKS[sdk](url, kept)
  await expect(first.connect()).rejects.toSatisfy(
    error => error instanceof UnauthorizedV1 || error instanceof UnauthorizedV2,
  )
  const browser = gateway.browser()
  const consent = await gateway.signIn(browser, kept.visited?.href ?? '', token)
  await first.finish(responseIn(await browser.submit(consent, '/oauth/consent', { decision: 'allow' })))
  await first.close()
  const client = SDKS[sdk](url, kept)
  await client.connect()
  return { client, kept }
}

describe.each(Object.keys(SDKS) as (keyof typeof SDKS)[])('%s', sdk => {
  it('registers, logs in by the pages, lists tools, and refreshes by itself', async () => {
    const { client, kept } = await logIn(sdk, `${gateway.origin}/mcp/other`)
    expect(kept.visited?.searchParams.get('resource')).toBe(`${gateway.origin}/mcp/other`)
    expect(kept.visited?.searchParams.get('scope')).toBe('mcp')
    expect(await client.tools()).toBeGreaterThan(0)
    const { tokens: before } = kept
    vi.setSystemTime(Date.now() + 3600_000)
    expect(await client.tools()).toBeGreaterThan(0)
    expect(kept.tokens?.access_token).not.toBe(before?.access_token)
    expect(kept.tokens?.refresh_token).not.toBe(before?.refresh_token)
    await client.close()
  })

  it('logs in at whatever name of this machine it uses, and wherever the gateway listens', async () => {
    const { client } = await logIn(sdk, `http://localhost:${new URL(gateway.origin).port}/mcp`)
    expect(await client.tools()).toBeGreaterThan(0)
    await client.close()
    const { data, close } = gateway
    gateway = await startOAuthGateway({ host: 'localhost', data })
    const other = await logIn(sdk, `${gateway.origin}/mcp`)
    expect(await other.client.tools()).toBeGreaterThan(0)
    await other.client.close()
    await gateway.close()
    gateway = { ...gateway, close }
  })

  it('may use the workspace that it asked for, and no other', async () => {
    const { client, kept } = await logIn(sdk, `${gateway.origin}/mcp/other`)
    const authorization = `Bearer ${kept.tokens?.access_token}`
    expect((await fetch(`${gateway.origin}/mcp`, { method: 'POST', headers: { authorization } })).status).toBe(403)
    await client.close()
  })

  it('loses its access at once when the API token of the user is revoked', async () => {
    const { client, kept } = await logIn(sdk, `${gateway.origin}/mcp`)
    expect(await client.tools()).toBeGreaterThan(0)
    await gateway.revokeToken(token)
    const authorization = `Bearer ${kept.tokens?.access_token}`
    expect((await fetch(`${gateway.origin}/mcp`, { method: 'POST', headers: { authorization } })).status).toBe(401)
    await client.close()
  })
})
