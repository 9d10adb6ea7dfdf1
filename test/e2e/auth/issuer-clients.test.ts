import { UnauthorizedError as UnauthorizedV2 } from '@modelcontextprotocol/client'
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startIssuer, type TestIssuer } from '../../support/issuer.ts'
import { type KeptLogin, OAUTH_SDKS } from '../../support/oauth-sdks.ts'
import { type Guarded, startGuarded } from './guarded.ts'

let issuer: TestIssuer
let gateway: Guarded
beforeEach(async () => {
  issuer = await startIssuer('/realms/corp')
  gateway = await startGuarded({
    auth: {
      issuers: new Map([['corp', issuer.config()]]),
      scopes: new Map([
        ['mcp', {}],
        ['mcp:write', { tools: ['*/example-*'] }],
      ]),
    },
  })
})
afterEach(async () => {
  await gateway.close()
  await issuer.close()
})

const isUnauthorized = (error: unknown): boolean => error instanceof UnauthorizedV1 || error instanceof UnauthorizedV2

describe.each(Object.keys(OAUTH_SDKS) as (keyof typeof OAUTH_SDKS)[])('%s', sdk => {
  const open = async (url: string) => {
    const kept: KeptLogin = {}
    const first = OAUTH_SDKS[sdk](url, kept)
    await expect(first.connect()).rejects.toSatisfy(isUnauthorized)
    await first.finish(issuer.approve(kept.visited as URL))
    await first.close()
    const client = OAUTH_SDKS[sdk](url, kept)
    await client.connect()
    return { client, kept }
  }

  it('finds the issuer by itself, logs in there, and steps up for a tool that needs more', async () => {
    const { client, kept } = await open(gateway.other)
    expect(kept.visited?.href).toContain(`${issuer.url}/authorize?`)
    expect(kept.visited?.searchParams.get('resource')).toBe(gateway.other)
    expect(kept.visited?.searchParams.get('scope')).toBe('mcp')
    expect(await client.tools()).toBeGreaterThan(0)

    await expect(client.call('example-ping')).rejects.toSatisfy(isUnauthorized)
    expect(kept.visited?.searchParams.get('scope')).toBe('mcp mcp:write')
    await client.finish(issuer.approve(kept.visited as URL))
    expect(await client.call('example-ping')).toMatchObject({ content: [{ text: 'pong' }] })
    await client.close()
  })

  it('finds it by an alias of the URL, too', async () => {
    const { client, kept } = await open(`${gateway.origin}/other/mcp`)
    expect(kept.visited?.searchParams.get('resource')).toMatch(new RegExp(`^${gateway.origin}/?$`))
    expect(await client.tools()).toBeGreaterThan(0)
    await client.close()
  })

  it('finds it by the loopback name that it uses', async () => {
    const { client } = await open(gateway.url.replace('127.0.0.1', 'localhost'))
    expect(await client.tools()).toBeGreaterThan(0)
    await client.close()
  })
})
