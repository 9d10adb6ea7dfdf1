import { expect, test } from 'vitest'
import { callerOf, exchangeWith } from '../../test/support/scripted-server.ts'
import { deliver } from '../protocol/deliver.ts'
import { NoAnswer, rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Peer } from '../protocol/exchange.ts'
import { decodeLoginState } from '../protocol/login-state.ts'
import { MODERN, NEWEST_LEGACY, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { LoginQuestions } from './login-questions.ts'

const LINK = 'http://gw/oauth/login/1'
const required = (url = LINK) =>
  new NoAnswer(
    rpcError('internal', `Server "far" needs a login. Open ${url}`, Json.of({ reason: 'login_required', url })),
  )

/** A server that wants a login until `logIn`; what reaches it is recorded. */
const create = (waitMs = 60_000) => {
  const listeners = new Set<(principal: string | undefined) => void>()
  const arrived: Exchange[] = []
  let isLoggedIn = false
  const server: Dispatch = exchange => {
    arrived.push(exchange)
    void deliver(
      exchange.sink,
      isLoggedIn
        ? { kind: 'result', result: Json.of({ resultType: 'complete', content: [] }) }
        : { kind: 'failure', error: required() },
    )
  }
  const dispatch: Dispatch = exchange => {
    if (!questions.resume(exchange)) questions.wrap(server)(exchange)
  }
  const questions = new LoginQuestions({
    server: 'far',
    begin: async () => ({ kind: 'failed', reason: 'login_impossible', text: 'needs a login, but …' }),
    onChanged: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    dispatch,
    questionTtlMs: 60_000,
    waitMs,
  })
  const call = (revision: Revision, params = {}) => {
    const caller = callerOf({ revision, principal: 'ada', capabilities: Json.of({ elicitation: { url: {} } }) })
    const peer: Peer = { revision, asks: true, dispatch }
    return exchangeWith(peer, 'tools/call', { caller, params: { name: 'x', ...params } })
  }
  return {
    call,
    arrived,
    listeners,
    logIn: (principal = 'ada') => {
      isLoggedIn ||= principal === 'ada'
      for (const listener of [...listeners]) listener(principal)
    },
  }
}

const ACCEPTED = { login: { action: 'accept' } }
const accept = { kind: 'result', result: Json.of({ action: 'accept' }) } as const
type Asked = { resultType: string; requestState: string }

test('a legacy client is asked again if the user has not logged in for a while, and at last shown the link', async () => {
  const { call, listeners } = create(5)
  const asking = call(NEWEST_LEGACY)
  for (let round = 0; round < 5; round++) (await asking.question(round)).answer(accept)
  expect(await asking.result()).toMatchObject({ isError: true, _meta: { 'dragoman/login': { url: LINK } } })
  expect(listeners.size).toBe(0)
})

test('a modern client is asked again if the user has not logged in for a while, and at last shown the link', async () => {
  const { call, listeners } = create(5)
  let asked = (await call(MODERN).result()) as Asked
  for (let round = 1; round < 5; round++) {
    expect(decodeLoginState(asked.requestState)?.round).toBe(round)
    asked = (await call(MODERN, { requestState: asked.requestState, inputResponses: ACCEPTED }).result()) as Asked
    expect(asked.resultType).toBe('input_required')
  }
  const last = call(MODERN, { requestState: asked.requestState, inputResponses: ACCEPTED })
  expect(await last.result()).toMatchObject({ isError: true })
  expect(listeners.size).toBe(0)
})

test('the login of another user wakes no call', async () => {
  const { call, logIn, arrived } = create()
  const asking = call(NEWEST_LEGACY)
  await asking.question()
  logIn('ben')
  expect(arrived).toHaveLength(1)
  logIn('ada')
  expect(await asking.result()).toMatchObject({ content: [] })
})

test('a modern call goes on with the state and the answers that it had', async () => {
  const { call, logIn, arrived } = create()
  const own = { requestState: 'of the server', inputResponses: { colour: { action: 'accept', content: { c: 1 } } } }
  const asked = (await call(MODERN, own).result()) as Asked
  logIn()
  await call(MODERN, { requestState: asked.requestState, inputResponses: ACCEPTED }).result()
  expect(arrived.at(-1)?.params.toValue()).toEqual({ name: 'x', ...own })
})

test('a client that retries without an answer is asked again at once', async () => {
  const { call } = create()
  const { requestState } = (await call(MODERN).result()) as Asked
  expect(await call(MODERN, { requestState }).result()).toMatchObject({ resultType: 'input_required' })
})

test.each([NEWEST_LEGACY, MODERN])('a cancelled call (%s) leaves nothing behind', async revision => {
  const { call, listeners } = create()
  const first = call(revision)
  const state = revision === MODERN ? ((await first.result()) as Asked).requestState : undefined
  const asking = state === undefined ? first : call(revision, { requestState: state, inputResponses: ACCEPTED })
  await expect.poll(() => listeners.size).toBe(1)
  asking.abort.abort({ kind: 'cancelled' })
  expect(listeners.size).toBe(0)
  expect(asking.finals()).toEqual([])
})

test('an error that a server wrote itself is left alone', async () => {
  const error = rpcError('internal', 'x', Json.of({ reason: 'login_required', url: 'http://evil' }))
  const questions = new LoginQuestions({
    server: 'far',
    begin: () => Promise.reject(new Error('not begun')),
    onChanged: () => () => {},
    dispatch: () => {},
    questionTtlMs: 1,
  })
  const dispatch = questions.wrap(({ sink }) => void sink({ kind: 'failure', error }))
  const peer: Peer = { revision: MODERN, asks: false, dispatch }
  expect((await exchangeWith(peer, 'tools/call').failure()).message).toBe('x')
})
