import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { SessionInfo } from '../../../src/admin/api/session.ts'
import { createSecret, hashSecret, type Token } from '../../../src/auth/token.ts'
import { encodeTokens } from '../../../src/auth/token-file.ts'
import { axe, type ConsoleSite, describeConsole } from '../../support/console.ts'

type Headers = Readonly<Record<string, string>>

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** A request with any header, also those that `fetch` does not let through. */
const send = (origin: string, method: string, path: string, headers: Headers = {}, body?: object): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(`${origin}${path}`, { method, headers }, response => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })

const infoOf = ({ text }: Answer): SessionInfo => JSON.parse(text) as SessionInfo
const codeIn = (url: string): string => /code=(.+)$/.exec(url)?.[1] ?? ''

/** A browser as far as cookies and its own headers go. */
const signIn = async (site: ConsoleSite, credentials: object) => {
  const answer = await send(site.origin, 'POST', '/admin/session', { origin: site.origin }, credentials)
  const cookie = answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  const csrf = answer.status === 200 ? (infoOf(answer).csrf ?? '') : ''
  return { answer, cookie, csrf, own: { cookie, origin: site.origin, 'x-dragoman-csrf': csrf } }
}
const signInByLink = (site: ConsoleSite) => signIn(site, { code: codeIn(site.gateway.createConsoleLink().url) })

/** The rows of the tables of endpoints, as they are written. */
const endpointsOfSources = (): string[] => {
  const folder = new URL('../../../src/admin/', import.meta.url)
  const texts = readdirSync(folder)
    .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map(file => readFileSync(new URL(file, folder), 'utf8'))
  const rows = [...texts.join('\n').matchAll(/method: '(\w+)'(?: as const)?,\s+path: ['`](\/admin\/[^'`]+)['`]/g)]
  return rows.flatMap(([, method = '', path = '']) =>
    path.includes('${action}')
      ? ['start', 'stop', 'restart', 'retry'].map(action => `${method} ${path.replace('${action}', action)}`)
      : [`${method} ${path}`],
  )
}

describeConsole('a session of the console', site => {
  test('a link signs in as the owner, once', async () => {
    const { url } = site.gateway.createConsoleLink()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#\/overview\?code=[\w-]{100,200}$/)
    const { answer } = await signIn(site, { code: codeIn(url) })
    expect(infoOf(answer)).toMatchObject({ role: 'owner', principal: 'local', needsToken: false })
    expect(infoOf(answer).mcpToken).toBeUndefined()
    const port = new URL(site.origin).port
    expect(answer.headers['set-cookie']?.[0]).toMatch(
      new RegExp(`^dragoman-console-${port}=[\\w-]+; Max-Age=43200; Path=/admin; HttpOnly; SameSite=Strict$`),
    )
    const again = await signIn(site, { code: codeIn(url) })
    expect([again.answer.status, again.answer.text]).toEqual([401, expect.stringContaining('no longer valid')])
  })

  test('the cookie is secure where the request came by TLS', async () => {
    const code = codeIn(site.gateway.createConsoleLink().url)
    const headers = { origin: site.origin, 'x-forwarded-proto': 'https' }
    const { headers: got } = await send(site.origin, 'POST', '/admin/session', headers, { code })
    expect(got['set-cookie']?.[0]).toMatch(
      /^__Host-dragoman-console=[\w-]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    )
  })

  test('with the cookie, changes need the header and the same origin', async () => {
    const { cookie, own } = await signInByLink(site)
    const post = async (headers: Headers) => (await send(site.origin, 'POST', '/admin/session/link', headers)).status
    expect(await post(own)).toBe(200)
    const { 'x-dragoman-csrf': _, ...without } = own
    expect(await post(without)).toBe(403)
    expect(await post({ ...own, 'x-dragoman-csrf': 'wrong' })).toBe(403)
    expect(await post({ cookie, 'x-dragoman-csrf': own['x-dragoman-csrf'] })).toBe(403)
    for (const origin of [
      'https://evil.example',
      'http://localhost:1',
      'null',
      site.origin.replace('127.0.0.1', 'localhost'),
    ])
      expect(await post({ ...own, origin }), origin).toBe(403)
    for (const fetchSite of ['cross-site', 'same-site'])
      expect(await post({ ...own, 'sec-fetch-site': fetchSite }), fetchSite).toBe(403)
    expect((await send(site.origin, 'GET', '/admin/status', { cookie })).status).toBe(200)
  })

  test('another site cannot sign a user in', async () => {
    const { url } = site.gateway.createConsoleLink()
    const body = { code: codeIn(url) }
    for (const origin of ['https://evil.example', 'http://localhost:1'])
      expect((await send(site.origin, 'POST', '/admin/session', { origin }, body)).status).toBe(403)
    expect((await signIn(site, body)).answer.status).toBe(200)
  })

  test('signing out ends the session, also for a copy of its cookie', async () => {
    const { cookie, own } = await signInByLink(site)
    const out = await send(site.origin, 'DELETE', '/admin/session', own)
    expect([out.status, out.headers['set-cookie']?.[0]]).toEqual([204, expect.stringContaining('Max-Age=0')])
    expect(infoOf(await send(site.origin, 'GET', '/admin/session', { cookie }))).toMatchObject({ role: 'viewer' })
    expect((await send(site.origin, 'POST', '/admin/session/link', own)).status).toBe(403)
  })

  test.each([
    [{}, 400],
    [{ token: 'x', code: 'y' }, 400],
    [{ token: 5 }, 400],
    [{ other: 'x' }, 400],
    [{ token: 'drg_unknown' }, 409],
    [{ code: 'unknown' }, 401],
  ])('the credentials %j get a clear answer', async (credentials, status) => {
    const { answer } = await signIn(site, credentials)
    expect(answer.status).toBe(status)
    expect((JSON.parse(answer.text) as { error: { message: string } }).error.message.length).toBeGreaterThan(20)
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  test.each([
    [{ host: 'evil.example' }],
    [{ origin: 'https://evil.example' }],
    [{ origin: 'null' }],
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }],
  ])('%j is forbidden at every endpoint', async headers => {
    for (const path of ['/admin/status', '/admin/session', '/admin/events', '/admin/openapi.json'])
      expect((await send(site.origin, 'GET', path, headers)).status, path).toBe(403)
  })

  test('no page may frame the console, and none of another host gets it', async () => {
    const { status, headers } = await send(site.origin, 'GET', '/', { accept: 'text/html' })
    expect(status).toBe(200)
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(headers['x-frame-options']).toBe('DENY')
    expect((await send(site.origin, 'GET', '/', { accept: 'text/html', host: 'evil.example' })).status).toBe(403)
    const page = await site.openConsole('overview')
    site.allow(/frame-ancestors|X-Frame-Options|chrome-error|Failed to load|Framing/i)
    const isShown = await page.evaluate<boolean>(`new Promise(done => {
      const frame = document.createElement('iframe')
      frame.onload = () => { try { done(frame.contentDocument?.querySelector('#app') != null) } catch { done(false) } }
      frame.src = location.origin + '/'
      document.body.append(frame)
    })`)
    expect(isShown).toBe(false)
  })

  test('the OpenAPI document is valid and lists every endpoint', async () => {
    const answer = await send(site.origin, 'GET', '/admin/openapi.json')
    const document = JSON.parse(answer.text) as { openapi: string; paths: Record<string, object> }
    expect(document.openapi).toBe('3.1.0')
    expect(await new Validator().validate(document)).toEqual({ valid: true })
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(method => `${method.toUpperCase()} ${path}`),
    )
    expect(described.toSorted()).toEqual([...endpointsOfSources(), 'GET /admin/openapi.json'].toSorted())
  })

  test('in a browser the link signs in and leaves the address, also in a tab that is open', async () => {
    const page = await site.openConsole('recorder', { as: 'viewer' })
    await page.goto(site.gateway.createConsoleLink().url)
    await page.getByRole('button', { name: 'Signed in as local' }).waitFor()
    expect(page.url()).toBe(`${site.origin}/#/overview`)
    expect(await page.evaluate<string>('document.cookie')).toBe('')
    await page.reload()
    await page.getByRole('button', { name: 'Signed in as local' }).waitFor()
  })

  test('a link that was used shows why, and the page stays', async () => {
    const { url } = site.gateway.createConsoleLink()
    await signIn(site, { code: codeIn(url) })
    site.allow(/401/)
    const page = await site.openConsole(url.slice(url.indexOf('#/') + 2), { as: 'viewer' })
    await page.getByText('This link is no longer valid').waitFor()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(page.url()).toBe(`${site.origin}/#/overview`)
  })
})

describeConsole('the rate of requests', site => {
  test('a caller that sends too many requests is told when to go on', async () => {
    const { cookie } = await signInByLink(site)
    const read = () => send(site.origin, 'GET', '/admin/session', { cookie })
    vi.useFakeTimers({ toFake: ['Date'] }) // on a slow machine, too, they are of the same second
    const answers: Answer[] = []
    for (let at = 0; at < 600; at++) answers.push(await read())
    vi.useRealTimers()
    expect(answers[0]?.status).toBe(200)
    expect(answers.at(-1)?.status).toBe(429)
    expect(Number(answers.at(-1)?.headers['retry-after'])).toBeGreaterThan(0)
  })
})

describe('with tokens', () => {
  const secrets = { admin: createSecret(), plain: createSecret(), limited: createSecret() }
  const tokenOf = (name: keyof typeof secrets, more: Partial<Token> = {}): Token => ({
    id: name,
    name,
    hash: hashSecret(secrets[name]),
    principal: name,
    workspaces: ['*'],
    created: new Date().toISOString(),
    ...more,
  })
  const ALL = [tokenOf('admin', { admin: true }), tokenOf('plain'), tokenOf('limited', { workspaces: ['demo'] })]
  const write = (data: string, tokens: readonly Token[]) =>
    writeFile(join(data, 'tokens.json'), encodeTokens(tokens), { mode: 0o600 })

  describeConsole(
    'a session of the console',
    site => {
      afterEach(() => write(site.data, ALL))
      const revoke = async (id: string): Promise<void> => {
        await write(
          site.data,
          ALL.filter(token => token.id !== id),
        )
        await expect
          .poll(async () => (await send(site.origin, 'GET', '/admin/status', bearer(id))).status, { timeout: 5000 })
          .toBe(401)
      }
      const bearer = (id: string): Headers => ({ authorization: `Bearer ${secrets[id as keyof typeof secrets]}` })
      const accepts = async (id: string): Promise<void> => {
        await expect
          .poll(async () => (await send(site.origin, 'GET', '/admin/status', bearer(id))).status, { timeout: 5000 })
          .toBe(200)
      }

      test('the role is that of the token', async () => {
        await accepts('admin')
        expect(infoOf((await signIn(site, { token: secrets.admin })).answer)).toMatchObject({
          role: 'owner',
          principal: 'admin',
          needsToken: true,
        })
        const plain = await signIn(site, { token: secrets.plain })
        expect(infoOf(plain.answer)).toMatchObject({ role: 'viewer', principal: 'plain' })
        expect((await send(site.origin, 'POST', '/admin/session/link', plain.own)).status).toBe(403)
        expect((await send(site.origin, 'POST', '/admin/session/link', bearer('admin'))).status).toBe(200)
        expect((await signIn(site, { token: secrets.limited })).answer.status).toBe(403)
        expect((await signIn(site, { token: createSecret() })).answer.status).toBe(401)
      })

      test('the token of the session is accepted by /mcp, for the same principal, and by nothing after it was revoked', async () => {
        await accepts('plain')
        const { answer, cookie } = await signIn(site, { token: secrets.plain })
        const { mcpToken = '' } = infoOf(answer)
        expect(mcpToken).not.toContain(secrets.plain)
        const call = async () =>
          fetch(`${site.origin}/mcp`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${mcpToken}`,
              'content-type': 'application/json',
              accept: 'application/json, text/event-stream',
            },
            body: JSON.stringify({
              jsonrpc: '2.0',
              id: 1,
              method: 'initialize',
              params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
            }),
          })
        expect((await call()).status).toBe(200)
        await revoke('plain')
        expect((await call()).status).toBe(401)
        expect(infoOf(await send(site.origin, 'GET', '/admin/session', { cookie }))).toMatchObject({ role: 'none' })
        expect((await send(site.origin, 'GET', '/admin/status', { cookie })).status).toBe(401)
      })

      test('the token of the session is for MCP only, and ends when the user signs out', async () => {
        await accepts('admin')
        const { answer, own } = await signIn(site, { token: secrets.admin })
        const { mcpToken = '' } = infoOf(answer)
        const headers = { authorization: `Bearer ${mcpToken}` }
        const status = async (method: string, path: string, body?: object) =>
          (await send(site.origin, method, path, headers, body)).status
        expect(await status('GET', '/actions/openapi.json')).toBe(200)
        for (const path of ['/admin/status', '/admin/tokens', '/metrics']) expect(await status('GET', path)).toBe(403)
        expect(await status('POST', '/admin/tokens', { name: 'stolen', admin: true })).toBe(403)
        expect((await signIn(site, { token: mcpToken })).answer.status).toBe(403)
        expect(infoOf(await send(site.origin, 'GET', '/admin/session', headers))).toMatchObject({ role: 'none' })
        expect((await send(site.origin, 'DELETE', '/admin/session', own)).status).toBe(204)
        expect(await status('GET', '/actions/openapi.json')).toBe(401)
      })

      test('an expired token brings the sign-in form, and then the same place', async () => {
        await accepts('admin')
        site.allow(/401|ERR_|Failed to load/)
        const page = await site.openConsole('configuration', { as: 'viewer' })
        await page.getByRole('heading', { name: 'Sign in to Dragoman' }).waitFor()
        expect(await axe(page)).toEqual([])
        const field = page.getByLabel('API token')
        await field.fill('drg_wrong')
        await field.press('Enter')
        await page.getByText('unknown or revoked').waitFor()
        await field.fill(secrets.admin)
        await field.press('Enter')
        await page.getByRole('heading', { name: 'Configuration' }).waitFor()
        await page.goto(`${site.origin}/#/overview/demo`)
        await page.getByRole('heading', { name: 'Overview' }).waitFor()
        await revoke('admin')
        await page.getByText('Your session has ended').waitFor()
        await write(site.data, ALL)
        await accepts('admin')
        await page.getByLabel('API token').fill(secrets.admin)
        await page.getByLabel('API token').press('Enter')
        await page.getByRole('heading', { name: 'Overview' }).waitFor()
        expect(page.url()).toBe(`${site.origin}/#/overview/demo`)
      })

      test('wrong tokens are limited', async () => {
        let last = 0
        for (let at = 0; at < 40 && last !== 429; at++)
          last = (await signIn(site, { token: createSecret() })).answer.status
        expect(last).toBe(429)
        await accepts('admin')
        expect((await signIn(site, { token: secrets.admin })).answer.status).toBe(200)
      })
    },
    { prepare: data => write(data, ALL) },
  )
})

describeConsole('a session of an API token', site => {
  test('a session ends when the API token that opened it expires: its events and its MCP token, too', async () => {
    const secret = createSecret()
    const expires = new Date(Date.now() + 8000).toISOString()
    const token: Token = {
      ...{ id: 'short', name: 'short', hash: hashSecret(secret), principal: 'ann', workspaces: ['*'], admin: true },
      ...{ created: new Date().toISOString(), expires },
    }
    await writeFile(join(site.data, 'tokens.json'), encodeTokens([token]), { mode: 0o600 })
    const signedIn = async () => (await signIn(site, { token: secret })).answer.status
    await expect.poll(signedIn, { timeout: 2000, interval: 50 }).toBe(200)
    const { answer, cookie } = await signIn(site, { token: secret })
    const { mcpToken = '' } = infoOf(answer)
    const call = async (): Promise<number> => {
      const headers = {
        authorization: `Bearer ${mcpToken}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      }
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
      return (await fetch(`${site.origin}/mcp/demo`, { method: 'POST', headers, body })).status
    }
    expect(await call()).toBe(200)
    const feed = await fetch(`${site.origin}/admin/events`, { headers: { cookie } })
    expect(feed.status).toBe(200)
    const read = async (): Promise<void> => {
      for await (const _ of feed.body ?? []); // until it ends
    }
    await read().catch(() => {}) // the connection is closed
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires))
    expect(await call()).toBe(401)
    expect(infoOf(await send(site.origin, 'GET', '/admin/session', { cookie }))).toMatchObject({ role: 'none' })
  })
})
