import { describe, expect, test, vi } from 'vitest'
import { callerOf, reply } from '../../../test/support/embedded.ts'
import { gives, has, routed } from '../../../test/support/routes.ts'
import { Abort, NEVER } from '../../protocol/cancellation.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Answer, Caller, Exchange } from '../../protocol/exchange.ts'
import { encodeLoginState } from '../../protocol/login-state.ts'
import { EVERYTHING } from '../../protocol/policy.ts'
import { Json } from '../../wire/json/json.ts'

const tools = (...names: string[]) => ({ tools: names.map(name => ({ name, inputSchema: { type: 'object' } })) })
const two = () => routed({ github: { lists: tools('search', 'issues') }, files: { lists: tools('search', 'read') } })

describe('tools/call', () => {
  test.each([
    ['github__search', 'github', 'search'],
    ['github/search', 'github', 'search'],
    ['files__search', 'files', 'search'],
    ['issues', 'github', 'issues'],
    ['read', 'files', 'read'],
  ])('%s goes to %s as %s', async (name, server, original) => {
    const { say, last } = two()
    await (await say('tools/call', { name, arguments: { a: 1 } })).result()
    expect(last()).toEqual({ server, method: 'tools/call', params: { name: original, arguments: { a: 1 } } })
  })

  test('a bare name that several servers have is rejected with the candidates', async () => {
    const { say, last } = two()
    expect(await (await say('tools/call', { name: 'search' })).failure()).toEqual({
      code: -32602,
      message: 'Several servers have a tool search: call one of github__search, files__search',
      data: { candidates: ['github__search', 'files__search'] },
    })
    expect(last()).toBeUndefined()
  })

  test.each(['nothing', 'gitlab__x', 'github__', ''])('%j is unknown', async name => {
    const { say, last } = two()
    expect(await (await say('tools/call', { name })).failure()).toMatchObject({
      code: -32602,
      message: `Unknown tool: ${name}`,
    })
    expect(last()).toBeUndefined()
  })

  test('a call without a name is rejected', async () => {
    expect(await (await two().say('tools/call', {})).failure()).toMatchObject({
      code: -32602,
      message: '`name` must be a string',
    })
  })

  test('a new tool is found, and lists are fetched at most once a second for unknown names', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const lists = { tools: [{ name: 'old' }] }
    const { say, last, looks } = routed({ a: { lists }, b: {} })
    lists.tools.push({ name: 'new' })
    await (await say('tools/call', { name: 'a__new' })).result()
    expect([last()?.params, looks]).toEqual([{ name: 'new' }, ['tools']])
    await Promise.all([1, 2, 3].map(async () => (await say('tools/call', { name: 'nope' })).failure()))
    expect(looks).toHaveLength(1)
    vi.advanceTimersByTime(1000)
    await (await say('tools/call', { name: 'nope' })).failure()
    await (await say('tools/call', { name: 'nope' }, { caller: { principal: 'bob' } })).failure()
    expect(looks).toHaveLength(3)
    vi.useRealTimers()
  })

  test('an unlisted tool goes to the server in its name', async () => {
    const { say, last } = two()
    await (await say('tools/call', { name: 'github__hidden_gem' })).result()
    expect(last()).toMatchObject({ server: 'github', params: { name: 'hidden_gem' } })
    await (await say('tools/call', { name: 'files/a/b' })).result()
    expect(last()).toMatchObject({ server: 'files', params: { name: 'a/b' } })
  })

  test('but not if items are hidden: the answer would reveal which of them exist', async () => {
    const policy = { ...EVERYTHING, deny: { tools: ['github/delete'] } }
    const hidden = { github: { lists: tools('search'), overlays: { delete: { hidden: true } } }, files: {} }
    for (const { say, last } of [routed({ github: { lists: tools('search') }, files: {} }, { policy }), routed(hidden)])
      for (const name of ['github__delete', 'github__nothing']) {
        const failure = await (await say('tools/call', { name })).failure()
        expect([failure, last()]).toEqual([
          { code: -32602, message: `Unknown tool: ${name}`, data: undefined },
          undefined,
        ])
      }
  })

  test('a server that cannot be opened fails its own calls only', async () => {
    const open = () =>
      Promise.reject(new RpcFailure(rpcError('internal', 'Server "a" is down', Json.of({ upstream: 'a' }))))
    const { say } = routed({ a: { lists: tools('x'), open }, b: { lists: tools('y') } })
    expect(await (await say('tools/call', { name: 'a__x' })).failure()).toEqual({
      code: -32603,
      message: 'Server "a" is down',
      data: { upstream: 'a' },
    })
    expect(await (await say('tools/call', { name: 'b__y' })).result()).toEqual({})
  })

  test.each([
    ['nothing', EVERYTHING],
    ['a tool', { ...EVERYTHING, deny: { tools: ['a/delete'] } }],
    ['whatever changes something', { ...EVERYTHING, readOnly: true }],
  ])(
    'a server that is down and was never listed answers every name with its error, where %s is hidden',
    async (_, policy) => {
      const open = () => Promise.reject(new RpcFailure(rpcError('internal', 'Server "a" is down')))
      const overlays = { drop: { hidden: true } }
      const { say, looks } = routed({ a: { open, isDown: true, overlays }, b: {} }, { policy })
      for (const name of ['a__x', 'a__delete', 'a/drop'])
        expect(await (await say('tools/call', { name })).failure()).toMatchObject({ code: -32603, message: /is down/ })
      expect(looks).toEqual([])
    },
  )

  test('a hidden server that is down is unknown', async () => {
    const policy = { ...EVERYTHING, deny: { servers: ['a'] } }
    const { say } = routed({ a: { isDown: true }, b: {} }, { policy })
    expect(await (await say('tools/call', { name: 'a__x' })).failure()).toMatchObject({ code: -32602 })
  })

  test('a hidden tool stays hidden when its server is just back', async () => {
    const policy = { ...EVERYTHING, deny: { tools: ['a/delete'] } }
    const { say, arrivals } = routed({ a: { isDown: true, lists: tools('x', 'delete') }, b: {} }, { policy })
    expect(await (await say('tools/call', { name: 'a__delete' })).failure()).toMatchObject({ code: -32602 })
    expect(arrivals).toEqual([])
  })

  test('params that are not read keep their bytes', async () => {
    const { say, arrivals } = two()
    const params = Json.parse(
      Buffer.from('{"name":"github__search","arguments":{"n":12345678901234567890,"x":1.0},"more":1e2}'),
    )
    await (await say('tools/call', params)).result()
    expect(arrivals[0]?.exchange.params.toString()).toBe(
      '{"name":"search","arguments":{"n":12345678901234567890,"x":1.0},"more":1e2}',
    )
  })

  test('a call cancelled while lists are fetched is not sent', async () => {
    const { say, dispatch, arrivals, looks } = two()
    const abort = new Abort()
    const params = Json.of({ name: 'github__unlisted' })
    dispatch({
      kind: 'request',
      method: 'tools/call',
      params,
      caller: callerOf({ principal: 'ada' }),
      signal: abort,
      sink: () => {},
    })
    abort.abort({ kind: 'gone' })
    await (await say('tools/call', { name: 'github__search' })).result()
    expect([looks, arrivals.length]).toEqual([['tools'], 1])
  })
})

describe('H42: hidden is unknown, under every name', () => {
  const forms = ['github__delete', 'github/delete', 'delete', 'GitHub__delete']

  test.each(forms)('denied by the workspace: %s', async name => {
    const policy = { ...EVERYTHING, deny: { tools: ['github/delete'] } }
    const { say, last } = routed({ github: { lists: tools('delete') }, files: {} }, { policy })
    expect(await (await say('tools/call', { name })).failure()).toEqual({
      code: -32602,
      message: `Unknown tool: ${name}`,
      data: undefined,
    })
    expect(last()).toBeUndefined()
  })

  test.each(forms)('denied to the token: %s', async name => {
    const { say } = routed({ github: { lists: tools('delete') }, files: {} })
    const policy = { ...EVERYTHING, readOnly: true }
    const failure = (await say('tools/call', { name }, { caller: { policy } })).failure()
    expect(await failure).toEqual({ code: -32602, message: `Unknown tool: ${name}`, data: undefined })
    if (name !== 'GitHub__delete') expect(await (await say('tools/call', { name })).result()).toEqual({})
  })

  test.each(forms)('hidden by an overlay: %s', async name => {
    const { say } = routed({ github: { lists: tools('delete'), overlays: { delete: { hidden: true } } }, files: {} })
    expect(await (await say('tools/call', { name })).failure()).toMatchObject({ message: `Unknown tool: ${name}` })
  })

  test('resources: neither listed, linked nor guessed', async () => {
    const policy = { ...EVERYTHING, deny: { resources: ['file:///secret*'] } }
    const link = { content: [{ type: 'resource_link', uri: 'file:///secret/1', name: 'n' }] }
    const { say, arrivals } = routed(
      { a: { lists: { ...tools('x'), resources: [{ uri: 'file:///secret/1' }] }, answer: gives(link) }, b: {} },
      { policy },
    )
    await (await say('tools/call', { name: 'x' })).result()
    for (const uri of ['file:///secret/1', 'x-mcp-a+file:///secret/1'])
      expect(await (await say('resources/read', { uri })).failure()).toMatchObject({
        code: -32602,
        message: `Unknown resource: ${uri}`,
      })
    expect(arrivals.filter(({ exchange }) => exchange.method === 'resources/read')).toEqual([])
  })

  test('prompts and their completions', async () => {
    const policy = { ...EVERYTHING, deny: { prompts: ['*'] } }
    const { say } = routed({ a: { lists: { prompts: [{ name: 'p' }] } }, b: {} }, { policy })
    expect(await (await say('prompts/get', { name: 'a__p' })).failure()).toMatchObject({
      code: -32602,
      message: 'Unknown prompt: a__p',
    })
    const ref = { type: 'ref/prompt', name: 'a__p' }
    expect(await (await say('completion/complete', { ref })).failure()).toMatchObject({
      code: -32602,
      message: 'Unknown prompt: a__p',
    })
  })
})

describe('overlays at call time', () => {
  const overlays = { create: { name: 'open_issue', fixed: { repo: 'mine' }, defaults: { label: 'bug' } } }
  const one = () => routed({ github: { lists: tools('create'), overlays }, files: {} })

  test.each(['github__open_issue', 'open_issue', 'github/open_issue', 'github__create', 'create'])('%s', async name => {
    const { say, last } = one()
    await (await say('tools/call', { name, arguments: { title: 't', repo: 'theirs' } })).result()
    expect(last()?.params).toEqual({ name: 'create', arguments: { title: 't', repo: 'mine', label: 'bug' } })
  })

  test('a call without arguments gets them too', async () => {
    const { say, last } = one()
    await (await say('tools/call', { name: 'open_issue' })).result()
    expect(last()?.params).toEqual({ name: 'create', arguments: { repo: 'mine', label: 'bug' } })
  })
})

describe('H20: mirrored arguments', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      zone: { type: 'string', 'x-mcp-header': 'Zone' },
    },
  }
  const lists = { tools: [{ name: 'x', inputSchema }] }
  const headersOf = (exchange: Exchange | undefined) => Object.fromEntries(exchange?.caller.headers ?? [])

  test('a header that differs from the body is rejected', async () => {
    const { say, last } = routed({ a: { lists }, b: {} })
    const headers = new Map([['mcp-param-region', 'us']])
    const call = say('tools/call', { name: 'a__x', arguments: { region: 'eu' } }, { caller: { headers } })
    expect(await (await call).failure()).toMatchObject({
      code: -32020,
      message: expect.stringContaining('mcp-param-region'),
    })
    const missing = say('tools/call', { name: 'a__x', arguments: { region: 'eu' } })
    expect(await (await missing).failure()).toMatchObject({ code: -32020 })
    expect(last()).toBeUndefined()
  })

  test('matching and unknown headers are forwarded', async () => {
    const { say, arrivals } = routed({ a: { lists }, b: {} })
    const headers = new Map([
      ['mcp-param-region', 'eu'],
      ['mcp-param-other', '1'],
      ['traceparent', '00-1'],
    ])
    await (await say('tools/call', { name: 'a__x', arguments: { region: 'eu' } }, { caller: { headers } })).result()
    expect(headersOf(arrivals[0]?.exchange)).toEqual(Object.fromEntries(headers))
  })

  test('legacy callers send none; a modern server still gets them', async () => {
    const { say, arrivals } = routed({ a: { lists }, b: {} })
    await (
      await say('tools/call', { name: 'a__x', arguments: { region: 'eu' } }, { caller: { revision: '2025-06-18' } })
    ).result()
    await (
      await say('tools/call', { name: 'a__x', arguments: { region: 'eu' } }, { caller: { session: 's' } })
    ).result()
    expect(arrivals.map(({ exchange }) => headersOf(exchange))).toEqual([{}, { 'mcp-param-region': 'eu' }])
  })

  test('the server gets the headers of its arguments', async () => {
    const overlays = { x: { fixed: { region: 'eu' }, defaults: { zone: 'z1' } } }
    const { say, arrivals } = routed({ a: { lists, overlays }, b: {} })
    await (await say('tools/call', { name: 'a__x', arguments: {} }, { caller: { session: 's' } })).result()
    expect(headersOf(arrivals[0]?.exchange)).toEqual({ 'mcp-param-region': 'eu', 'mcp-param-zone': 'z1' })
  })
})

describe('H26: the asking server', () => {
  const ask = (method: string) => (exchange: Exchange) => {
    const answer = (said: Answer) =>
      void exchange.sink({ kind: 'result', result: Json.of({ said: said.kind === 'result' ? said.result : null }) })
    void exchange.sink({
      kind: 'question',
      key: 'q',
      method,
      params: Json.of({ message: 'Sure?', more: 1 }),
      withdrawn: NEVER,
      answer,
    })
  }

  test("an elicitation of one of several servers has the server's name", async () => {
    const { say } = routed({ github: { lists: tools('x'), answer: ask('elicitation/create') }, files: {} })
    const call = await say('tools/call', { name: 'x' })
    const question = await call.question('q')
    expect(question.params.toValue()).toEqual({ message: '[github] Sure?', more: 1 })
    reply(question, { action: 'accept' })
    expect(await call.result()).toEqual({ said: { action: 'accept' } })
  })

  test('a sampling request stays as it is', async () => {
    const { say } = routed({ github: { lists: tools('x'), answer: ask('sampling/createMessage') }, files: {} })
    const question = await (await say('tools/call', { name: 'x' })).question('q')
    expect(question.params.toValue()).toEqual({ message: 'Sure?', more: 1 })
  })

  test('the only server needs no name', async () => {
    const { say } = routed({ github: { lists: tools('x'), answer: ask('elicitation/create') } })
    expect((await (await say('tools/call', { name: 'x' })).question('q')).params.toValue()).toEqual({
      message: 'Sure?',
      more: 1,
    })
  })

  test.each([
    ['tools/call', { name: 'x' }],
    ['prompts/get', { name: 'p' }],
    ['resources/read', { uri: 'r:1' }],
  ])("a result of %s with questions has the server's name in each", async (method, params) => {
    const asking = {
      resultType: 'input_required',
      inputRequests: {
        a: { method: 'elicitation/create', params: { message: 'A?' } },
        b: { method: 'roots/list' },
        c: { method: 'elicitation/create', params: { mode: 'url', message: 'C?', url: 'https://x' } },
      },
      requestState: 's',
    }
    const lists = { ...tools('x'), prompts: [{ name: 'p' }], resources: [{ uri: 'r:1' }] }
    const { say } = routed({ github: { lists, answer: gives(asking) }, files: {} })
    expect(await (await say(method, params)).result()).toEqual({
      ...asking,
      inputRequests: {
        a: { method: 'elicitation/create', params: { message: '[github] A?' } },
        b: { method: 'roots/list' },
        c: { method: 'elicitation/create', params: { mode: 'url', message: '[github] C?', url: 'https://x' } },
      },
    })
  })
})

describe('a retry with answers', () => {
  test('goes to the server that asked, also if the tool is no longer listed', async () => {
    const lists = { tools: [{ name: 'login' }] }
    const asking = { resultType: 'input_required', inputRequests: {}, requestState: 'state-of-a' }
    const { say, last } = routed({ a: { lists, answer: gives(asking) }, b: {} })
    expect(await (await say('tools/call', { name: 'login' })).result()).toEqual(asking)
    lists.tools = [{ name: 'search' }]
    const retry = { name: 'login', inputResponses: {}, requestState: 'state-of-a' }
    await (await say('tools/call', retry)).result()
    expect(last()).toEqual({ server: 'a', method: 'tools/call', params: retry })
    for (const other of [
      { ...retry, name: 'hidden' },
      { ...retry, requestState: 'another' },
    ])
      expect(await (await say('tools/call', other)).failure()).toMatchObject({ code: -32602 })
  })
})

describe('a retry of the tool "login" at a replica that has not asked', () => {
  const retryOf = (server: string, more: object = {}) => ({
    name: `${server}_login`,
    requestState: encodeLoginState({ server, round: 1, isTool: true, link: 'http://x', ...more }),
  })
  const scripts = { a: { wantsLogins: true }, b: {} }

  test('goes to the server that wants the login, as that tool', async () => {
    const { say, last } = routed(scripts)
    const retry = { ...retryOf('a'), name: 'anything' }
    await (await say('tools/call', retry)).result()
    expect(last()).toEqual({ server: 'a', method: 'tools/call', params: { ...retry, name: 'login' } })
  })

  test.each([
    ['a server that wants no logins', retryOf('b'), {}],
    ['an unknown server', retryOf('c'), {}],
    ['another tool', retryOf('a', { isTool: false }), {}],
    ['a server that the policy denies', retryOf('a'), { deny: { servers: ['a'] } }],
    ['a server of which it allows no tool', retryOf('a'), { allow: { tools: ['b/*'] } }],
  ])('leads to no other: %s', async (_what, retry, rules) => {
    const { say, last } = routed(scripts, { policy: { ...EVERYTHING, ...rules } })
    expect(await (await say('tools/call', { ...retry, name: 'hidden' })).failure()).toMatchObject({ code: -32602 })
    expect(last()).toBeUndefined()
  })
})

describe('other methods', () => {
  test('H16: completions go to the owner with its original name; a server without completions has no values', async () => {
    const values = { completion: { values: ['v'] } }
    const lists = { prompts: [{ name: 'p' }], templates: [{ uriTemplate: 'x://{id}' }] }
    const unable = ({ sink }: Exchange) => void sink({ kind: 'failure', error: rpcError('methodNotFound') })
    const { say, last } = routed({ a: { lists, answer: gives(values) }, b: { lists, answer: unable } })
    const complete = async (ref: Record<string, string>) =>
      (await say('completion/complete', { ref, argument: { name: 'n', value: '' } })).result()
    expect(await complete({ type: 'ref/prompt', name: 'a__p' })).toEqual(values)
    expect(last()).toMatchObject({ server: 'a', params: { ref: { type: 'ref/prompt', name: 'p' } } })
    expect(await complete({ type: 'ref/resource', uri: 'x://{id}' })).toEqual(values)
    expect(await complete({ type: 'ref/resource', uri: 'x-mcp-b+x://{id}' })).toEqual({
      completion: { values: [], hasMore: false },
    })
    expect(last()).toMatchObject({ server: 'b', params: { ref: { uri: 'x://{id}' } } })
    for (const ref of [{ type: 'ref/else' }, { type: 'ref/prompt' }])
      expect(await (await say('completion/complete', { ref })).failure()).toMatchObject({ code: -32602 })
  })

  test('logging/setLevel is answered by the gateway and sent to every server that logs', async () => {
    const { say, arrivals } = routed({ a: { capabilities: { logging: {} } }, b: { capabilities: {} }, c: {} })
    expect(await (await say('logging/setLevel', { level: 'info' })).result()).toEqual({})
    await expect.poll(() => arrivals.map(({ server }) => server)).toEqual(['a', 'c'])
    expect(await (await say('logging/setLevel', { level: 'loud' })).failure()).toMatchObject({ code: -32602 })
  })

  test('H21: an unknown method goes to the server with its extension, to the owner of its reference, or nowhere', async () => {
    const extensions = { 'com.acme/acme': {} }
    const { say, last } = routed({
      a: { lists: { ...tools('x'), resources: [{ uri: 'r:1' }] } },
      b: { capabilities: { extensions } },
    })
    await (await say('acme/do', { n: 1 })).result()
    expect(last()).toMatchObject({ server: 'b', params: { n: 1 } })
    await (await say('other/do', { name: 'a__x' })).result()
    expect(last()).toMatchObject({ server: 'a', params: { name: 'x' } })
    await (await say('other/do', { uri: 'r:1' })).result()
    expect(last()).toMatchObject({ server: 'a', method: 'other/do' })
    expect(await (await say('other/do', { n: 1 })).failure()).toMatchObject({ code: -32601 })
  })

  test('the id of a task leads to its server, and only that of the caller’s own', async () => {
    const serverOfTask = ({ principal }: Caller, id: string) => (principal === 'ann' && id === 't1' ? 'a' : undefined)
    const { say, last } = routed({ a: { lists: tools('x') }, b: {} }, {}, { serverOfTask })
    const revision = '2025-11-25' as const
    await (await say('tasks/get', { taskId: 't1' }, { caller: { principal: 'ann', revision } })).result()
    expect(last()).toMatchObject({ server: 'a', method: 'tasks/get' })
    const unknown = { code: -32602, data: { reason: 'unknown_task' } }
    for (const [principal, taskId] of [
      ['bob', 't1'],
      ['ann', 't2'],
    ] as const) {
      const refused = await (await say('tasks/get', { taskId }, { caller: { principal, revision } })).failure()
      expect(refused).toMatchObject(unknown)
    }
    expect(await (await say('tasks/get', { taskId: 't1' })).failure()).toMatchObject({ code: -32021 })
  })

  test('the only server gets every method and notification as it is', async () => {
    const { say, last } = routed({ a: {} })
    await (await say('other/do', { n: 1 })).result()
    expect(last()).toEqual({ server: 'a', method: 'other/do', params: { n: 1 } })
    await say('notifications/acme', {}, { kind: 'notification' })
    await expect.poll(() => last()?.method).toBe('notifications/acme')
  })

  test('H22: changed roots are sent to the servers that a session has used, and to no other', async () => {
    const { say, arrivals } = routed({ a: { lists: tools('x') }, b: { lists: tools('y') } })
    const caller = { session: 's1', revision: '2025-06-18' as const }
    await (await say('tools/call', { name: 'x' }, { caller })).result()
    await (await say('tools/call', { name: 'y' }, { caller: { ...caller, session: 's2' } })).result()
    await say('notifications/roots/list_changed', {}, { kind: 'notification', caller })
    await say('notifications/other', {}, { kind: 'notification', caller })
    await expect
      .poll(() => arrivals.slice(2).map(({ server, exchange }) => [server, exchange.method]))
      .toEqual([['a', 'notifications/roots/list_changed']])
  })
})

describe('E7, H24: apps', () => {
  test('an app calls the tools of its own server by their own names', async () => {
    const lists = { ...tools('refresh'), resources: [{ uri: 'ui://app/main' }] }
    const { say, last } = routed({
      a: { lists, answer: has('ui://app/main') },
      b: { lists, answer: has('ui://app/main') },
    })
    expect(await (await say('tools/call', { name: 'refresh' })).failure()).toMatchObject({ code: -32602 })
    expect(await (await say('resources/read', { uri: 'ui://b.gw/app/main' })).result()).toMatchObject({
      contents: [{ uri: 'ui://b.gw/app/main' }],
    })
    await say('tools/call', { name: 'refresh' })
    await expect.poll(last).toMatchObject({ server: 'b', params: { name: 'refresh' } })
    await (await say('resources/read', { uri: 'ui://app/main' })).result()
    await say('tools/call', { name: 'refresh' })
    await expect.poll(last).toMatchObject({ server: 'a', params: { name: 'refresh' } })
    expect(
      await (await say('tools/call', { name: 'refresh' }, { caller: { principal: 'bob' } })).failure(),
    ).toMatchObject({ code: -32602 })
  })
})
