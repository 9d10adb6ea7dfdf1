import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { mintId } from '../../wire/sealed-id.ts'
import { createParking, type Parking } from './parking.ts'

const HOUR = 3_600_000
const TTL_MS = 24 * HOUR

let parkings: Parking[]
beforeEach(() => {
  vi.useFakeTimers()
  parkings = []
})
afterEach(() => {
  for (const parking of parkings) parking.close()
  vi.useRealTimers()
})

const park = () => {
  const calls: Exchange[] = []
  const parking = createParking({ questionTtlMs: TTL_MS })
  parkings.push(parking)
  const at = (server: string) => parking.at(server).wrap(exchange => void calls.push(exchange))
  return { dispatch: at('here'), at, calls }
}

const request = (dispatch: Dispatch, params: Record<string, Plain> = {}): Frame[] => {
  const frames: Frame[] = []
  dispatch({
    kind: 'request',
    method: 'tools/call',
    params: Json.of({ name: 'ask', ...params }),
    caller: {
      workspace: 'w',
      principal: 'me',
      revision: '2026-07-28',
      capabilities: Json.of({ elicitation: {} }),
      headers: new Map(),
    },
    signal: new Abort(),
    sink: frame => void frames.push(frame),
  })
  return frames
}

/** Parks a call and returns the state its client was given, and the answers its asker gets. */
const parked = async ({ dispatch, calls }: Pick<ReturnType<typeof park>, 'dispatch' | 'calls'>) => {
  const answers: Answer[] = []
  const frames = request(dispatch)
  void calls.at(-1)?.sink({
    kind: 'question',
    method: 'elicitation/create',
    params: Json.of({ message: 'Name?' }),
    withdrawn: new Abort(),
    answer: reply => void answers.push(reply),
  })
  await vi.advanceTimersByTimeAsync(30)
  const [frame] = frames
  const state = frame?.kind === 'result' ? frame.result.get('requestState')?.asString() : undefined
  return { state: state ?? '', answers }
}
const retry = (dispatch: Dispatch, requestState: string): Frame[] =>
  request(dispatch, { requestState, inputResponses: { q1: { action: 'decline' } } })

test('a state is valid until it expires', async () => {
  const here = park()
  const { state, answers } = await parked(here)
  await vi.advanceTimersByTimeAsync(23 * HOUR)
  retry(here.dispatch, state)
  expect(answers).toMatchObject([{ kind: 'result' }])
})

test('a state of another process is refused like nonsense', async () => {
  const [here, there] = [park(), park()]
  const { state, answers } = await parked(there)
  const foreign = retry(here.dispatch, state)
  const nonsense = retry(here.dispatch, 'gw2.x.1')
  expect(foreign).toMatchObject([{ kind: 'failure', error: { code: -32602 } }])
  expect(JSON.stringify(foreign)).toBe(JSON.stringify(nonsense))
  expect(answers).toEqual([])
  retry(there.dispatch, state)
  expect(answers).toHaveLength(1)
})

test('a state is valid at the server that asked and at no other, though the request is the same', async () => {
  const { dispatch, at, calls } = park()
  const { state, answers } = await parked({ dispatch, calls })
  expect(retry(at('there'), state)).toMatchObject([{ kind: 'failure', error: { code: -32602 } }])
  expect(answers).toEqual([])
  retry(at('here'), state) // which may have been connected to anew
  expect(answers).toMatchObject([{ kind: 'result' }])
})

/** Two replicas with the same keys; what one sends to the other goes straight to its parking. */
const replicas = () => {
  const keys = [Buffer.alloc(32, 5)] as const
  const alive = new Set(['one', 'two'])
  const sent: string[] = []
  const all = new Map<string, { parking: Parking; calls: Exchange[] }>()
  const send = (home: string, server: string, exchange: Exchange, onGone: () => void): void => {
    sent.push(home)
    if (!alive.has(home)) return onGone()
    all
      .get(home)
      ?.parking.at(server)
      .wrap(() => {})(exchange)
  }
  for (const name of alive) {
    const parking = createParking({ questionTtlMs: TTL_MS, home: { keys, self: () => name, send } })
    parkings.push(parking)
    all.set(name, { parking, calls: [] })
  }
  const at = (name: string, server = 'here') => {
    const { parking, calls } = all.get(name) as { parking: Parking; calls: Exchange[] }
    return { dispatch: parking.at(server).wrap(exchange => void calls.push(exchange)), calls }
  }
  return { at, alive, sent }
}

test('a retry that reaches another replica is sent to the one that has parked the call, in every round', async () => {
  const { at, sent } = replicas()
  const { state, answers } = await parked(at('one'))
  const again = request(at('two').dispatch, { requestState: state }) // without answers: asked again
  expect(again).toMatchObject([{ kind: 'result' }])
  const [frame] = again
  const next = frame?.kind === 'result' ? frame.result.get('requestState')?.asString() : undefined
  expect(next).not.toBe(state)
  retry(at('two').dispatch, next ?? '')
  expect(answers).toMatchObject([{ kind: 'result' }])
  expect(sent).toEqual(['one', 'one'])
  expect(at('two').calls).toEqual([])
})

test('a retry whose replica is gone gets call_lost', async () => {
  const { at, alive } = replicas()
  const { state } = await parked(at('one'))
  alive.delete('one')
  const [frame] = retry(at('two').dispatch, state)
  expect(frame?.kind === 'failure' && [frame.error.code, frame.error.data?.toValue()]).toEqual([
    -32602,
    { reason: 'call_lost' },
  ])
})

test.each([
  ['of another workspace', (state: string) => state, { workspace: 'other' }],
  ['changed', (state: string) => state.replace(/^gw2\.../, 'gw2.00'), {}],
  ['of a session', () => `gw2.${mintId(Buffer.alloc(32, 5), 'session', { home: 'one', workspace: 'w' })}.1`, {}],
  ['of another cluster', () => `gw2.${mintId(Buffer.alloc(32, 6), 'question', { home: 'one', workspace: 'w' })}.1`, {}],
])('a state %s is sent nowhere', async (_, change, caller) => {
  const { at, sent } = replicas()
  const { state } = await parked(at('one'))
  const frames = retry(exchange => {
    at('two').dispatch({ ...exchange, caller: { ...exchange.caller, ...caller } })
  }, change(state))
  expect(frames).toMatchObject([{ kind: 'failure', error: { code: -32602 } }])
  expect(frames[0]?.kind === 'failure' && frames[0].error.data?.toValue()).toEqual({ reason: 'invalid_request_state' })
  expect(sent).toEqual([])
})
