import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Answer, Caller, Exchange, Frame, Peer, Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { type Bridge, createBridge } from '../bridge.ts'

const HOLD_MS = 60_000
const REST_MS = 30_000
const ACCEPT = { action: 'accept', content: { name: 'Ada' } }

let bridge: Bridge
let calls: Exchange[] // those that reached the server
let standing: Exchange | undefined
let closed: number // leases

/** A legacy server whose questions name no call, for modern callers. */
const connect = (isLeased = false) => {
  bridge = createBridge({ questionTtlMs: 15 * 60_000 })
  const peer: Peer = {
    revision: '2025-11-25',
    asks: true,
    correlates: false,
    dispatch: exchange => {
      if (exchange.method === 'subscriptions/listen') standing = exchange
      else if (exchange.method === 'tools/call') calls.push(exchange)
    },
    ...(isLeased && { hold: () => () => void closed++ }),
  }
  return bridge.wrap({ open: async () => peer, close: () => Promise.resolve() }, 'far')
}

beforeEach(() => {
  vi.useFakeTimers()
  calls = []
  standing = undefined
  closed = 0
})
afterEach(() => {
  bridge.close()
  vi.useRealTimers()
})

interface Asking {
  inputRequests: Record<string, { method: string }>
  requestState: string
}

const caller: Caller = {
  workspace: 'w',
  principal: 'me',
  revision: '2026-07-28',
  capabilities: Json.of({ elicitation: {}, roots: {} }),
  headers: new Map(),
}

const call = async (upstream: ReturnType<typeof connect>, name: string, answered: object = {}, who = caller) => {
  const frames: Frame[] = []
  const abort = new Abort()
  const peer = await upstream.open(who)
  peer.dispatch({
    kind: 'request',
    method: 'tools/call',
    params: Json.of({ name, ...answered }),
    caller: who,
    signal: abort,
    sink: frame => void frames.push(frame),
  })
  await vi.advanceTimersByTimeAsync(500) // in which a fresh session may ask for roots
  const result = () => {
    const last = frames.at(-1)
    return last?.kind === 'result' ? (last.result.toValue() as unknown as Asking & { content?: unknown }) : undefined
  }
  return { frames, abort, result }
}

const asked = (method = 'elicitation/create') => {
  const answers: Answer[] = []
  const withdrawn = new Abort()
  const question: Question = {
    kind: 'question',
    method,
    params: Json.of(method === 'roots/list' ? {} : { message: 'Name?', requestedSchema: { type: 'object' } }),
    withdrawn,
    answer: reply => void answers.push(reply),
  }
  return { answers, question, withdrawn }
}

const finish = (index: number) => calls[index]?.sink({ kind: 'result', result: Json.of({ content: [] }) })
const values = (answers: Answer[]) => answers.map(reply => (reply.kind === 'result' ? reply.result.toValue() : reply))

describe('a question that is open when the server answers its call', () => {
  it('is asked by the next call if no client has seen it', async () => {
    const upstream = connect()
    const first = await call(upstream, 'first')
    const { question, answers } = asked('roots/list')
    void calls[0]?.sink(question)
    void finish(0)
    expect(first.result()?.content).toEqual([])
    expect(answers).toEqual([])
    const next = await call(upstream, 'next')
    const { q1 } = next.result()?.inputRequests ?? {}
    expect(q1?.method).toBe('roots/list')
    const requestState = next.result()?.requestState
    await call(upstream, 'next', { requestState, inputResponses: { q1: { roots: [] } } })
    expect(values(answers)).toEqual([{ roots: [] }])
  })

  it('is answered by the retry as the user answered it, also long after the call', async () => {
    const upstream = connect()
    const first = await call(upstream, 'first')
    const { question, answers } = asked()
    void calls[0]?.sink(question)
    await vi.advanceTimersByTimeAsync(30)
    const { requestState } = first.result() as Asking
    void finish(0)
    await vi.advanceTimersByTimeAsync(5 * REST_MS)
    expect(standing?.signal.reason).toBeUndefined()
    expect(answers).toEqual([])
    const retry = await call(upstream, 'first', { requestState, inputResponses: { q1: ACCEPT } })
    expect(values(answers)).toEqual([ACCEPT])
    expect(retry.result()?.content).toEqual([])
    await vi.advanceTimersByTimeAsync(REST_MS)
    expect(standing?.signal.reason).toEqual({ kind: 'gone' })
  })

  it('goes to another call that runs if the retry leaves it unanswered', async () => {
    const upstream = connect()
    const first = await call(upstream, 'first')
    const { question, answers } = asked()
    void calls[0]?.sink(question)
    await vi.advanceTimersByTimeAsync(30)
    const { requestState } = first.result() as Asking
    void finish(0)
    const other = await call(upstream, 'other')
    expect(calls).toHaveLength(2)
    const retry = await call(upstream, 'first', { requestState })
    expect(retry.result()?.content).toEqual([])
    await vi.advanceTimersByTimeAsync(30)
    expect(other.result()?.inputRequests.q1?.method).toBe('elicitation/create')
    expect(answers).toEqual([])
  })

  it('ends with an error, and no cancellation, if no further call comes', async () => {
    const upstream = connect()
    await call(upstream, 'first')
    const { question, answers } = asked()
    void calls[0]?.sink(question)
    void finish(0)
    await vi.advanceTimersByTimeAsync(HOLD_MS - 1000)
    expect(answers).toEqual([])
    await vi.advanceTimersByTimeAsync(1000)
    expect(answers).toMatchObject([{ kind: 'error', error: { code: -32603 } }])
  })

  it('is dropped if the server withdraws it meanwhile', async () => {
    const upstream = connect()
    await call(upstream, 'first')
    const { question, answers, withdrawn } = asked()
    void calls[0]?.sink(question)
    void finish(0)
    withdrawn.abort({ kind: 'cancelled' })
    const next = await call(upstream, 'next')
    expect(next.frames).toEqual([])
    await vi.advanceTimersByTimeAsync(HOLD_MS)
    expect(answers).toEqual([])
  })

  it('is never asked of another user of a shared session', async () => {
    const upstream = connect()
    await call(upstream, 'first')
    const { question, answers } = asked()
    void calls[0]?.sink(question)
    void finish(0)
    const other = await call(upstream, 'other', {}, { ...caller, principal: 'another' })
    expect(other.frames).toEqual([])
    void finish(1)
    const next = await call(upstream, 'next')
    expect(next.result()?.inputRequests.q1?.method).toBe('elicitation/create')
    expect(answers).toEqual([])
  })

  it('keeps the session of an anonymous caller for the retry, and not for a next call', async () => {
    const upstream = connect(true)
    const first = await call(upstream, 'first')
    const seen = asked()
    void calls[0]?.sink(seen.question)
    await vi.advanceTimersByTimeAsync(30)
    const unseen = asked()
    void calls[0]?.sink(unseen.question)
    void finish(0)
    expect(closed).toBe(0)
    const { requestState } = first.result() as Asking
    await call(upstream, 'first', { requestState, inputResponses: { q1: ACCEPT } })
    expect(values(seen.answers)).toEqual([ACCEPT])
    expect(unseen.answers).toMatchObject([{ kind: 'error', error: { code: -32603 } }])
    expect(closed).toBe(1)
  })
})

describe('a question that is open when the client cancels its call', () => {
  it('is refused if it is for a user who has not seen it, and asked by the next call if it is about the session', async () => {
    const upstream = connect()
    const first = await call(upstream, 'first')
    const form = asked()
    const roots = asked('roots/list')
    void calls[0]?.sink(form.question)
    void calls[0]?.sink(roots.question)
    first.abort.abort({ kind: 'gone' })
    expect(form.answers).toMatchObject([{ kind: 'error', error: { code: -32603 } }])
    expect(roots.answers).toEqual([])
    const next = await call(upstream, 'next')
    expect(Object.values(next.result()?.inputRequests ?? {}).map(({ method }) => method)).toEqual(['roots/list'])
  })
})
