import { afterEach, describe, expect, test } from 'vitest'
import { createFakeOAuth } from '../../test/support/login/fake-oauth.ts'
import {
  callerOf,
  exchangeWith,
  failure,
  legacy,
  modern,
  result,
  type Script,
  type ScriptedServer,
  scriptedServer,
  sendJson,
} from '../../test/support/scripted-server.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type ServerConfig } from '../config/snapshot.ts'
import type { Caller, Peer } from '../protocol/exchange.ts'
import { MODERN, NEWEST_LEGACY } from '../protocol/revisions.ts'
import { SILENT } from '../telemetry/log.ts'
import { Json } from '../wire/json/json.ts'
import { createRuntime } from './runtime.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const TOOLS = { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] }

/** Answers with the user of the token, and 401 without one. */
const guarded =
  (script: Script, isOpen: (method: string) => boolean = () => false): Script =>
  (arrived, response) => {
    const { authorization } = arrived.headers
    if (authorization?.startsWith('Bearer token-of-') || isOpen(arrived.body.method ?? '')) script(arrived, response)
    else response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
  }

const serve: Script = ({ body, headers }, response) => {
  const user = headers.authorization?.replace('Bearer token-of-', '')
  const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  if (body.method === 'tools/list') return sendJson(response, result(body.id, { ...complete, ...TOOLS }))
  if (body.id === undefined) return void response.writeHead(202).end()
  sendJson(response, result(body.id, { resultType: 'complete', content: [{ type: 'text', text: `hello ${user}` }] }))
}

const remote = (name: string, { url }: ScriptedServer): ServerConfig => ({
  name,
  disabled: false,
  kind: 'remote',
  url,
  type: 'auto',
  headers: {},
  era: 'auto',
  timeoutMs: 5000,
})

/** A runtime with these servers in one workspace. */
const start = async (scripts: Readonly<Record<string, Script>>) => {
  const oauth = createFakeOAuth()
  const servers = await Promise.all(
    Object.entries(scripts).map(async ([name, script]) => [name, await scriptedServer(script)] as const),
  )
  const names = Object.keys(scripts)
  const snapshot = {
    listen: DEFAULT_LISTEN,
    limits: DEFAULT_LIMITS,
    servers: new Map(servers.map(([name, server]) => [name, remote(name, server)])),
    workspaces: new Map([['default', { name: 'default', servers: names, ...defaultRules(names.length) }]]),
    warnings: [],
  }
  const runtime = createRuntime(snapshot, {
    log: SILENT,
    version: '1',
    data: undefined,
    ownPort: () => undefined,
    oauth: oauth.access,
  })
  closing.push(() => runtime.close(), ...servers.map(([, server]) => server.close))
  const send = (caller: Caller, method: string, params = {}) => {
    const peer: Peer = { revision: caller.revision, asks: true, dispatch: runtime.dispatch }
    return exchangeWith(peer, method, { caller, params })
  }
  const toolsOf = async (caller: Caller): Promise<string[]> => {
    const { tools } = (await send(caller, 'tools/list').result()) as { tools: { name: string }[] }
    return tools.map(({ name }) => name)
  }
  return { oauth, runtime, send, toolsOf, servers: Object.fromEntries(servers) as Record<string, ScriptedServer> }
}

const URL_CAPABLE = Json.of({ elicitation: { url: {} } })
const modernCaller = (changes: Partial<Caller> = {}) =>
  callerOf({ principal: 'ada', revision: MODERN, capabilities: URL_CAPABLE, ...changes })
const legacyCaller = (changes: Partial<Caller> = {}) =>
  callerOf({ principal: 'ada', revision: NEWEST_LEGACY, capabilities: URL_CAPABLE, session: 's', ...changes })

const LINK = 'http://gateway.test/oauth/login/far-ada'

describe.each([
  ['modern', modern(serve)],
  ['legacy', legacy(serve)],
])('a %s server that wants a login', (_era, script) => {
  test('asks the first caller, also if nothing but a login shows that there is one', async () => {
    for (const caller of [modernCaller(), legacyCaller()]) {
      const { oauth, toolsOf } = await start({ far: guarded(script) })
      oauth.settings.hasMetadata = false
      expect(await toolsOf(caller)).toEqual(['login'])
    }
  })

  test('lists one tool until the user logs in, and then its own', async () => {
    const { oauth, runtime, toolsOf } = await start({ far: guarded(script) })
    await runtime.probeAll()
    expect(runtime.serverState('far')).toMatchObject({
      state: 'untried',
      reason: 'needs a login: "dragoman login far"',
    })
    for (const caller of [modernCaller(), legacyCaller()]) expect(await toolsOf(caller)).toEqual(['login'])
    oauth.logIn('far', 'ada', 'token-of-ada')
    for (const caller of [modernCaller(), legacyCaller()]) expect(await toolsOf(caller)).toEqual(['greet'])
    expect(await toolsOf(modernCaller({ principal: 'ben' }))).toEqual(['login'])
    expect(runtime.serverState('far').state).toBe('ready')
    oauth.logOut('far', 'ada')
    for (const caller of [modernCaller(), legacyCaller()]) expect(await toolsOf(caller)).toEqual(['login'])
  })

  test('makes a modern call ask by its result, and go on once the user has logged in', async () => {
    const { oauth, send, servers } = await start({ far: guarded(script) })
    const params = { name: 'greet', arguments: { a: 1 } }
    const asked = (await send(modernCaller(), 'tools/call', params).result()) as Record<string, unknown>
    expect(asked).toMatchObject({
      resultType: 'input_required',
      inputRequests: { login: { method: 'elicitation/create', params: { mode: 'url', url: LINK } } },
    })
    const { requestState } = asked
    const inputResponses = { login: { action: 'accept' } }
    const retry = send(modernCaller(), 'tools/call', { ...params, requestState, inputResponses })
    await expect.poll(() => oauth.refusals.length).toBeGreaterThanOrEqual(2) // of the call and of its retry
    expect(retry.finals()).toEqual([])
    oauth.logIn('far', 'ada', 'token-of-ada')
    expect(await retry.result()).toMatchObject({ content: [{ text: 'hello ada' }] })
    const call = await servers.far?.arrived('tools/call')
    expect(call?.body.params).toMatchObject({ name: 'greet', arguments: { a: 1 } })
    expect(call?.body.params).not.toHaveProperty('requestState')
    expect(call?.body.params).not.toHaveProperty('inputResponses')
  })

  test('asks a legacy client while its call waits, and tells it when the login is complete', async () => {
    const { oauth, send } = await start({ far: guarded(script) })
    const call = send(legacyCaller(), 'tools/call', { name: 'greet' })
    const question = await call.question()
    expect(question.params.toValue()).toMatchObject({ mode: 'url', url: LINK })
    question.answer({ kind: 'result', result: Json.of({ action: 'accept' }) })
    expect(call.finals()).toEqual([])
    oauth.logIn('far', 'ada', 'token-of-ada')
    expect(await call.result()).toMatchObject({ content: [{ text: 'hello ada' }] })
    const complete = await call.notice('notifications/elicitation/complete')
    const { elicitationId } = question.params.toValue() as { elicitationId: string }
    expect(complete).toMatchObject({ kind: 'notice' })
    expect(complete.kind === 'notice' && complete.params.toValue()).toEqual({ elicitationId })
  })

  test('goes on although the client has not answered yet', async () => {
    const { oauth, send } = await start({ far: guarded(script) })
    const call = send(legacyCaller(), 'tools/call', { name: 'greet' })
    const question = await call.question()
    oauth.logIn('far', 'ada', 'token-of-ada')
    expect(await call.result()).toMatchObject({ content: [{ text: 'hello ada' }] })
    expect(question.withdrawn.reason).toBeDefined()
  })

  test.each([
    ['modern', modernCaller({ capabilities: Json.of({ elicitation: {} }) })],
    ['legacy', legacyCaller({ capabilities: Json.empty })],
  ])('shows the link to a %s client that cannot open links', async (_, caller) => {
    const { send } = await start({ far: guarded(script) })
    const text = `Server "far" needs a login. Open ${LINK} in a browser within 10 minutes, then call again.`
    expect(await send(caller, 'tools/call', { name: 'greet' }).result()).toMatchObject({
      isError: true,
      content: [{ type: 'text', text }],
    })
    expect(await send(caller, 'tools/call', { name: 'login' }).result()).not.toHaveProperty('isError')
    const { message, data } = await send(caller, 'prompts/get', { name: 'p' }).failure()
    expect(message).toBe(text)
    expect(data).toEqual({ reason: 'login_required', upstream: 'far', url: LINK })
  })

  test('fails a call whose user declines', async () => {
    const { send } = await start({ far: guarded(script) })
    const call = send(legacyCaller(), 'tools/call', { name: 'greet' })
    const question = await call.question()
    question.answer({ kind: 'result', result: Json.of({ action: 'decline' }) })
    const text = 'The user did not log in to server "far", which this call needs'
    expect(await call.result()).toMatchObject({ isError: true, content: [{ text }] })
    const asked = (await send(modernCaller(), 'tools/call', { name: 'greet' }).result()) as { requestState: string }
    const { requestState } = asked
    const inputResponses = { login: { action: 'decline' } }
    const declined = send(modernCaller(), 'tools/call', { name: 'greet', requestState, inputResponses })
    expect(await declined.result()).toMatchObject({ isError: true, content: [{ text }] })
  })

  test('ends the tool "login" when the user has logged in', async () => {
    const { oauth, send, servers } = await start({ far: guarded(script) })
    const call = send(legacyCaller(), 'tools/call', { name: 'login' })
    const asked = (await send(modernCaller(), 'tools/call', { name: 'login' }).result()) as { requestState: string }
    await call.question()
    oauth.logIn('far', 'ada', 'token-of-ada')
    const text = 'You are logged in to server "far". Its tools are listed now.'
    expect(await call.result()).toMatchObject({ content: [{ text }] })
    const inputResponses = { login: { action: 'accept' } }
    const retry = send(modernCaller(), 'tools/call', {
      name: 'login',
      requestState: asked.requestState,
      inputResponses,
    })
    expect(await retry.result()).toMatchObject({ content: [{ text }] })
    expect(servers.far?.of('tools/call')).toEqual([])
  })

  test('sends the same request again with the token that another process has fetched meanwhile', async () => {
    const { oauth, send, servers, toolsOf } = await start({ far: guarded(script) })
    oauth.logIn('far', 'ada', 'token-of-ada')
    await toolsOf(modernCaller())
    oauth.refresh('far', 'ada', 'old')
    const call = send(modernCaller(), 'tools/call', { name: 'greet' })
    await servers.far?.arrived('tools/call')
    oauth.refresh('far', 'ada', 'token-of-ada')
    expect(await call.result()).toMatchObject({ content: [{ text: 'hello ada' }] })
    const [first, second] = servers.far?.of('tools/call') ?? []
    expect(first?.headers.authorization).toBe('Bearer old')
    expect(second?.text).toBe(first?.text)
  })

  test('never sends the token of one user for another', async () => {
    const { oauth, send, servers } = await start({ far: guarded(script) })
    for (const who of ['ada', 'ben']) oauth.logIn('far', who, `token-of-${who}`)
    const calls = Array.from({ length: 20 }, (_, i) => (i % 2 ? 'ada' : 'ben')).map(async principal => {
      const caller = principal === 'ada' ? legacyCaller({ principal }) : modernCaller({ principal })
      const answer = await send(caller, 'tools/call', { name: 'greet', arguments: { principal } }).result()
      expect(answer).toMatchObject({ content: [{ text: `hello ${principal}` }] })
    })
    await Promise.all(calls)
    for (const { body, headers } of servers.far?.of('tools/call') ?? []) {
      const { principal } = (body.params?.arguments ?? {}) as { principal?: string }
      expect(headers.authorization).toBe(`Bearer token-of-${principal}`)
    }
  })
})

test('among other servers, a server without a login is the only one that changes', async () => {
  const { oauth, send, toolsOf } = await start({ far: guarded(modern(serve)), near: modern(serve) })
  for (const caller of [modernCaller(), legacyCaller()])
    expect(await toolsOf(caller)).toEqual(['far__login', 'near__greet'])
  const call = send(legacyCaller(), 'tools/call', { name: 'far__greet' })
  const question = await call.question()
  expect(question.params.get('message')?.asString()).toMatch(/^\[far\] Server "far" needs a login\./)
  const asked = (await send(modernCaller(), 'tools/call', { name: 'far__greet' }).result()) as { requestState: string }
  oauth.logIn('far', 'ada', 'token-of-ada')
  expect(await call.result()).toMatchObject({ content: [{ text: 'hello ada' }] })
  const { requestState } = asked
  const inputResponses = { login: { action: 'accept' } }
  const retry = send(modernCaller(), 'tools/call', { name: 'far__greet', requestState, inputResponses })
  expect(await retry.result()).toMatchObject({ content: [{ text: 'hello ada' }] })
  for (const caller of [modernCaller(), legacyCaller()])
    expect(await toolsOf(caller)).toEqual(['far__greet', 'near__greet'])
})

test.each([['far'], ['far', 'near']])('listeners are told when a login comes or goes (%s %s)', async (...names) => {
  const scripts = Object.fromEntries(names.map(name => [name, guarded(modern(serve), () => name === 'near')]))
  const { oauth, send, toolsOf } = await start(scripts)
  const notifications = { toolsListChanged: true }
  const own = [modernCaller(), legacyCaller()].map(caller => send(caller, 'subscriptions/listen', { notifications }))
  const other = send(modernCaller({ principal: 'ben' }), 'subscriptions/listen', { notifications })
  for (const listen of [...own, other]) await listen.notice('notifications/subscriptions/acknowledged')
  for (const caller of [modernCaller(), legacyCaller()]) await toolsOf(caller)
  const changes = (listen: (typeof own)[number]) =>
    listen.frames.filter(frame => frame.kind === 'notice' && frame.method === 'notifications/tools/list_changed').length
  oauth.logIn('far', 'ada', 'token-of-ada')
  for (const listen of own) await listen.notice('notifications/tools/list_changed')
  expect(changes(other)).toBe(0)
  const before = own.map(changes)
  oauth.logOut('far', 'ada')
  await expect.poll(() => own.every((listen, i) => changes(listen) > (before[i] ?? 0))).toBe(true)
  expect(changes(other)).toBe(0)
})

test('a server whose lists are open is asked for a login only by calls', async () => {
  const isOpen = (method: string): boolean => method !== 'tools/call'
  const { send, toolsOf, runtime } = await start({ far: guarded(modern(serve), isOpen) })
  await runtime.probeAll()
  expect(runtime.serverState('far').state).toBe('ready')
  expect(await toolsOf(modernCaller())).toEqual(['greet'])
  expect(await send(modernCaller(), 'tools/call', { name: 'greet' }).result()).toMatchObject({
    resultType: 'input_required',
  })
  expect(await toolsOf(modernCaller())).toEqual(['greet'])
})

test.each([
  ['has never wanted a login fails a list that it does not have', false],
  ['wanted a login when the session began has an empty list instead', true],
])('a server that %s', async (_, isGuarded) => {
  const lacksPrompts: Script = (arrived, response) => {
    const { id, method } = arrived.body
    if (method === 'prompts/list') sendJson(response, failure(id, -32601, 'Method not found'), 404)
    else modern(serve)(arrived, response)
  }
  const { oauth, send, toolsOf } = await start({ far: isGuarded ? guarded(lacksPrompts) : lacksPrompts })
  await toolsOf(legacyCaller())
  if (isGuarded) oauth.logIn('far', 'ada', 'token-of-ada')
  const listed = send(legacyCaller(), 'prompts/list')
  if (isGuarded) expect(await listed.result()).toEqual({ prompts: [] })
  else expect((await listed.failure()).code).toBe(-32601)
})

test('a state that a client has made up is no login', async () => {
  const { send } = await start({ far: guarded(modern(serve)) })
  for (const requestState of ['gw4.', 'gw4.e30', 'gw4.bm90IGpzb24', 'gw4.!'])
    expect(
      await send(modernCaller(), 'tools/call', { name: 'greet', requestState, inputResponses: {} }).result(),
    ).toMatchObject({ resultType: 'input_required' })
})
