import { rm } from 'node:fs/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type ServerConfig } from '../../../src/config/snapshot.ts'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { sendJson as answerJson, startFakeIssuer } from '../../support/fake-oauth.ts'
import { createTestLog } from '../../support/log.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { modern as modernRequest, send } from '../../support/raw.ts'
import { legacy, modern, result, type Script, scriptedServer, sendJson } from '../../support/scripted-server.ts'
import { type Created, createToken, newDataDirectory } from '../auth/guarded.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** An authorization server whose tokens name their user, and a server that takes them. */
const startSite = async (script: Script) => {
  const issuer = await startFakeIssuer()
  const secrets: string[] = []
  const secret = (text: string): string => {
    secrets.push(text)
    return text
  }
  const state = { isRefusing: false }
  issuer.answers.set('/authorize', ({ query, headers }, response) => {
    const user = /user=(\w+)/.exec(headers.cookie ?? '')?.[1] ?? 'unknown'
    const back = new URL(query.get('redirect_uri') ?? '')
    secret(query.get('state') ?? '')
    const code = secret(`code-${user}-${secrets.length}`)
    for (const [name, value] of Object.entries({ code, state: query.get('state') ?? '', iss: issuer.origin }))
      back.searchParams.set(name, value)
    response.writeHead(302, { location: back.href }).end()
  })
  issuer.answers.set('/token', ({ form }, response) => {
    const user = /-(\w+)-/.exec(form.get('code') ?? form.get('refresh_token') ?? '')?.[1]
    secret(form.get('code_verifier') ?? 'no verifier')
    answerJson(response, {
      access_token: secret(`access-${user}-${secrets.length}`),
      refresh_token: secret(`refresh-${user}-${secrets.length}`),
      token_type: 'Bearer',
      expires_in: 3600,
    })
  })
  const server = await scriptedServer((arrived, response) => {
    const isKnown = arrived.headers.authorization?.startsWith('Bearer access-') && !state.isRefusing
    if (isKnown) return script(arrived, response)
    const challenge = `Bearer resource_metadata="${issuer.origin}/resource"`
    response.writeHead(401, { 'www-authenticate': challenge }).end()
  })
  closing.push(server.close)
  issuer.answers.set('/resource', (_, response) =>
    answerJson(response, { resource: server.url, authorization_servers: [issuer.origin] }),
  )
  return { issuer, server, secrets, state }
}

const startBefore = async (url: string, others: Readonly<Record<string, ServerConfig>> = {}) => {
  const data = await newDataDirectory()
  const tokens = {
    ada: await createToken(data, { principal: 'ada' }),
    ben: await createToken(data, { principal: 'ben' }),
  }
  const { log, lines } = createTestLog({ isDebug: true })
  const server: ServerConfig = {
    ...{ name: 'server', disabled: false, kind: 'remote', url, type: 'auto', headers: {}, era: 'auto' },
    timeoutMs: 10_000,
  }
  const servers = new Map(Object.entries({ server, ...others }))
  const rules = defaultRules(servers.size)
  const snapshot = {
    listen: { ...DEFAULT_LISTEN, port: 0 },
    auth: undefined,
    limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
    servers,
    workspaces: new Map([['default', { name: 'default', servers: [...servers.keys()], ...rules }]]),
    warnings: [],
  }
  const [cluster, keys] = [new MemoryCluster(), randomKeys()] // what a database would keep
  const start = async () => {
    const gateway = await startGateway(snapshot, { log, data, state: { store: cluster.join(), keys } })
    let isClosed = false
    const close = async (): Promise<void> => {
      if (!isClosed) await gateway.close()
      isClosed = true
    }
    closing.push(close)
    const origin = `http://127.0.0.1:${gateway.port}`
    const ask = async ({ headers }: Created, method: string, params = {}) => {
      const request = modernRequest(1, method, params)
      return (await send(`${origin}/mcp`, { ...request, headers: { ...request.headers, ...headers } })).json
    }
    const toolsOf = async (token: Created): Promise<string[]> =>
      ((await ask(token, 'tools/list')).result as { tools: { name: string }[] }).tools.map(({ name }) => name)
    const logIn = async (user: 'ada' | 'ben', tool: string) => {
      const called = await ask(tokens[user], 'tools/call', { name: tool, arguments: {} })
      const link = /http:\S+\/oauth\/login\/[\w-]+/.exec(JSON.stringify(called))?.[0] ?? JSON.stringify(called)
      const browser = createBrowser(user)
      const page = await browser.open(link)
      const handle = /name="handle" value="([^"]+)"/.exec(page.text)?.[1] ?? ''
      const token = tokens[user].headers.authorization.replace('Bearer ', '')
      const signedIn = await browser.submit(`${origin}/oauth/sign-in`, { handle, token })
      const next = /url=([^"]+)"/.exec(signedIn.text)?.[1] ?? ''
      expect((await browser.open(new URL(next, link).href)).text).toContain('Logged in')
      return link
    }
    return { origin, ask, toolsOf, logIn, close }
  }
  closing.push(() => rm(data, { recursive: true, force: true }))
  return { tokens, lines, start }
}

/** Lists a tool of the user only, and marks the list as public. */
const personal: Script = ({ body, headers }, response) => {
  const user = /access-(\w+)-/.exec(headers.authorization ?? '')?.[1] ?? 'unknown'
  const cached = { resultType: 'complete', ttlMs: 60_000, cacheScope: 'public' }
  if (body.id === undefined) return void response.writeHead(202).end()
  if (body.method === 'tools/list')
    return sendJson(
      response,
      result(body.id, { ...cached, tools: [{ name: `tool_of_${user}`, inputSchema: { type: 'object' } }] }),
    )
  sendJson(response, result(body.id, { resultType: 'complete', content: [{ type: 'text', text: `for ${user}` }] }))
}

const DEMO: ServerConfig = { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' }

describe.each([
  ['modern', modern],
  ['legacy', legacy],
] as const)('a %s server with a list for each user', (_, era) => {
  test.each([
    ['alone', {}],
    ['among others', { demo: DEMO }],
  ])('%s shows no list and no result to another user, nor after a restart', async (_, others) => {
    const { server } = await startSite(era(personal))
    const { tokens, start } = await startBefore(server.url, others)
    const first = await start()
    const own = (names: string[]): string[] =>
      names.filter(name => /tool_of|login/.test(name)).map(name => name.replace(/^server_+/, ''))
    expect(own(await first.toolsOf(tokens.ada))).toEqual(['login'])
    const named = (tool: string): string => ('demo' in others ? `server__${tool}` : tool)
    await first.logIn('ada', named('login'))
    await expect.poll(async () => own(await first.toolsOf(tokens.ada))).toEqual(['tool_of_ada'])
    expect(own(await first.toolsOf(tokens.ben))).toEqual(['login'])
    await first.logIn('ben', named('login'))
    await expect.poll(async () => own(await first.toolsOf(tokens.ben))).toEqual(['tool_of_ben'])
    expect(own(await first.toolsOf(tokens.ada))).toEqual(['tool_of_ada'])
    await first.close()
    const second = await start()
    for (const user of ['ben', 'ada'] as const) {
      await expect.poll(async () => own(await second.toolsOf(tokens[user]))).toEqual([`tool_of_${user}`])
      const called = await second.ask(tokens[user], 'tools/call', { name: named(`tool_of_${user}`), arguments: {} })
      expect(JSON.stringify(called)).toContain(`for ${user}`)
    }
  })
})

test('a server that refuses everything after the login is not called without end, and nothing secret is logged', async () => {
  const { server, issuer, secrets, state } = await startSite(modern(personal))
  const { tokens, start, lines } = await startBefore(server.url)
  const { ask, logIn } = await start()
  const link = await logIn('ada', 'login')
  expect(JSON.stringify(await ask(tokens.ada, 'tools/call', { name: 'x', arguments: {} }))).toContain('for ada')
  state.isRefusing = true
  const [sent, asked] = [server.arrivals.length, issuer.requests.length]
  const calls = Array.from({ length: 30 }, () => ask(tokens.ada, 'tools/call', { name: 'x', arguments: {} }))
  for (const answer of await Promise.all(calls)) expect(JSON.stringify(answer)).toContain('needs a login')
  for (let i = 0; i < 10; i++) await ask(tokens.ada, 'tools/call', { name: 'x', arguments: {} })
  expect(server.arrivals.length - sent).toBeLessThanOrEqual(40 * 3)
  expect(issuer.requests.length - asked).toBeLessThan(20)
  const logged = JSON.stringify(lines)
  const ids = [link.replace(/.*\//, ''), ...Object.values(tokens).map(({ headers }) => headers.authorization.slice(7))]
  for (const secret of [...secrets, ...ids]) expect(logged.includes(secret), secret).toBe(false)
})
