import { UnauthorizedError as UnauthorizedV2 } from '@modelcontextprotocol/client'
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type KeptLogin, OAUTH_SDKS } from '../../support/oauth-sdks.ts'
import { type ApiToken, type OAuthGateway, responseIn, startOAuthGateway } from './oauth-gateway.ts'

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

/** Connects, logs in by the pages of the gateway, and connects again. */
const logIn = async (sdk: keyof typeof OAUTH_SDKS, url: string, kept: KeptLogin = {}) => {
  const first = OAUTH_SDKS[sdk](url, kept)
  await expect(first.connect()).rejects.toSatisfy(
    error => error instanceof UnauthorizedV1 || error instanceof UnauthorizedV2,
  )
  const browser = gateway.browser()
  const consent = await gateway.signIn(browser, kept.visited?.href ?? '', token)
  await first.finish(responseIn(await browser.submit(consent, '/oauth/consent', { decision: 'allow' })))
  await first.close()
  const client = OAUTH_SDKS[sdk](url, kept)
  await client.connect()
  return { client, kept }
}

describe.each(Object.keys(OAUTH_SDKS) as (keyof typeof OAUTH_SDKS)[])('%s', sdk => {
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

it('SDK v1: the stream of its session ends with the API token of the user, and is not opened again', async () => {
  const statuses: number[] = [] // of requests for a stream
  const send = globalThis.fetch
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, options) => {
    const response = await send(url, options)
    if (options?.method === 'GET' && String(url).endsWith('/mcp')) statuses.push(response.status)
    return response
  })
  onTestFinished(() => void vi.restoreAllMocks())
  const { client } = await logIn('SDK v1', `${gateway.origin}/mcp`)
  await expect.poll(() => statuses).toEqual([200])
  await gateway.revokeToken(token)
  await expect.poll(() => statuses, { timeout: 10_000 }).toEqual([200, 401]) // it tries again when its stream has ended
  await client.close()
})
