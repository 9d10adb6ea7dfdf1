import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../../test/support/scripted-member.ts'
import { CURSOR_KEYS, callerOf } from '../../../test/support/workspace.ts'
import { defaultRules } from '../../config/snapshot.ts'
import { Abort } from '../../protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { MODERN, type Revision } from '../../protocol/revisions.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { LearntServer } from '../catalog/learnt-server.ts'
import type { Member } from '../member.ts'
import { openWorkspace } from '../workspace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const CHANGED = 'notifications/tools/list_changed'
const LISTEN = { notifications: { toolsListChanged: true } }
const RAW = '{"name":"x","inputSchema":{"maximum":12345678901234567890},"later":1.0}'

const learntWith = (items: readonly string[], rest: PlainObject = {}, revision: Revision = MODERN): LearntServer => ({
  revision,
  discovery: Json.of({ capabilities: { tools: {} }, instructions: `Learnt ${items.length}.` }),
  lists: {
    tools: {
      items: items
        .map(item => Json.parse(Buffer.from(item)))
        .map(native => ({ original: `${native.get('name')}`, native })),
      rest: Json.of(rest),
    },
  },
})

/** A workspace with one server that answers lists when the test says so. */
const open = (learnt: LearntServer | undefined, more: Partial<Member> = {}) => {
  const held: (() => void)[] = []
  const learntListeners = new Set<() => void>()
  let known = learnt
  let isFailing = false
  const hold = (result: (exchange: Exchange) => PlainObject) => (_: Json, exchange: Exchange) =>
    new Promise<PlainObject>(resolve =>
      held.push(() => resolve(isFailing ? { code: -1, message: 'no' } : result(exchange))),
    )
  let tools = ['own']
  const scripted = scriptedMember('s', {
    answers: {
      'tools/list': hold(() => ({ tools: toolsOf(...tools), ttlMs: 5 })),
      'server/discover': hold(() => ({ capabilities: {}, instructions: 'Own.' })),
      'tools/call': () => ({ content: [] }),
    },
  })
  const member: Member = {
    ...scripted,
    ...more,
    learnt: {
      get: () => known,
      onLearnt: listener => {
        learntListeners.add(listener)
        return () => void learntListeners.delete(listener)
      },
    },
  }
  const config = { name: 'w', servers: ['s'], ...defaultRules(1) }
  const workspace = openWorkspace(config, [member], {
    log: SILENT,
    identity: Json.of({ name: 'd', version: '0' }),
    cursorKeys: CURSOR_KEYS,
  })
  onTestFinished(() => workspace.close())
  const ask = (method: string, params: PlainObject = {}, caller: Partial<Caller> = {}) => {
    const frames: Frame[] = []
    const abort = new Abort()
    const sink = (frame: Frame) => void frames.push(frame)
    workspace.dispatch({
      kind: 'request',
      method,
      params: Json.of(params),
      caller: callerOf(caller),
      signal: abort,
      sink,
    })
    return {
      frames,
      abort,
      result: () => frames.flatMap(frame => (frame.kind === 'result' ? [`${frame.result}`] : []))[0],
      notices: () => frames.flatMap(frame => (frame.kind === 'notice' ? [frame.method] : [])),
    }
  }
  return {
    ask,
    scripted,
    learn: (next: LearntServer) => {
      known = next
      for (const listener of learntListeners) listener()
    },
    answerAll: async (...names: string[]) => {
      tools = names
      for (const release of held.splice(0)) release()
      await vi.advanceTimersByTimeAsync(0)
    },
    fail: () => {
      isFailing = true
    },
    learntListeners,
    close: workspace.close,
  }
}

const moment = (ms = 3000): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

describe('a server that is slow to answer', () => {
  test('is answered for with everything it sent to the gateway, but for the time that it may be cached', async () => {
    const { ask } = open(learntWith([RAW], { resultType: 'complete', ttlMs: 60_000, vendor: [1], _meta: { a: 1 } }))
    const list = ask('tools/list')
    await moment(2999)
    expect(list.frames).toEqual([])
    await moment(1)
    expect(list.result()).toBe(`{"resultType":"complete","ttlMs":0,"vendor":[1],"_meta":{"a":1},"tools":[${RAW}]}`)
  })

  test('corrects the list behind the answer, and is asked itself from then on', async () => {
    const { ask, answerAll, scripted } = open(learntWith([RAW]))
    const [listener, other] = [
      ask('subscriptions/listen', LISTEN),
      ask('subscriptions/listen', LISTEN, { principal: 'bob' }),
    ]
    ask('tools/list')
    await moment()
    await answerAll('x', 'new')
    expect([listener.notices().filter(method => method === CHANGED), other.notices()]).toMatchObject([
      [CHANGED],
      ['notifications/subscriptions/acknowledged'],
    ])
    const again = ask('tools/list')
    await moment(5000)
    expect(again.frames).toEqual([])
    await answerAll('x')
    expect(again.result()).toContain('"ttlMs":5')
    expect(scripted.count('tools/list')).toBe(2)
  })

  test('sends no list_changed if the list is the same, nor to a client that has not asked for it', async () => {
    const same = '{"name":"x","inputSchema":{"type":"object"}}'
    const { ask, answerAll } = open(learntWith([same]))
    const listener = ask('subscriptions/listen', LISTEN)
    const deaf = ask('subscriptions/listen', { notifications: { promptsListChanged: true } })
    ask('tools/list')
    await moment()
    await answerAll('x')
    expect(listener.notices()).not.toContain(CHANGED)
    ask('tools/list', {}, { principal: 'bob' })
    await moment()
    await answerAll('y')
    expect(deaf.notices()).not.toContain(CHANGED)
  })

  test('is asked once while further requests are answered for it', async () => {
    const { ask, scripted } = open(learntWith([RAW]))
    ask('tools/list')
    await moment()
    expect([1, 2, 3].map(() => ask('tools/list').result())).toEqual(Array(3).fill(expect.stringContaining('later')))
    expect(scripted.count('tools/list')).toBe(1)
  })

  test('answers itself if it is quick enough', async () => {
    const { ask, answerAll } = open(learntWith([RAW]))
    const list = ask('tools/list')
    await moment(2900)
    await answerAll('own')
    expect(list.result()).toContain('"own"')
    await moment()
    expect(list.frames).toHaveLength(1)
  })

  test('fails with its own error, and is asked again', async () => {
    const { ask, answerAll, fail, scripted } = open(learntWith([RAW]))
    fail()
    const list = ask('tools/list')
    await moment(1)
    await answerAll()
    expect(list.frames).toMatchObject([{ kind: 'failure', error: { code: -1, message: 'no' } }])
    ask('tools/list')
    await moment(1)
    expect(scripted.count('tools/list')).toBe(2)
  })

  test('delays initialize by three seconds at most', async () => {
    const { ask, answerAll } = open(learntWith([RAW]))
    const first = ask('server/discover')
    await moment()
    expect(first.result()).toContain('Learnt 1.')
    await answerAll()
    const second = ask('server/discover')
    await moment(1)
    await answerAll()
    expect(second.result()).toContain('Own.')
  })
})

test.each<[string, PlainObject]>([
  ['a cursor', { cursor: 'c' }],
  ['params that only the server knows', { filter: 'x' }],
])('a list with %s is forwarded', async (_, params) => {
  const { ask, scripted } = open(learntWith([RAW]))
  const list = ask('tools/list', params)
  await moment(5000)
  expect([list.frames, scripted.count('tools/list')]).toEqual([[], 1])
})

test('a list that was never seen, or is too long for one page, is awaited', async () => {
  const long = Array.from({ length: 1000 }, (_, i) => `{"name":"t${i}"}`)
  for (const learnt of [undefined, { ...learntWith([RAW]), lists: {} }, learntWith(long)]) {
    const { ask } = open(learnt)
    const list = ask('tools/list')
    await moment(5000)
    expect(list.frames).toEqual([])
  }
})

test('a server that is down answers itself', async () => {
  const { ask } = open(learntWith([RAW]), { isUp: () => false })
  const list = ask('tools/list')
  await moment(5000)
  expect(list.frames).toEqual([])
})

test('a request that is cancelled in time gets no answer, and the server is told', async () => {
  const { ask, scripted } = open(learntWith([RAW]))
  const list = ask('tools/list')
  await moment(5)
  list.abort.abort({ kind: 'cancelled' })
  await moment(100)
  expect(list.frames).toEqual([])
  expect(scripted.asked.at(-1)?.signal.reason).toEqual({ kind: 'cancelled' })
})

test('a modern client gets the list of a legacy server in its own revision, with the name of the server', async () => {
  const learnt = learntWith([RAW], {}, '2025-06-18')
  const info = { 'io.modelcontextprotocol/serverInfo': { name: 'old' } }
  const { ask } = open({ ...learnt, discovery: learnt.discovery.with('_meta', Json.of(info)) })
  const list = ask('tools/list')
  await moment()
  expect(JSON.parse(list.result() ?? '')).toMatchObject({ resultType: 'complete', ttlMs: 0, _meta: info })
})

test('a change that the gateway itself has seen is announced to callers with a known list', async () => {
  const { ask, learn } = open(learntWith([RAW]))
  const listener = ask('subscriptions/listen', LISTEN)
  ask('tools/list')
  await moment()
  learn(learntWith([RAW], { vendor: 2 }))
  expect(listener.notices()).not.toContain(CHANGED)
  learn(learntWith([RAW, '{"name":"y"}']))
  expect(listener.notices()).toContain(CHANGED)
})

test('a change is announced after the acknowledgement of a subscription', async () => {
  let acknowledge = () => {}
  const upstream = {
    open: async () => ({
      revision: MODERN,
      asks: false,
      dispatch: ({ method, sink }: Exchange) => {
        const notice = {
          kind: 'notice',
          method: 'notifications/subscriptions/acknowledged',
          params: Json.empty,
        } as const
        if (method === 'subscriptions/listen') acknowledge = () => void sink(notice)
        else setTimeout(() => void sink({ kind: 'result', result: Json.of({ tools: [] }) }), 3050)
      },
    }),
    close: async () => {},
  }
  const { ask } = open(learntWith([RAW]), { bridged: upstream })
  const listener = ask('subscriptions/listen', LISTEN)
  ask('tools/list')
  await moment(3100)
  expect(listener.frames).toEqual([])
  acknowledge()
  await moment(0)
  expect(listener.notices()).toEqual(['notifications/subscriptions/acknowledged', CHANGED])
})

test('a closed workspace keeps no listener', () => {
  const { close, learntListeners } = open(learntWith([RAW]))
  expect(learntListeners.size).toBe(1)
  close()
  expect(learntListeners.size).toBe(0)
})
