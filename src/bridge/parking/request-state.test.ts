import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
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
  const nonsense = retry(here.dispatch, 'gw1.x.1')
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
