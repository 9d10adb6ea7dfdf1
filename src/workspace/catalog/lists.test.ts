import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../../test/support/scripted-member.ts'
import { CURSOR_KEYS, toolsIn, workspaceOf } from '../../../test/support/workspace.ts'
import { rpcError } from '../../protocol/errors.ts'
import { EVERYTHING } from '../../protocol/policy.ts'
import { NEWEST_LEGACY } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { ListPages } from './pages.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const UNAVAILABLE = 'dragoman/unavailable'
const SERVERS = 'dragoman/servers'
const listing = (answer: () => PlainObject | Promise<PlainObject>) => ({ 'tools/list': answer })
const ready = (server: string, ...names: string[]) =>
  scriptedMember(server, { answers: listing(() => ({ tools: toolsOf(...names) })) })
const silent = (server: string) => scriptedMember(server, { answers: listing(() => new Promise<never>(() => {})) })

test('a cold list waits for slow servers until the timeout, and names the missing ones', async () => {
  const w = workspaceOf([ready('a', 'x'), silent('b'), ready('c', 'y')])
  const asking = w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(11_999)
  const state = await Promise.race([asking, Promise.resolve('waiting')])
  expect(state).toBe('waiting')
  await vi.advanceTimersByTimeAsync(1)
  const list = await asking
  expect(toolsIn(list)).toEqual(['a__x', 'c__y'])
  expect(list).toMatchObject({ _meta: { [UNAVAILABLE]: ['b'] }, ttlMs: 0 })
  w.close()
})

test('a silent server is waited for only once', async () => {
  const w = workspaceOf([ready('a', 'x'), silent('b')])
  const first = w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(12_000)
  await first
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x'])
  w.close()
})

test('a late server is announced by list_changed', async () => {
  let come: (list: PlainObject) => void = () => {}
  const late = scriptedMember('b', { answers: listing(() => new Promise(resolve => (come = resolve))) })
  const w = workspaceOf([ready('a', 'x'), late])
  const listener = w.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  const first = w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(12_000)
  await first
  await vi.advanceTimersByTimeAsync(1000)
  expect(listener.notices).toEqual(['notifications/subscriptions/acknowledged'])
  come({ tools: toolsOf('y') })
  await vi.advanceTimersByTimeAsync(200)
  expect(listener.notices.slice(1)).toEqual(['notifications/tools/list_changed'])
  const list = await w.ask('tools/list')
  expect(toolsIn(list)).toEqual(['a__x', 'b__y'])
  expect(list).not.toHaveProperty('_meta')
  w.close()
})

test('a list says which server has each item, if the request asks for it', async () => {
  const w = workspaceOf([ready('a', 'x', 'y'), ready('b', 'z')], { names: 'plain' })
  const list = await w.ask('tools/list', { _meta: { [SERVERS]: true } })
  expect([toolsIn(list), list]).toMatchObject([['x', 'y', 'z'], { _meta: { [SERVERS]: ['a', 'a', 'b'] } }])
  expect(await w.ask('tools/list')).not.toHaveProperty('_meta')
  w.close()
})

test('a first complete list is not announced', async () => {
  const w = workspaceOf([ready('a', 'x'), ready('b', 'y')])
  const listener = w.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(listener.notices).toEqual(['notifications/subscriptions/acknowledged'])
  w.close()
})

test('a server that is down is not waited for', async () => {
  const down = silent('b')
  down.turn('down')
  const w = workspaceOf([ready('a', 'x'), down])
  expect(await w.ask('tools/list')).toMatchObject({ _meta: { [UNAVAILABLE]: ['b'] } })
  expect(down.asked).toEqual([])
  w.close()
})

test('a stale list is served at once and fetched once in the background', async () => {
  let names = ['x']
  const a = scriptedMember('a', { revision: NEWEST_LEGACY, answers: listing(() => ({ tools: toolsOf(...names) })) })
  const w = workspaceOf([a, ready('b', 'y')])
  await w.ask('tools/list')
  expect(a.count('tools/list')).toBe(1)
  names = ['x', 'new']
  await vi.advanceTimersByTimeAsync(59_000)
  await w.ask('tools/list')
  expect(a.count('tools/list')).toBe(1)
  await vi.advanceTimersByTimeAsync(2000)
  const both = await Promise.all([w.ask('tools/list'), w.ask('tools/list')])
  expect(both.map(toolsIn)).toEqual([
    ['a__x', 'b__y'],
    ['a__x', 'b__y'],
  ])
  await vi.advanceTimersByTimeAsync(0)
  expect(a.count('tools/list')).toBe(2)
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x', 'a__new', 'b__y'])
  w.close()
})

test('the last list of a failing server is served for ten minutes, then removed with list_changed', async () => {
  let isBroken = false
  const a = scriptedMember('a', {
    answers: { 'tools/list': () => (isBroken ? rpcError('internal', 'broken') : { tools: toolsOf('x') }) },
  })
  const w = workspaceOf([a, ready('b', 'y')])
  await w.ask('tools/list')
  const listener = w.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await vi.advanceTimersByTimeAsync(0)
  isBroken = true
  a.say('notifications/tools/list_changed')
  await vi.advanceTimersByTimeAsync(590_000)
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x', 'b__y'])
  expect(listener.notices).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(listener.notices.slice(1)).toEqual(['notifications/tools/list_changed'])
  expect(await w.ask('tools/list')).toMatchObject({ _meta: { [UNAVAILABLE]: ['a'] } })
  isBroken = false
  await vi.advanceTimersByTimeAsync(61_000)
  await w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(1000)
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x', 'b__y'])
  expect(listener.notices).toHaveLength(3)
  w.close()
})

test('a server whose list fails is fetched with backoff', async () => {
  const a = scriptedMember('a', { answers: { 'tools/list': () => rpcError('internal', 'broken') } })
  const w = workspaceOf([a, ready('b', 'y')])
  for (let second = 0; second < 300; second++) {
    await w.ask('tools/list')
    await vi.advanceTimersByTimeAsync(1000)
  }
  expect(a.count('tools/list')).toBeGreaterThan(5)
  expect(a.count('tools/list')).toBeLessThan(15)
  w.close()
})

test('a strict workspace rejects an incomplete list, and names the missing servers', async () => {
  const w = workspaceOf([ready('a', 'x'), silent('b')], { strict: true })
  const asking = w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(12_000)
  expect(await asking).toMatchObject({
    code: -32603,
    message: expect.stringContaining('no list from b'),
    data: { reason: 'incomplete', upstream: 'b', missing: ['b'] },
  })
  w.close()
})

test('a member without the capability is not fetched, and is not missing', async () => {
  const a = scriptedMember('a', { capabilities: { tools: {} } })
  const b = scriptedMember('b', { answers: { 'prompts/list': () => ({ prompts: [{ name: 'p' }] }) } })
  const w = workspaceOf([a, b])
  const list = await w.ask('prompts/list')
  expect(list).toMatchObject({ prompts: [{ name: 'b__p' }] })
  expect(list).not.toHaveProperty('_meta')
  expect(a.count('prompts/list')).toBe(0)
  w.close()
})

test('a member that does not know the method has an empty list', async () => {
  const w = workspaceOf([scriptedMember('a'), ready('b', 'y')])
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['b__y'])
  w.close()
})

test('a question during a list fetch is rejected', async () => {
  const a = scriptedMember('a', {
    answers: {
      'tools/list': (_, { sink }) =>
        new Promise(resolve => {
          void sink({
            kind: 'question',
            method: 'roots/list',
            params: {} as never,
            withdrawn: { reason: undefined, onAbort: () => () => {} },
            answer: reply => resolve({ tools: toolsOf(reply.kind) }),
          })
        }),
    },
  })
  const w = workspaceOf([a, ready('b')])
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__error'])
  w.close()
})

test('public lists are shared by all callers, private ones are not, and hints have the remaining ttl', async () => {
  const hinted = (server: string, cacheScope: string) =>
    scriptedMember(server, { answers: listing(() => ({ tools: toolsOf('x'), ttlMs: 60_000, cacheScope })) })
  const [open, closed] = [hinted('open', 'public'), hinted('closed', 'private')]
  const w = workspaceOf([open])
  expect(await w.ask('tools/list')).toMatchObject({ ttlMs: 60_000, cacheScope: 'public' })
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await w.ask('tools/list', {}, { principal: 'bob' })).toMatchObject({ ttlMs: 40_000, cacheScope: 'public' })
  expect(open.count('tools/list')).toBe(1)
  const both = workspaceOf([open, closed])
  await both.ask('tools/list')
  await vi.advanceTimersByTimeAsync(1000)
  expect(await both.ask('tools/list', {}, { principal: 'bob' })).toMatchObject({ ttlMs: 59_000, cacheScope: 'private' })
  expect(closed.count('tools/list')).toBe(2)
  expect(open.count('tools/list')).toBe(2)
  w.close()
  both.close()
})

test('a list that is no longer public reaches only the caller it was fetched for', async () => {
  let scope = 'public'
  const a = scriptedMember('a', {
    answers: {
      'tools/list': (_, { caller }) => ({ tools: toolsOf(caller.principal ?? '?'), ttlMs: 1000, cacheScope: scope }),
    },
  })
  const w = workspaceOf([a], { names: 'plain' })
  expect(toolsIn(await w.ask('tools/list', {}, { principal: 'ann' }))).toEqual(['ann'])
  expect(toolsIn(await w.ask('tools/list', {}, { principal: 'bob' }))).toEqual(['ann'])
  scope = 'private'
  await vi.advanceTimersByTimeAsync(2000)
  await w.ask('tools/list', {}, { principal: 'bob' })
  await vi.advanceTimersByTimeAsync(10)
  expect(toolsIn(await w.ask('tools/list', {}, { principal: 'bob' }))).toEqual(['bob'])
  expect(toolsIn(await w.ask('tools/list', {}, { principal: 'ann' }))).not.toContain('bob')
  await vi.advanceTimersByTimeAsync(2000)
  await w.ask('tools/list', {}, { principal: 'ann' })
  await vi.advanceTimersByTimeAsync(10)
  expect(toolsIn(await w.ask('tools/list', {}, { principal: 'ann' }))).toEqual(['ann'])
  w.close()
})

test('callers with other capabilities are served the known list at once, and then their own', async () => {
  let answer: () => void = () => {}
  const a = scriptedMember('a', {
    answers: {
      'tools/list': async (_, { caller }) => {
        const names = caller.capabilities.entries().map(([name]) => name)
        if (names.length === 1) await new Promise<void>(resolve => (answer = resolve))
        return { tools: toolsOf(...names) }
      },
    },
  })
  const w = workspaceOf([a])
  const [both, one] = [{ capabilities: Json.of({ roots: {}, sampling: {} }) }, { capabilities: Json.of({ roots: {} }) }]
  expect(toolsIn(await w.ask('tools/list', {}, both))).toHaveLength(2)
  const listener = w.begin('subscriptions/listen', { notifications: { toolsListChanged: true } }, one)
  const asking = w.ask('tools/list', {}, one)
  await vi.advanceTimersByTimeAsync(50)
  const first = await asking
  expect(toolsIn(first)).toHaveLength(2)
  expect(first).toMatchObject({ ttlMs: 0, cacheScope: 'private' })
  answer()
  await vi.advanceTimersByTimeAsync(1000)
  expect(listener.notices.slice(1)).toEqual(['notifications/tools/list_changed'])
  expect(toolsIn(await w.ask('tools/list', {}, one))).toHaveLength(1)
  const sorted = { capabilities: Json.of({ sampling: {}, roots: {} }) }
  expect(toolsIn(await w.ask('tools/list', {}, sorted))).toHaveLength(2)
  expect(a.count('tools/list')).toBe(2)
  w.close()
})

test("a list for an anonymous caller is not fetched in its client's session", async () => {
  const a = ready('a', 'x')
  const w = workspaceOf([a])
  await w.ask('tools/list', {}, { principal: undefined, session: 's1' })
  await w.ask('tools/list', {}, { principal: undefined, session: 's2' })
  expect(a.count('tools/list')).toBe(1)
  expect(a.asked.map(({ caller }) => caller.session)).not.toContain('s1')
  w.close()
})

test('a hidden server is neither listed nor fetched', async () => {
  const [a, b] = [ready('a', 'x', 'secret'), ready('b', 'y')]
  const w = workspaceOf([a, b])
  const policy = { allow: {}, deny: { tools: ['a/secret'], servers: ['b'] }, readOnly: false }
  expect(toolsIn(await w.ask('tools/list', {}, { policy }))).toEqual(['a__x'])
  expect(b.asked).toEqual([])
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x', 'a__secret', 'b__y'])
  w.close()
})

test('a list without servers has no ttl', async () => {
  const w = workspaceOf([ready('a', 'x')], { policy: { ...EVERYTHING, deny: { servers: ['*'] } } })
  expect(await w.ask('tools/list')).toMatchObject({ tools: [], ttlMs: 0, cacheScope: 'private' })
  w.close()
})

test('a cursor is valid only for its own list', async () => {
  let names = Array.from({ length: 2500 }, (_, i) => `t${i}`)
  const a = scriptedMember('a', { answers: { ...listing(() => ({ tools: toolsOf(...names) })) } })
  const w = workspaceOf([a])
  const first = await w.ask('tools/list')
  const second = await w.ask('tools/list', { cursor: first.nextCursor as string })
  const third = await w.ask('tools/list', { cursor: second.nextCursor as string })
  expect([first, second, third].flatMap(toolsIn)).toEqual(names.map(name => `${name}`))
  expect(third).not.toHaveProperty('nextCursor')
  const refused = { code: -32602, message: expect.stringContaining('list again without a cursor') }
  expect(await w.ask('prompts/list', { cursor: first.nextCursor as string })).toMatchObject(refused)
  expect(await w.ask('tools/list', { cursor: 'yesterday' })).toMatchObject(refused)
  expect(await w.ask('tools/list', { cursor: 7 })).toMatchObject({ code: -32602 })
  names = names.slice(1)
  await vi.advanceTimersByTimeAsync(10_000)
  await w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(10)
  expect(await w.ask('tools/list', { cursor: first.nextCursor as string }, { principal: 'bob' })).toMatchObject(refused)
  w.close()
})

describe('a list that changes while a client pages through it', () => {
  const many = (word: string, count = 2500) => Array.from({ length: count }, (_, i) => `${word}${i}`)
  const refused = { code: -32602, message: expect.stringContaining('list again without a cursor') }

  /** A workspace whose second server answers only after the first page was given out. */
  const joining = async (rules: Parameters<typeof workspaceOf>[1] = {}) => {
    const [a, b] = [ready('a', ...many('t')), ready('b', 'y')]
    b.turn('down')
    const w = workspaceOf([a, b], rules)
    const first = await w.ask('tools/list')
    b.turn('up')
    w.say('b', 'ready')
    await vi.advanceTimersByTimeAsync(1000)
    expect(toolsIn(await w.ask('tools/list'))).toHaveLength(1000)
    await vi.advanceTimersByTimeAsync(1000)
    return { w, a, b, first }
  }

  test('continues unchanged when a server is added', async () => {
    const { w, first } = await joining()
    await vi.advanceTimersByTimeAsync(50_000)
    const second = await w.ask('tools/list', { cursor: first.nextCursor as string })
    await vi.advanceTimersByTimeAsync(50_000)
    const third = await w.ask('tools/list', { cursor: second.nextCursor as string })
    expect([first, second, third].flatMap(toolsIn)).toEqual(many('a__t'))
    expect(third).not.toHaveProperty('nextCursor')
    w.close()
  })

  test('expires a minute after its last page', async () => {
    const { w, first } = await joining()
    await vi.advanceTimersByTimeAsync(58_001)
    expect(await w.ask('tools/list', { cursor: first.nextCursor as string })).toMatchObject(refused)
    w.close()
  })

  test('is kept for its principal and its policy only', async () => {
    const { w, first } = await joining()
    const cursor = first.nextCursor as string
    const policy = { allow: {}, deny: { tools: ['a/t2*'] }, readOnly: false }
    expect(await w.ask('tools/list', { cursor }, { principal: 'bob' })).toMatchObject(refused)
    expect(await w.ask('tools/list', { cursor }, { policy })).toMatchObject(refused)
    expect(toolsIn(await w.ask('tools/list', { cursor }))).toHaveLength(1000)
    w.close()
  })

  test('continues when the configuration adds a server, but not when it hides one', async () => {
    const { w, a, b, first } = await joining()
    const cursor = first.nextCursor as string
    const larger = workspaceOf([a, b, ready('c', 'z')], {}, { previous: w })
    expect(toolsIn(await larger.ask('tools/list', { cursor }))).toHaveLength(1000)
    const policy = { allow: {}, deny: { tools: ['a/t1*'] }, readOnly: false }
    const stricter = workspaceOf([a, b], { policy }, { previous: larger })
    expect(await stricter.ask('tools/list', { cursor })).toMatchObject(refused)
    for (const workspace of [w, larger, stricter]) workspace.close()
  })

  test('is one of a few per principal, and evicts none of another principal', async () => {
    let names = many('t')
    const a = scriptedMember('a', { answers: listing(() => ({ tools: toolsOf(...names) })) })
    const w = workspaceOf([a, ready('b')])
    const bob = { principal: 'bob' }
    w.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    const begun = (await w.ask('tools/list', {}, bob)).nextCursor as string
    const cursors: string[] = []
    for (let i = 0; i < 20; i++) {
      names = many(`v${i}x`, 1100)
      a.say('notifications/tools/list_changed')
      await vi.advanceTimersByTimeAsync(2500)
      cursors.push((await w.ask('tools/list')).nextCursor as string)
      await w.ask('tools/list', { cursor: begun }, bob)
    }
    const pages = new ListPages(CURSOR_KEYS)
    expect(new Set(cursors.map(cursor => pages.openCursor(cursor)?.hash)).size).toBe(20)
    const answers = await Promise.all(cursors.map(cursor => w.ask('tools/list', { cursor })))
    expect(answers.filter(answer => 'tools' in answer).length).toBeLessThanOrEqual(8)
    expect(toolsIn(await w.ask('tools/list', { cursor: begun }, bob))).toHaveLength(1000)
    w.close()
  })
})

test('a cached list of ten thousand tools is built once', async () => {
  const names = Array.from({ length: 10_000 }, (_, i) => `tool_${i}`)
  const a = scriptedMember('a', {
    revision: NEWEST_LEGACY,
    answers: listing(() => ({ tools: toolsOf(...names) })),
  })
  const w = workspaceOf([a, ready('b', 'y')])
  const pages: { bytes: Buffer | undefined }[] = []
  const page = () => {
    const asked = w.begin('tools/list')
    const [frame] = asked.frames
    pages.push({ bytes: frame?.kind === 'result' ? frame.result.get('tools')?.toBytes() : undefined })
  }
  await w.ask('tools/list')
  page()
  page()
  expect(pages[0]?.bytes).toBeDefined()
  expect(pages[0]?.bytes?.buffer).toBe(pages[1]?.bytes?.buffer) // the same memory, not an equal one
  w.close()
})

describe('a cursor', () => {
  const many = Array.from({ length: 1500 }, (_, i) => `t${i}`)
  const open = (over: Parameters<typeof workspaceOf>[2] = {}) =>
    workspaceOf(
      ['a', 'b'].map(name => scriptedMember(name, { answers: listing(() => ({ tools: toolsOf(...many) })) })),
      {},
      over,
    )

  test('of one replica continues the list at another with the same keys, also while they are replaced', async () => {
    const [one, two] = [open(), open({ cursorKeys: [Buffer.alloc(32, 9), ...CURSOR_KEYS] })]
    const [first, same] = [await one.ask('tools/list'), await two.ask('tools/list')]
    const [here, there] = await Promise.all(
      [one, two].map(workspace => workspace.ask('tools/list', { cursor: first.nextCursor as string })),
    )
    expect(same.tools).toEqual(first.tools)
    expect(toolsIn(there ?? {})).toHaveLength(1000)
    expect(there?.tools).toEqual(here?.tools)
    for (const workspace of [one, two]) workspace.close()
  })

  test('of another gateway is rejected', async () => {
    const [one, two] = [open(), open({ cursorKeys: [Buffer.alloc(32, 9)] })]
    const { nextCursor } = await one.ask('tools/list')
    expect(await two.ask('tools/list', { cursor: nextCursor as string })).toMatchObject({
      code: -32602,
      message: expect.stringContaining('list again without a cursor'),
    })
    for (const workspace of [one, two]) workspace.close()
  })
})
