import { expect, test } from 'vitest'
import { callerOf } from '../../test/support/scripted-server.ts'
import { NEVER } from '../protocol/cancellation.ts'
import type { Exchange, Frame } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'
import type { ParkingHome } from './parking/parking.ts'
import { pinRounds } from './pinned-rounds.ts'

const KEYS = [Buffer.alloc(32, 1)] as const

/** Replicas by name, each with a server that knows only its own states. */
const cluster = (...names: string[]) => {
  const alive = new Set(names)
  const replicas = new Map(names.map(name => [name, replica(name)]))
  function replica(name: string) {
    const own: ParkingHome = {
      keys: KEYS,
      self: () => name,
      send: (home, _server, exchange, onGone) => (alive.has(home) ? replicas.get(home)?.(exchange) : onGone()),
    }
    return pinRounds('server', own, ({ params, sink }) => {
      const state = params.get('requestState')?.asString()
      const result = state === undefined ? { requestState: `of ${name}` } : { text: `${name} got "${state}"` }
      void sink({ kind: 'result', result: Json.of(result) })
    })
  }
  const call = (name: string, params: object, workspace = 'default'): Record<string, string> => {
    const frames: Frame[] = []
    const exchange: Exchange = {
      kind: 'request',
      method: 'tools/call',
      params: Json.of(params as never),
      caller: { ...callerOf(), workspace },
      signal: NEVER,
      sink: frame => void frames.push(frame),
    }
    replicas.get(name)?.(exchange)
    const [frame] = frames
    return frame?.kind === 'result' ? (frame.result.toValue() as Record<string, string>) : {}
  }
  return { call, kill: (name: string) => alive.delete(name) }
}

test('a retry is sent to the replica whose server made the state', () => {
  const { call } = cluster('a', 'b')
  const { requestState } = call('a', {})
  expect(requestState).toMatch(/^gw3\.[0-9a-f]+\.of a$/)
  expect(call('b', { requestState })).toEqual({ text: 'a got "of a"' })
  expect(call('a', { requestState })).toEqual({ text: 'a got "of a"' })
})

test('the server of this replica is tried if that one is gone', () => {
  const { call, kill } = cluster('a', 'b')
  const { requestState } = call('a', {})
  kill('a')
  expect(call('b', { requestState })).toEqual({ text: 'b got "of a"' })
})

test('a state that is forged, or of another workspace, is left to the server', () => {
  const { call } = cluster('a', 'b')
  const { requestState = '' } = call('a', {}, 'other')
  for (const state of [requestState, requestState.replace('gw3.', 'gw3.00'), 'gw3.00.x', 'of another server'])
    expect(call('b', { requestState: state })).toEqual({ text: `b got "${state}"` })
})
