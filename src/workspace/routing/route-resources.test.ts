import { describe, expect, test, vi } from 'vitest'
import { gives, has, routed } from '../../../test/support/routes.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

const resources = (...uris: string[]) => ({ resources: uris.map(uri => ({ uri, name: uri })) })
const readers = (arrivals: readonly { server: string; exchange: Exchange }[]) =>
  arrivals.filter(({ exchange }) => exchange.method === 'resources/read').map(({ server }) => server)

describe('H13: a URI that two members have', () => {
  const both = () =>
    routed({
      a: { lists: resources('r:1'), answer: has('r:1') },
      b: { lists: resources('r:1'), answer: has('r:1') },
    })

  test('belongs to the first one, the other’s has an alias, and each answer has the URI that was asked for', async () => {
    const { say, last } = both()
    expect(await (await say('resources/read', { uri: 'r:1' })).result()).toEqual({
      contents: [{ uri: 'r:1', text: 'content' }],
    })
    expect(last()?.server).toBe('a')
    expect(await (await say('resources/read', { uri: 'x-mcp-b+r:1' })).result()).toEqual({
      contents: [{ uri: 'x-mcp-b+r:1', text: 'content' }],
    })
    expect(last()).toMatchObject({ server: 'b', params: { uri: 'r:1' } })
  })

  test('has its alias in the contents of the other, too', async () => {
    const parts = gives({ contents: [{ uri: 'r:1' }, { uri: 'r:2' }] })
    const { say } = routed({ a: { lists: resources('r:1') }, b: { lists: resources('r:1', 'r:2'), answer: parts } })
    expect(await (await say('resources/read', { uri: 'r:2' })).result()).toEqual({
      contents: [{ uri: 'x-mcp-b+r:1' }, { uri: 'r:2' }],
    })
  })

  test('an error has the URI that was asked for, too', async () => {
    const { say } = both()
    const failure = (await say('resources/read', { uri: 'x-mcp-b+r:2' })).failure()
    expect(await failure).toMatchObject({ data: { uri: 'x-mcp-b+r:2' } })
  })

  test('whole-string aliases in arguments are replaced by the original URI', async () => {
    const { say, last } = routed({
      a: { lists: { tools: [{ name: 'x' }] } },
      b: { lists: { tools: [{ name: 'y' }] } },
    })
    const args = { uri: 'x-mcp-b+r:1', list: ['ui://b.gw/app'], text: 'see x-mcp-b+r:1', other: 'x-mcp-a+r:1' }
    await (await say('tools/call', { name: 'y', arguments: args })).result()
    expect(last()?.params).toEqual({
      name: 'y',
      arguments: { uri: 'r:1', list: ['ui://app'], text: 'see x-mcp-b+r:1', other: 'x-mcp-a+r:1' },
    })
  })
})

describe('H14: the owner of a URI', () => {
  const linking =
    (uri: string) =>
    ({ sink, method, params }: Exchange): void => {
      if (method === 'tools/call')
        void sink({ kind: 'result', result: Json.of({ content: [{ type: 'resource_link', uri, name: 'n' }] }) })
      else has(uri)({ sink, method, params } as Exchange)
    }

  test('a link is read from the server that sent it, for the caller that got it', async () => {
    const { say, arrivals } = routed({
      a: { answer: has('r:9') },
      b: { lists: { tools: [{ name: 'x' }] }, answer: linking('r:9') },
    })
    await (await say('tools/call', { name: 'x' })).result()
    await (await say('resources/read', { uri: 'r:9' })).result()
    await (await say('resources/read', { uri: 'r:9' }, { caller: { principal: 'bob' } })).result()
    expect(readers(arrivals)).toEqual(['b', 'a'])
  })

  test('a link to a URI that another server has, too, is shown as an alias', async () => {
    const { say } = routed({
      a: { lists: resources('r:1') },
      b: { lists: { tools: [{ name: 'x' }], ...resources('r:1') }, answer: linking('r:1') },
    })
    expect(await (await say('tools/call', { name: 'x' })).result()).toEqual({
      content: [{ type: 'resource_link', uri: 'x-mcp-b+r:1', name: 'n' }],
    })
  })

  test('a link to a URI that only another server lists belongs to the server that sent it', async () => {
    const { say, arrivals } = routed({
      a: { lists: resources('r:1'), answer: has('r:1') },
      b: { lists: { tools: [{ name: 'x' }] }, answer: linking('r:1') },
    })
    expect(await (await say('tools/call', { name: 'x' })).result()).toMatchObject({ content: [{ uri: 'x-mcp-b+r:1' }] })
    for (const uri of ['x-mcp-b+r:1', 'r:1']) await (await say('resources/read', { uri })).result()
    expect(readers(arrivals)).toEqual(['b', 'a'])
  })

  test('the closest template decides', async () => {
    const { say, arrivals } = routed({
      a: { lists: { templates: [{ uriTemplate: 'file:///{+path}' }] }, answer: has('file:///x/y', 'file:///b/y') },
      b: { lists: { templates: [{ uriTemplate: 'file:///b/{name}' }] }, answer: has('file:///b/y') },
    })
    await (await say('resources/read', { uri: 'file:///x/y' })).result()
    await (await say('resources/read', { uri: 'file:///b/y' })).result()
    expect(readers(arrivals)).toEqual(['a', 'b'])
  })

  test('the alias of an expanded template leads to its server', async () => {
    const templates = [{ uriTemplate: 'f://{id}' }]
    const { say, last } = routed({ a: { lists: { templates } }, b: { lists: { templates }, answer: has('f://a%20b') } })
    expect(await (await say('resources/read', { uri: 'x-mcp-b+f://a%20b' })).result()).toMatchObject({
      contents: [{ uri: 'x-mcp-b+f://a%20b' }],
    })
    expect(last()).toMatchObject({ server: 'b', params: { uri: 'f://a%20b' } })
  })
})

describe('a URI that no server lists', () => {
  const three = () => routed({ a: { answer: has() }, b: { answer: has('r:9') }, c: { answer: has('r:9') } })

  test('is tried in the order of the workspace, and found at once the next time', async () => {
    const { say, arrivals } = three()
    await (await say('resources/read', { uri: 'r:9' })).result()
    await (await say('resources/read', { uri: 'r:9' })).result()
    expect(readers(arrivals)).toEqual(['a', 'b', 'b'])
  })

  test('is tried again if it has moved', async () => {
    let owner = 'a'
    const at = (server: string) => (exchange: Exchange) => has(...(owner === server ? ['r:9'] : []))(exchange)
    const { say, arrivals } = routed({ a: { answer: at('a') }, b: { answer: at('b') } })
    for (const next of ['a', 'b']) {
      owner = next
      await (await say('resources/read', { uri: 'r:9' })).result()
    }
    expect(readers(arrivals)).toEqual(['a', 'a', 'b'])
  })

  test.each([
    ['2026-07-28', -32602],
    ['2025-11-25', -32002],
    ['2024-11-05', -32002],
  ] as const)('and that no server has is unknown to a caller of %s: %i', async (revision, code) => {
    const failure = (await three().say('resources/read', { uri: 'r:0' }, { caller: { revision } })).failure()
    expect(await failure).toMatchObject({ code, message: 'Unknown resource: r:0', data: { uri: 'r:0' } })
  })

  test('a server without it is not tried again for a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { say, arrivals } = three()
    for (const _ of [1, 2]) await (await say('resources/read', { uri: 'r:0' })).failure()
    expect(readers(arrivals)).toEqual(['a', 'b', 'c'])
    vi.advanceTimersByTime(60_001)
    await (await say('resources/read', { uri: 'r:0' })).failure()
    expect(readers(arrivals)).toHaveLength(6)
    vi.useRealTimers()
  })

  test('an anonymous caller has no cached result', async () => {
    const { say, arrivals } = three()
    for (const _ of [1, 2])
      await (await say('resources/read', { uri: 'r:9' }, { caller: { principal: undefined } })).result()
    expect(readers(arrivals)).toEqual(['a', 'b', 'a', 'b'])
  })

  test('a failing member does not hide it at another, and its error is the answer if no member has it', async () => {
    const down = ({ sink }: Exchange) =>
      void sink({ kind: 'failure', error: rpcError('internal', 'Server "a" is down', Json.of({ upstream: 'a' })) })
    const { say } = routed({ a: { answer: down }, b: { answer: has('r:9') } })
    expect(await (await say('resources/read', { uri: 'r:9' })).result()).toMatchObject({ contents: [{ uri: 'r:9' }] })
    expect(await (await say('resources/read', { uri: 'r:0' })).failure()).toMatchObject({
      code: -32603,
      data: { upstream: 'a' },
    })
  })

  test('a silent member is cancelled after the timeout', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    const { say, arrivals } = routed({ a: { answer: () => {} }, b: { answer: has('r:9') } })
    const reading = await say('resources/read', { uri: 'r:9' })
    while (arrivals.length === 0) await Promise.resolve()
    vi.advanceTimersByTime(10_000)
    expect(await reading.result()).toMatchObject({ contents: [{ uri: 'r:9' }] })
    expect(arrivals[0]?.exchange.signal.reason).toEqual({ kind: 'expired' })
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
  })

  test('a cancelled call ends the probe', async () => {
    const { say, arrivals } = routed({ a: { answer: () => {} }, b: { answer: has('r:9') } })
    const reading = await say('resources/read', { uri: 'r:9' })
    await expect.poll(() => arrivals.length).toBe(1)
    reading.abort.abort({ kind: 'gone' })
    expect([arrivals[0]?.exchange.signal.reason, readers(arrivals)]).toEqual([{ kind: 'gone' }, ['a']])
  })
})

test('subscriptions are routed like reads', async () => {
  const { say, last } = routed({
    a: { lists: resources('r:1') },
    b: { lists: resources('r:1', 'r:2'), answer: gives({}) },
  })
  const caller = { revision: '2025-06-18' as const, session: 's' }
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
    await (await say(method, { uri: 'r:2' }, { caller })).result()
    expect(last()).toEqual({ server: 'b', method, params: { uri: 'r:2' } })
    await (await say(method, { uri: 'x-mcp-b+r:1' }, { caller })).result()
    expect(last()).toEqual({ server: 'b', method, params: { uri: 'r:1' } })
  }
})

test('a read without a URI is rejected', async () => {
  expect(await (await routed({ a: {}, b: {} }).say('resources/read', {})).failure()).toMatchObject({ code: -32602 })
})
