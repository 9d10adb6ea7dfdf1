import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Answer, Caller, Exchange, Frame, Peer, Question } from '../../protocol/exchange.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { RootsHabit } from './session-setup.ts'
import { SharedSession } from './shared-session.ts'

let sent: Exchange[] // what reached the session, its standing exchange aside
let standing: Exchange | undefined
let session: SharedSession

const start = (correlates: boolean, habit?: RootsHabit): void => {
  sent = []
  standing = undefined
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    correlates,
    dispatch: exchange => {
      if (exchange.method === 'subscriptions/listen') standing = exchange
      else sent.push(exchange)
    },
  }
  session = new SharedSession(peer, undefined, habit)
}

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const ASKABLE = { elicitation: {} }

const call = (name: string, over: Partial<Caller> & { method?: string } = {}) => {
  const { method = 'tools/call', ...who } = over
  const frames: Frame[] = []
  const abort = new Abort()
  const caller: Caller = {
    workspace: 'w',
    principal: 'me',
    revision: '2026-07-28',
    capabilities: Json.of(ASKABLE),
    headers: new Map(),
    ...who,
  }
  session.dispatch({
    kind: 'request',
    method,
    params: Json.of({ name }),
    caller,
    signal: abort,
    sink: frame => void frames.push(frame),
  })
  return { frames, abort }
}
const names = () => sent.map(({ params }) => params.get('name')?.asString())
const finish = (exchange: Exchange | undefined) => exchange?.sink({ kind: 'result', result: Json.empty })
const question = (answers: Answer[] = [], params: Plain = {}): Question => ({
  kind: 'question',
  method: 'elicitation/create',
  params: Json.of(params),
  withdrawn: new Abort(),
  answer: reply => void answers.push(reply),
})
const sentOf = (name: string) => sent.find(({ params }) => params.get('name')?.asString() === name)

test('calls run concurrently if questions name their call', () => {
  start(true)
  call('a')
  call('b')
  expect(names()).toEqual(['a', 'b'])
})

test('otherwise one call that can be asked runs at a time, the others at once', () => {
  start(false)
  call('a')
  call('b')
  call('plain', { capabilities: Json.empty })
  call('complete', { method: 'completion/complete' })
  expect(names()).toEqual(['a', 'plain', 'complete'])
  finish(sentOf('a'))
  expect(names()).toEqual(['a', 'plain', 'complete', 'b'])
})

test('a call that is cancelled while it waits for its turn is never sent', () => {
  start(false)
  call('a')
  const b = call('b')
  call('c')
  b.abort.abort({ kind: 'gone' })
  finish(sentOf('a'))
  expect(names()).toEqual(['a', 'c'])
})

test('the turn of a call that is cancelled goes to the next', () => {
  start(false)
  const a = call('a')
  call('b')
  a.abort.abort({ kind: 'gone' })
  expect(sentOf('a')?.signal.reason).toEqual({ kind: 'gone' })
  expect(names()).toEqual(['a', 'b'])
})

test('a call with an open question is evicted for the next after a while; a call without one is not', async () => {
  start(false)
  const working = call('working')
  const next = call('next')
  await vi.advanceTimersByTimeAsync(20_000)
  expect(names()).toEqual(['working'])
  void sentOf('working')?.sink(question())
  await vi.advanceTimersByTimeAsync(5000)
  expect(names()).toEqual(['working', 'next'])
  expect(working.frames.at(-1)).toMatchObject({ kind: 'failure', error: { code: -32602 } })
  expect(sentOf('working')?.signal.reason).toEqual({ kind: 'expired' })
  expect(next.frames).toEqual([])
})

test('five calls with unanswered questions do not block the sixth', async () => {
  start(false)
  for (let i = 0; i < 5; i++) {
    call(`unanswered ${i}`)
    await vi.advanceTimersByTimeAsync(5000)
    void sentOf(`unanswered ${i}`)?.sink(question())
  }
  call('sixth')
  await vi.advanceTimersByTimeAsync(5000)
  expect(names().at(-1)).toBe('sixth')
})

test('the queue is bounded', () => {
  start(false)
  call('a')
  for (let i = 0; i < 64; i++) call(`w${i}`)
  expect(call('too many').frames).toMatchObject([{ kind: 'failure', error: { code: -32603 } }])
})

test('a question outside any call goes to the call that came last, and from then on calls take turns', () => {
  start(true)
  call('a')
  vi.advanceTimersByTime(2001) // what is asked before that is about the session
  const b = call('b')
  const answers: Answer[] = []
  void standing?.sink(question(answers))
  expect(b.frames).toMatchObject([{ kind: 'question' }])
  const [asked] = b.frames
  if (asked?.kind === 'question') asked.answer({ kind: 'result', result: Json.of({ action: 'cancel' }) })
  expect(answers).toHaveLength(1)
  call('c')
  call('d')
  finish(sentOf('a'))
  expect(names()).toEqual(['a', 'b'])
  finish(sentOf('b'))
  expect(names()).toEqual(['a', 'b', 'c'])
})

test('a question without a call waits for the next call that can carry it, but not for ever', async () => {
  start(true)
  call('plain', { capabilities: Json.empty })
  const answers: Answer[] = []
  void standing?.sink(question(answers))
  const b = call('b')
  expect(b.frames).toMatchObject([{ kind: 'question' }])
  expect(sentOf('b')).toBeUndefined() // it may need the answer
  const [asked] = b.frames
  if (asked?.kind === 'question') asked.answer({ kind: 'result', result: Json.of({ action: 'cancel' }) })
  finish(sentOf('b'))
  const late: Answer[] = []
  void standing?.sink(question(late))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(late).toMatchObject([{ kind: 'error', error: { code: -32603 } }])
})

test('the session subscription closes after the last call, and opens again with the next', async () => {
  start(true)
  call('a')
  const first = standing
  finish(sentOf('a'))
  await vi.advanceTimersByTimeAsync(29_000)
  expect(first?.signal.reason).toBeUndefined()
  await vi.advanceTimersByTimeAsync(2000)
  expect(first?.signal.reason).toEqual({ kind: 'gone' })
  call('b')
  expect(standing).not.toBe(first)
})

test('the first list of a session waits until a ping is answered, even by an error; later ones do not', async () => {
  start(true)
  call('list', { method: 'tools/list' })
  expect(sent.map(({ method }) => method)).toEqual(['ping'])
  void sent[0]?.sink({ kind: 'failure', error: { code: -32601, message: 'what?' } })
  expect(sent.map(({ method }) => method)).toEqual(['ping', 'tools/list'])
  call('again', { method: 'prompts/list' })
  expect(sent.map(({ method }) => method)).toEqual(['ping', 'tools/list', 'prompts/list'])
})

test('an unanswered ping delays the first list by half a second', async () => {
  start(true)
  call('list', { method: 'tools/list' })
  await vi.advanceTimersByTimeAsync(500)
  expect(sent.map(({ method }) => method)).toEqual(['ping', 'tools/list'])
})

test('the next sessions of a server that asked nothing after its first handshake do not wait', async () => {
  const habit = new RootsHabit()
  const capabilities = Json.of({ roots: {} })
  start(true, habit)
  call('first', { capabilities })
  expect(names()).toEqual([])
  await vi.advanceTimersByTimeAsync(500)
  expect(names()).toEqual(['first'])
  start(true, habit)
  call('second', { capabilities })
  expect(names()).toEqual(['second'])
})

test.each([
  ['outside any call', () => void standing?.sink({ ...question(), method: 'roots/list' })],
  ['on the stream of a call', () => void sent[0]?.sink({ ...question(), method: 'roots/list' })],
])('a server that asks for roots after a handshake is waited for from then on: %s', async (_, ask) => {
  const habit = new RootsHabit()
  habit.record(false)
  const capabilities = Json.of({ roots: {} })
  start(true, habit)
  call('first', { capabilities })
  ask()
  start(true, habit)
  call('second', { capabilities })
  expect(names()).toEqual([])
  await vi.advanceTimersByTimeAsync(500)
  expect(names()).toEqual(['second'])
})

test('on a session that several users share, a log line that names no call goes to no call while calls of several run', () => {
  start(true)
  const ann = call('ann', { principal: 'ann', logLevel: 'info' })
  const line = {
    kind: 'notice',
    method: 'notifications/message',
    params: Json.of({ level: 'info', data: 'x' }),
  } as const
  void standing?.sink(line)
  expect(ann.frames).toEqual([line])
  const bob = call('bob', { principal: 'bob', logLevel: 'info' })
  void standing?.sink(line)
  expect([ann.frames.length, bob.frames.length]).toEqual([1, 0])
  bob.abort.abort({ kind: 'gone' })
  void standing?.sink(line)
  expect([ann.frames.length, bob.frames.length]).toEqual([2, 0])
})
