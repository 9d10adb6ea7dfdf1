import { expect, test } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import { Json } from '../../wire/json/json.ts'
import { InFlight, MOST_IN_FLIGHT } from './in-flight.ts'

const params = (progressToken?: string | number) =>
  Json.of(progressToken === undefined ? {} : { _meta: { progressToken } })

test('an id and a progress token are free again when their request has ended', () => {
  const inFlight = new InFlight()
  expect(inFlight.add(Json.of(1), params('a'), new Abort())).toBeUndefined()
  expect(inFlight.add(Json.of(1), params('b'), new Abort())?.message).toMatch(/with this id/)
  expect(inFlight.add(Json.of('1'), params('a'), new Abort())?.message).toMatch(/with this progress token/)
  expect(inFlight.add(Json.of('1'), params(), new Abort())).toBeUndefined()
  expect([inFlight.delete(Json.of(1)), inFlight.delete(Json.of(1))]).toEqual([true, false])
  expect(inFlight.add(Json.of(1), params('a'), new Abort())).toBeUndefined()
  expect(inFlight.size).toBe(2)
})

test('a session has a bounded number of requests in flight, and room again when one has ended', () => {
  const inFlight = new InFlight()
  for (let id = 0; id < MOST_IN_FLIGHT; id++) expect(inFlight.add(Json.of(id), params(id), new Abort())).toBeUndefined()
  const refused = inFlight.add(Json.of('one more'), params('t'), new Abort())
  expect(refused?.message).toMatch(/^1000 requests of this session are still running; send this one again/)
  expect(refused?.data?.toValue()).toEqual({ reason: 'busy' })
  expect(inFlight.size).toBe(MOST_IN_FLIGHT)
  inFlight.delete(Json.of(7))
  expect(inFlight.add(Json.of('one more'), params('t'), new Abort())).toBeUndefined()
})

test('a cancellation aborts the request that it names, with its reason', () => {
  const inFlight = new InFlight()
  const abort = new Abort()
  inFlight.add(Json.of('a'), params(), abort)
  expect(inFlight.cancel(Json.of({ requestId: 'b' }))).toBe(false)
  expect(inFlight.cancel(Json.of({ requestId: 'a', reason: 'enough' }))).toBe(true)
  expect(abort.reason).toEqual({ kind: 'cancelled', text: 'enough' })
})
