import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createTestLog } from '../../support/log.ts'
import { createBrowser, type ShownPage } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { modern, send } from '../../support/raw.ts'
import { legacy, scriptedServer } from '../../support/scripted-server.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { startTestIssuer } from '../../support/test-issuer.ts'
import { createToken } from '../auth/guarded.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
const kept = <T extends { close(): Promise<unknown> }>(opened: T): T => {
  closing.push(() => opened.close())
  return opened
}

const CALLBACK = 'http://127.0.0.1:1/callback'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const secret = (name: string): string => `${name}-${randomBytes(12).toString('hex')}`

/** A server that repeats the credentials that it was sent wherever it can. */
const startEcho = async () => {
  const answer = legacy((arrived, response) => {
    const { authorization = '' } = arrived.headers
    response.writeHead(500, { 'content-type': 'text/plain', 'x-echo': authorization }).end(`refused ${authorization}`)
  })
  return kept(await scriptedServer(answer))
}

const start = async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-secrets-'))
  closing.push(() => rm(data, { recursive: true, force: true }))
  const known = {
    header: secret('header'),
    issuer: 'issuer-secret', // what the issuer of the tests expects
    machine: secret('machine'),
    workload: secret('workload'),
    assertion: secret('assertion'), // of the issuer, about a person
    reports: secret('reports'),
    argument: secret('argument'),
    wrong: `drg_${secret('wrong')}`,
    refused: secret('state'),
  }
  const [server, issuer, collector, echo] = [
    kept(await startV1()),
    kept(await startTestIssuer()),
    kept(await startOtlpReceiver()),
    await startEcho(),
  ]
  const site = kept(await startLoginSite({ upstream: server.url }))
  issuer.state.claims = { sub: 'u1' }
  issuer.state.interfere = response => {
    if (issuer.state.tokenRequests.at(-1)?.get('grant_type') !== EXCHANGE) return false
    const assertion = { access_token: known.assertion, token_type: 'N_A', expires_in: 300 }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(assertion))
    return true
  }
  const { log, lines } = createTestLog({ isDebug: true })
  const value = {
    mcpServers: {
      far: { url: site.url },
      echo: { url: echo.url, headers: { Authorization: `Bearer ${known.header}` } },
      machine: {
        url: site.url,
        oauth: { grant: 'client_credentials', clientId: 'gw', clientSecret: known.machine },
      },
      workload: { url: site.url, oauth: { grant: 'jwt_bearer', assertion: known.workload } },
      reports: {
        url: site.url,
        oauth: { grant: 'id_jag', idp: 'corp', clientId: 'gw', clientSecret: known.reports },
      },
    },
    auth: {
      issuers: {
        corp: {
          url: issuer.url,
          clientId: 'gateway',
          clientSecret: known.issuer,
          grants: [{ where: {}, workspaces: ['*'] }],
        },
      },
      server: { signIn: ['token', 'corp'] },
    },
    audit: true,
    telemetry: { endpoint: collector.url },
    limits: { shutdownMs: 200 },
  }
  const { headers: api } = await createToken(data, { principal: 'ada' })
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
  return { origin: gateway.origin, api, known, site, issuer, output }
}

/** Collects what a browser is given: cookies, handles of forms, and codes in the URLs that it is led to. */
const createWatched = () => {
  const browser = createBrowser('ada@site')
  const secrets: string[] = []
  const seen = (page: ShownPage): ShownPage => {
    for (const cookie of page.headers['set-cookie'] ?? []) secrets.push(/=([^;]*)/.exec(cookie)?.[1] ?? '')
    for (const [, handle = ''] of page.text.matchAll(/name="handle" value="([^"]+)"/g)) secrets.push(handle)
    for (const name of ['code', 'state', 'handle']) {
      const location = page.headers.location === undefined ? undefined : new URL(page.headers.location, page.url)
      secrets.push(location?.searchParams.get(name) ?? '', new URL(page.url).searchParams.get(name) ?? '')
    }
    return page
  }
  const visit = async (url: string, form?: Readonly<Record<string, string>>, isOwnLink = false): Promise<ShownPage> => {
    let page = seen(await browser.send(url, form, isOwnLink))
    for (let hops = 0; hops < 20 && page.headers.location !== undefined; hops++) {
      const next = new URL(page.headers.location, page.url).href
      if (next.startsWith(CALLBACK)) break
      page = seen(await browser.send(next))
    }
    return page
  }
  return { visit, secrets }
}

const handleIn = ({ text }: ShownPage): string => /name="handle" value="([^"]+)"/.exec(text)?.[1] ?? 'no handle'

test('nothing secret is in the log at debug level, in the audit log, or in what telemetry exports, after all flows', async () => {
  const { origin, api, known, site, issuer, output } = await start()
  const secrets: string[] = [...Object.values(known), api.authorization.replace('Bearer ', '')]
  const act = async (headers: Readonly<Record<string, string>>, tool: string, args: object = {}) => {
    const response = await fetch(`${origin}/actions/default/${tool}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(args),
    })
    const body = (await response.json()) as { error?: { data?: { url?: string } } }
    return { status: response.status, url: body.error?.data?.url ?? '' }
  }
  const post = async (path: string, form: Readonly<Record<string, string>>) =>
    (await (await fetch(`${origin}${path}`, { method: 'POST', body: new URLSearchParams(form) })).json()) as Record<
      string,
      string
    >

  // Towards a server: login, call, refresh, a callback with a foreign state.
  const browser = createWatched()
  const asked = await act(api, 'far__echo', { text: known.argument })
  expect(asked.status).toBe(424)
  secrets.push(asked.url.slice(asked.url.lastIndexOf('/') + 1))
  const signIn = await browser.visit(asked.url)
  const token = api.authorization.replace('Bearer ', '')
  const signedIn = await browser.visit(`${origin}/oauth/sign-in`, { handle: handleIn(signIn), token })
  const next = /url=([^"]+)"/.exec(signedIn.text)?.[1] ?? ''
  expect((await browser.visit(new URL(next, origin).href)).text).toContain('Logged in')
  expect((await act(api, 'far__echo', { text: known.argument })).status).toBe(200)
  site.expire()
  expect((await act(api, 'far__echo', { text: known.argument })).status).toBe(200)
  expect(site.counts.refreshes).toBe(1)
  expect((await browser.visit(`${origin}/oauth/callback?code=x&state=${known.refused}`)).status).toBe(404)

  // Servers that repeat credentials, and those without a browser.
  expect((await act(api, 'echo__any')).status).toBeGreaterThanOrEqual(400)
  for (const name of ['machine', 'workload'])
    expect([name, (await act(api, `${name}__echo`, { text: known.argument })).status]).toEqual([name, 200])

  // Towards clients: registration, consent, tokens, refresh, revocation; sign-in at an issuer.
  const [verifier, state] = [randomBytes(32).toString('base64url'), secret('client-state')]
  const registered = await fetch(`${origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [CALLBACK], client_name: 'App' }),
  })
  const { client_id: client = '' } = (await registered.json()) as Record<string, string>
  const authorize = `${origin}/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: CALLBACK,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state,
  })}`
  const connect = async (by: ReturnType<typeof createWatched>, consent: ShownPage) => {
    const allowed = await by.visit(`${origin}/oauth/consent`, { handle: handleIn(consent), decision: 'allow' })
    const code = new URL(allowed.headers.location ?? 'none:').searchParams.get('code') ?? ''
    const form = { grant_type: 'authorization_code', client_id: client, code, redirect_uri: CALLBACK }
    const tokens = await post('/oauth/token', { ...form, code_verifier: verifier })
    expect(tokens.access_token).toMatch(/^dro_/)
    secrets.push(code, tokens.access_token ?? '', tokens.refresh_token ?? '')
    return tokens
  }
  const tokens = await connect(browser, await browser.visit(authorize))
  const bearer = { authorization: `Bearer ${tokens.access_token}` }
  expect((await act(bearer, 'far__echo', { text: known.argument })).status).toBe(200)
  const refresh = { grant_type: 'refresh_token', client_id: client, refresh_token: tokens.refresh_token ?? '' }
  const renewed = await post('/oauth/token', refresh)
  secrets.push(renewed.access_token ?? '', renewed.refresh_token ?? '')
  await fetch(`${origin}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ token: renewed.refresh_token ?? '', client_id: client }),
  })
  const other = createWatched()
  const offered = await other.visit(authorize)
  const link = /href="(\/oauth\/sign-in\/corp[^"]*)"/.exec(offered.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const consent = await other.visit(`${origin}${link}`, undefined, true)
  expect(consent.text).toContain('/oauth/consent')
  const person = { authorization: `Bearer ${(await connect(other, consent)).access_token}` }
  expect((await act(person, 'reports__echo', { text: known.argument })).status).toBe(200)
  expect(site.admitted.at(-1)?.user).toBe(known.assertion)
  for (const form of issuer.state.tokenRequests)
    for (const name of ['code', 'code_verifier', 'subject_token', 'refresh_token']) secrets.push(form.get(name) ?? '')
  for (const query of issuer.state.authorizations) secrets.push(query.get('state') ?? '', query.get('nonce') ?? '')

  // What is refused: an unknown token, a token that is none, a wrong code.
  for (const wrong of [known.wrong, `${known.refused}.${known.refused}.${known.refused}`, `dro_${known.refused}`])
    expect((await act({ authorization: `Bearer ${wrong}` }, 'far__echo')).status).toBe(401)
  await post('/oauth/token', { grant_type: 'refresh_token', client_id: client, refresh_token: known.refused })
  await send(`${origin}/mcp`, {
    ...modern(1, 'tools/call', { name: 'far__echo', arguments: { text: known.argument } }),
    headers: { ...modern(1, 'tools/call', { name: 'far__echo' }).headers, ...api },
  })

  secrets.push(verifier, state, ...browser.secrets, ...other.secrets, ...site.secrets)
  const searched = [...new Set(secrets)].filter(text => text.length >= 8)
  expect(searched.length).toBeGreaterThan(40)
  const found = Object.entries(await output()).flatMap(([where, text]) => {
    expect(text.length, where).toBeGreaterThan(500)
    return searched.filter(each => text.includes(each)).map(each => `${where}: ${each}`)
  })
  expect(found).toEqual([])
})
