import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { startIssuer } from '../../support/issuer.ts'
import { createTestLog } from '../../support/log.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
const kept = <T extends { close(): Promise<unknown> }>(opened: T): T => {
  closing.push(() => opened.close())
  return opened
}
const secret = (name: string): string => `${name}-${randomBytes(12).toString('hex')}`

const start = async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-secrets-'))
  closing.push(() => rm(data, { recursive: true, force: true }))
  const [server, issuer, collector] = [
    kept(await startV1()),
    kept(await startIssuer()),
    kept(await startOtlpReceiver()),
  ]
  const scopeOf = ({ params }: { params?: { name?: string } }) => (params?.name === 'echo' ? 'write' : undefined)
  const [site, stepping] = [
    kept(await startLoginSite({ upstream: server.url })),
    kept(await startLoginSite({ upstream: server.url, scopeOf })),
  ]
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const own = { client: secret('client'), introspection: 's&cret' } // the latter is what the issuer expects
  const value = {
    mcpServers: {
      keyed: { url: site.url, oauth: { grant: 'client_credentials', clientId: 'gw', privateKey: pem } },
      far: { url: stepping.url, oauth: { clientId: 'gw', clientSecret: own.client } },
    },
    auth: {
      issuers: {
        corp: {
          url: issuer.url,
          audience: 'gateway',
          grants: [{ workspaces: ['*'] }],
          introspection: { clientId: 'rs', clientSecret: own.introspection },
        },
      },
    },
    audit: true,
    telemetry: { endpoint: collector.url },
    limits: { shutdownMs: 200 },
  }
  const { log, lines } = createTestLog({ isDebug: true })
  const snapshot = await loadConfig({ value, env: { OTEL_BSP_SCHEDULE_DELAY: '10' }, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log, data, version: '1' })
  closing.push(gateway.close)
  /** Everything that has left the gateway for its operator. */
  const output = async (): Promise<Readonly<Record<string, string>>> => {
    await gateway.close()
    return {
      log: JSON.stringify(lines, (_, value) =>
        value instanceof Error ? [value.message, value.stack, value.cause] : value,
      ),
      audit: await readFile(join(data, 'audit.jsonl'), 'utf8'),
      telemetry: collector.texts.join('\n'),
    }
  }
  const secrets = [own.client, ...pem.split('\n').filter(line => line.length > 40)]
  return { gateway, origin: gateway.origin, issuer, site, stepping, secrets, output }
}

type Headers = Readonly<Record<string, string>>

test('nothing secret of issuers, keys, step-ups and the console is in the log, the audit log or telemetry', async () => {
  const { gateway, origin, issuer, site, stepping, secrets, output } = await start()
  const bearer = (token: string): Headers => {
    secrets.push(token)
    return { authorization: `Bearer ${token}` }
  }
  const request = async (method: string, path: string, headers: Headers, body?: object) => {
    const sent = { ...headers, 'content-type': 'application/json' }
    const response = await fetch(origin + path, { method, headers: sent, ...(body && { body: JSON.stringify(body) }) })
    for (const cookie of response.headers.getSetCookie()) secrets.push(/=([^;]*)/.exec(cookie)?.[1] ?? '')
    const text = await response.text()
    return { status: response.status, response, body: text ? JSON.parse(text) : {} }
  }
  const act = (headers: Headers, tool: string) =>
    request('POST', `/actions/default/${tool}`, headers, { message: 'hello', text: 'hello' })

  // Tokens of an issuer, valid and not: JWTs, and opaque ones by introspection.
  const [jwt, opaque] = [await issuer.sign({ aud: 'gateway', email: secret('mail') }), secret('opaque')]
  issuer.opaque.set(opaque, { active: true, sub: 'ben', aud: 'gateway' })
  const [ada, ben] = [bearer(jwt), bearer(opaque)]
  expect([(await act(ada, 'keyed__echo')).status, (await act(ben, 'keyed__echo')).status]).toEqual([200, 200])
  const refused = [
    await issuer.sign({ aud: 'another' }),
    await issuer.sign({ aud: 'gateway', exp: 1 }),
    await issuer.sign({ aud: 'gateway', nonce: secret('nonce') }),
    `${jwt.slice(0, -20)}${'A'.repeat(20)}`,
    secret('unknown'),
  ]
  for (const token of refused) expect((await act(bearer(token), 'keyed__echo')).status).toBe(401)
  issuer.faults.introspection = (_, response) => void response.writeHead(500).end(opaque)
  expect((await act(bearer(secret('unchecked')), 'keyed__echo')).status).toBe(503)

  // The console: a link, its cookie, tokens that its pages create and use, and links that are wrong.
  const code = /code=(.+)$/.exec(gateway.createConsoleLink().url)?.[1] ?? ''
  const wrong = secret('code')
  secrets.push(code, wrong)
  expect((await request('POST', '/admin/session', { origin }, { code: wrong })).status).toBe(401)
  const { response, body: session } = await request('POST', '/admin/session', { origin }, { code })
  secrets.push(session.csrf, session.mcpToken)
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const page = { cookie, origin, 'x-dragoman-csrf': session.csrf as string }
  expect((await act(bearer(session.mcpToken), 'keyed__echo')).status).toBe(200)
  const created = await request('POST', '/admin/tokens', page, { name: 'laptop', principal: 'corp:ada' })
  expect(created.body.secret).toMatch(/^drg_/)
  const api = bearer(created.body.secret)
  expect((await act(api, 'keyed__echo')).status).toBe(200)

  // A client of the configuration, and one more login for more scopes; the owner ends it.
  for (const tool of ['far__add', 'far__echo']) {
    const asked = await act(api, tool)
    expect(asked.status).toBe(424)
    const begun = await request('POST', '/admin/logins/begin', page, { server: 'far', principal: 'corp:ada' })
    expect(begun.body.url).toBe(asked.body.error.data.url)
    secrets.push(begun.body.id)
    const opened = await request('POST', '/admin/logins/open', page, { id: begun.body.id, principal: 'corp:ada' })
    const { location = '' } = (await createBrowser('ada@site').send(opened.body.url)).headers
    const ended = { address: location, principal: 'corp:ada' }
    expect((await request('POST', '/admin/logins/finish', page, ended)).status).toBe(200)
    expect((await request('POST', '/admin/logins/finish', page, ended)).status).toBe(422) // it was used
  }
  expect((await act(api, 'far__echo')).status).toBe(200)
  expect((await request('POST', '/admin/logins/end', page, { server: 'far', principal: 'corp:ada' })).body).toEqual({
    wasPresent: true,
    isRevoked: true,
  })
  expect((await request('DELETE', `/admin/tokens/${created.body.token.id}`, page)).status).toBe(200)
  expect((await act(api, 'keyed__echo')).status).toBe(401)
  expect((await request('DELETE', '/admin/session', page)).status).toBe(204)

  secrets.push(...site.secrets, ...stepping.secrets)
  const searched = [...new Set(secrets)].filter(text => typeof text === 'string' && text.length >= 8)
  expect(searched.length).toBeGreaterThan(25)
  const found = Object.entries(await output()).flatMap(([where, text]) => {
    expect(text, where).toContain('corp:ada') // what is no secret is there
    return searched.filter(each => text.includes(each)).map(each => `${where}: ${each}`)
  })
  expect(found).toEqual([])
})
