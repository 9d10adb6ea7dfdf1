import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Answer, Caller, Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { type OpenLane, SharedSession } from './shared-session.ts'

interface Lane {
  readonly sent: Exchange[]
  readonly session: SharedSession
  standing?: Exchange
}

let lanes: Lane[] // by number; the first is the session itself
let opened: number[]
let isRefused: boolean
let whenOpened: () => Promise<void>
let order: string[] // what the session was told

beforeEach(() => {
  vi.useFakeTimers()
  lanes = []
  opened = []
  isRefused = false
  whenOpened = async () => {}
  order = []
  createLane(0)
})
afterEach(() => vi.useRealTimers())

const openLane: OpenLane = async (_caller, lane) => {
  opened.push(lane)
  await whenOpened()
  if (isRefused) throw new Error('no more sessions')
  return (lanes[lane] ?? createLane(lane)).session
}

const createLane = (number: number, correlates = false): Lane => {
  const sent: Exchange[] = []
  const session = new SharedSession(
    {
      revision: '2025-11-25',
      asks: true,
      correlates,
      dispatch: exchange => {
        if (exchange.method === 'subscriptions/listen') lane.standing = exchange
        else {
          sent.push(exchange)
          if (sent.length > 1) order.push(exchange.params.get('name')?.asString() ?? '')
        }
      },
    },
    openLane,
  )
  const lane: Lane = { sent, session }
  lanes[number] = lane
  return lane
}

const call = (name: string, capabilities: PlainObject = { elicitation: {} }) => {
  const frames: Frame[] = []
  const abort = new Abort()
  const caller: Caller = {
    workspace: 'w',
    principal: 'me',
    revision: '2026-07-28',
    capabilities: Json.of(capabilities),
    headers: new Map(),
  }
  lanes[0]?.session.dispatch({
    kind: 'request',
    method: 'tools/call',
    params: Json.of({ name }),
    caller,
    signal: abort,
    sink: frame => void frames.push(frame),
  })
  return { frames, abort }
}
const where = (name: string) =>
  lanes.findIndex(({ sent }) => sent.some(({ params }) => params.get('name')?.isString(name)))
const sentOf = (name: string) =>
  lanes.flatMap(({ sent }) => sent).find(({ params }) => params.get('name')?.isString(name))
const finish = (name: string) => sentOf(name)?.sink({ kind: 'result', result: Json.empty })
const ask = (name: string): Answer[] => {
  const answers: Answer[] = []
  const question: Question = {
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: reply => void answers.push(reply),
  }
  void sentOf(name)?.sink(question)
  return answers
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

/** Calls one after the other, each left waiting for a person. */
const leaveWaiting = async (...names: string[]): Promise<void> => {
  for (const name of names) {
    call(name)
    await pass(1000)
    ask(name)
    await pass(1000)
  }
}

test('a call behind an unanswered question takes a further session; neither call is ended', async () => {
  const first = call('first')
  const answers = ask('first')
  const second = call('second')
  await pass(999)
  expect(where('second')).toBe(-1)
  await pass(1)
  expect([where('first'), where('second')]).toEqual([0, 1])
  await pass(600_000)
  expect(sentOf('first')?.signal.reason).toBeUndefined()
  expect(answers).toEqual([])
  finish('second')
  finish('first')
  expect(second.frames).toMatchObject([{ kind: 'result' }])
  expect(first.frames).toMatchObject([{ kind: 'question' }, { kind: 'result' }])
})

test('a call waits behind a call without a question, however long', async () => {
  call('first')
  call('second')
  await pass(600_000)
  expect(where('second')).toBe(-1)
  expect(opened).toEqual([])
  finish('first')
  expect(where('second')).toBe(0)
})

test('the first session is used whenever it is free, also by a call that was waiting', async () => {
  await leaveWaiting('first', 'second')
  expect(where('second')).toBe(1)
  finish('first')
  call('third')
  expect(where('third')).toBe(0)
  finish('third')
  finish('second')
  call('fourth')
  expect(where('fourth')).toBe(0)
})

test('a session that has become free is used again', async () => {
  await leaveWaiting('first', 'second')
  finish('second')
  call('third')
  await pass(0)
  expect(where('third')).toBe(1)
  expect(lanes).toHaveLength(2)
})

test('there are four sessions; beyond that the call with the oldest question is evicted', async () => {
  await leaveWaiting('a', 'b', 'c', 'd')
  expect(['a', 'b', 'c', 'd'].map(where)).toEqual([0, 1, 2, 3])
  const e = call('e')
  await pass(4000)
  expect(where('e')).toBe(-1)
  await pass(1000)
  expect(sentOf('a')?.signal.reason).toEqual({ kind: 'expired' })
  expect(where('e')).toBe(0)
  expect(['b', 'c', 'd'].map(name => sentOf(name)?.signal.reason)).toEqual([undefined, undefined, undefined])
  finish('e')
  expect(e.frames).toMatchObject([{ kind: 'result' }])
})

test('without a further session the call with the open question is evicted', async () => {
  isRefused = true
  const first = call('first')
  const answers = ask('first')
  call('second')
  await pass(4999)
  expect(where('second')).toBe(-1)
  await pass(1)
  expect(where('second')).toBe(0)
  expect(first.frames.at(-1)).toMatchObject({ kind: 'failure', error: { code: -32602 } })
  expect(answers).toHaveLength(1)
  expect(opened).toEqual([1])
})

test('questions, answers and cancellations stay on the session of their call', async () => {
  await leaveWaiting('first')
  const second = call('second')
  await pass(0)
  const answers = ask('second')
  const asked = second.frames[0]
  if (asked?.kind === 'question') asked.answer({ kind: 'result', result: Json.of({ action: 'decline' }) })
  expect(answers).toHaveLength(1)
  second.abort.abort({ kind: 'gone' })
  expect(sentOf('second')?.signal.reason).toEqual({ kind: 'gone' })
  expect(sentOf('first')?.signal.reason).toBeUndefined()
})

test('a question outside any call of a further session belongs to the call that runs there', async () => {
  await leaveWaiting('first')
  const second = call('second')
  await pass(0)
  const answers: Answer[] = []
  void lanes[1]?.standing?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: reply => void answers.push(reply),
  })
  expect(second.frames).toMatchObject([{ kind: 'question' }])
})

test('a call that is cancelled while its session is being opened is never sent, and its lane is free', async () => {
  await leaveWaiting('first')
  const second = call('second')
  second.abort.abort({ kind: 'gone' })
  await pass(0)
  expect(where('second')).toBe(-1)
  call('third')
  await pass(0)
  expect(where('third')).toBe(1)
})

test('what is said on a further session is received by listeners of the first', async () => {
  const heard: string[] = []
  lanes[0]?.session.onNotification(method => void heard.push(method))
  await leaveWaiting('first', 'second')
  void lanes[1]?.standing?.sink({ kind: 'notice', method: 'notifications/elicitation/complete', params: Json.empty })
  expect(heard).toEqual(['notifications/elicitation/complete'])
})

test('calls that cannot be asked anything never leave the first session', async () => {
  await leaveWaiting('first')
  call('plain', {})
  expect(where('plain')).toBe(0)
})

test('a call that runs when calls begin to take turns keeps the session, and its next question is its own', async () => {
  createLane(0, true)
  await pass(2001) // what is asked before that is about the session
  const first = call('first')
  const askOutside = () =>
    void lanes[0]?.standing?.sink({
      kind: 'question',
      method: 'elicitation/create',
      params: Json.empty,
      withdrawn: new Abort(),
      answer: () => {},
    })
  askOutside()
  const second = call('second')
  await pass(999)
  expect(where('second')).toBe(-1)
  await pass(1)
  expect([where('first'), where('second')]).toEqual([0, 1])
  askOutside()
  expect(first.frames).toMatchObject([{ kind: 'question' }, { kind: 'question' }])
  expect(second.frames).toEqual([])
  finish('first')
  call('third')
  expect(where('third')).toBe(0)
})

test('such a call is evicted like any other without a further session', async () => {
  isRefused = true
  createLane(0, true)
  await pass(2001)
  const first = call('first')
  void lanes[0]?.standing?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: () => {},
  })
  call('second')
  await pass(5000)
  expect(where('second')).toBe(0)
  expect(first.frames.at(-1)).toMatchObject({ kind: 'failure', error: { code: -32602 } })
})

test('calls without a further session keep their order of arrival', async () => {
  const refusals: (() => void)[] = []
  isRefused = true
  whenOpened = () => new Promise(resolve => void refusals.push(resolve))
  call('first')
  ask('first')
  call('second')
  call('third')
  await pass(1000)
  expect(opened).toEqual([1, 2])
  for (const refuse of refusals) refuse()
  await pass(0)
  finish('first')
  expect(where('second')).toBe(0)
  expect(where('third')).toBe(-1)
})

const earlyAsker = async () => {
  createLane(0, true)
  await pass(2001)
  const first = call('first')
  void lanes[0]?.standing?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: () => void order.push('first answered'),
  })
  return first
}
const lateAsker = async () => {
  const first = call('first')
  void sentOf('first')?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.empty,
    withdrawn: new Abort(),
    answer: () => void order.push('first answered'),
  })
  return first
}

test.each([
  ['that took its turn', lateAsker],
  ['that began before there were turns', earlyAsker],
])('a call %s is over at the server before the next begins there', async (_which, begin) => {
  isRefused = true
  await begin()
  sentOf('first')?.signal.onAbort(() => void order.push('first over'))
  call('second')
  await pass(5000)
  expect(order).toEqual(['first answered', 'first over', 'second'])
})

test.each([
  ['that took its turn', lateAsker],
  ['that began before there were turns', earlyAsker],
])('a call %s and whose caller leaves is over at the server before the next begins there', async (_which, begin) => {
  const first = await begin()
  sentOf('first')?.signal.onAbort(() => void order.push('first over'))
  call('second')
  first.abort.abort({ kind: 'gone' })
  expect(order).toEqual(['first over', 'second'])
})
