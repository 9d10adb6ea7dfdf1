import { expect, onTestFinished, test } from 'vitest'
import type { Issuer, ServerConfig } from '../../../src/config/snapshot.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'
import { TestBrowser } from '../../support/test-browser.ts'
import { startTestIssuer } from '../../support/test-issuer.ts'
import { startGuarded } from '../auth/guarded.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

test('one sign-in at an issuer is enough for a server that takes its assertions, for each user', async () => {
  const server = await startV2()
  const site = await startLoginSite({ upstream: server.url })
  const idp = await startTestIssuer()
  idp.state.interfere = response => {
    const form = idp.state.tokenRequests.at(-1)
    if (form?.get('grant_type') !== EXCHANGE) return false
    const [, payload = ''] = (form.get('subject_token') ?? '').split('.')
    const { sub } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub: string }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ access_token: `assertion-of-${sub}`, token_type: 'N_A', expires_in: 300 }))
    return true
  }
  const corp: Issuer = {
    name: 'corp',
    url: idp.url,
    clientId: 'gateway',
    clientSecret: 'issuer-secret',
    grants: [{ where: {}, workspaces: ['*'] }],
  }
  const remote: ServerConfig = {
    name: 'server',
    disabled: false,
    kind: 'remote',
    url: site.url,
    type: 'auto',
    headers: {},
    era: 'auto',
    timeoutMs: 10_000,
    oauth: { grant: 'id_jag', idp: 'corp', clientId: 'gw', clientSecret: 'site-secret' },
  }
  const gateway = await startGuarded({ server: remote, auth: { required: true, issuers: new Map([['corp', corp]]) } })
  onTestFinished(async () => {
    await gateway.close()
    await site.close()
    await server.close()
    await idp.close()
  })
  const act = async (principal: string) => {
    const { headers } = await gateway.create({ principal })
    return async () => {
      const response = await fetch(`${gateway.origin}/actions/default/echo`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: '{"text":"hi"}',
      })
      return { status: response.status, body: (await response.json()) as { error?: { data: { url: string } } } }
    }
  }
  for (const sub of ['u1', 'u2']) {
    const call = await act(`corp:${sub}`)
    const refused = await call()
    expect(refused.status).toBe(424)
    idp.state.claims = { sub }
    const browser = new TestBrowser(gateway.origin, idp.url)
    const asked = await browser.open(refused.body.error?.data.url ?? '')
    expect(asked.text).not.toContain('name="token"') // an API token would not help
    const done = await browser.follow(asked, 'Continue with corp')
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('Logged in')])
    expect(await call()).toMatchObject({ status: 200 })
  }
  expect([...new Set(site.admitted.map(({ user }) => user))]).toEqual(['assertion-of-u1', 'assertion-of-u2'])
})
