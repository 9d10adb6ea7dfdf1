import { expect, onTestFinished, test } from 'vitest'
import { scriptedEndpoint } from '../../../../test/support/memory/endpoint.ts'
import { RetryLater } from '../worker.ts'
import { createEndpoint, type EndpointOptions, RejectedRequest, retryAfterMs } from './endpoint.ts'

const NOW = Date.UTC(2026, 0, 1)

const open = (options: EndpointOptions, now?: () => number) => {
  const endpoint = createEndpoint(options, now)
  onTestFinished(() => endpoint.close())
  return endpoint
}

const failing = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => expect.unreachable('it should have failed'),
    (error: Error) => error,
  )

test('JSON goes there with the key, and JSON comes back', async () => {
  const { url, asked } = await scriptedEndpoint(() => ({ json: { fine: true } }))
  const endpoint = open({ url, key: 'sk-secret' })
  expect(await endpoint.post('embeddings', { model: 'm' })).toEqual({ fine: true })
  expect(asked[0]).toMatchObject({
    path: '/v1/embeddings',
    body: { model: 'm' },
    headers: { authorization: 'Bearer sk-secret', 'content-type': 'application/json' },
  })
})

test('an endpoint that is down is paused with backoff, and used again when it is back', async () => {
  let now = NOW
  const { url, become, asked } = await scriptedEndpoint(() => ({ status: 503 }))
  const endpoint = open({ url }, () => now)
  const waits: number[] = []
  for (let time = 0; time < 4; time++) {
    const error = await failing(endpoint.post('x', {}))
    expect(error).toBeInstanceOf(RetryLater)
    expect(error.message).toContain('503')
    expect(() => endpoint.ensureReady()).toThrow(error.message)
    waits.push((error as RetryLater).at - now)
    now = (error as RetryLater).at
    endpoint.ensureReady()
  }
  expect(waits[3]).toBeGreaterThan(4 * (waits[0] as number))
  become(() => ({ json: {} }))
  await endpoint.post('x', {})
  endpoint.ensureReady()
  expect(asked).toHaveLength(5)
})

test('an address without a listener is reported as unreachable', async () => {
  const { url, stop } = await scriptedEndpoint(() => ({ json: {} }))
  await stop()
  const error = await failing(open({ url }).post('x', {}))
  expect(error).toBeInstanceOf(RetryLater)
  expect(error.message).toContain('cannot be reached')
})

test.each(['', 'api.example.com/v1', 'file:///etc'])('%j is no address, and work waits until it is put right', url => {
  const endpoint = open({ url, key: 'sk-secret' })
  expect(() => endpoint.ensureReady()).toThrow(/begins with http/)
  expect(() => endpoint.ensureReady()).toThrow(RetryLater)
})

test('a rate limit is respected as long as Retry-After says', async () => {
  const { url } = await scriptedEndpoint(() => ({ status: 429, headers: { 'retry-after': '700' } }))
  const error = await failing(open({ url }, () => NOW).post('x', {}))
  expect((error as RetryLater).at).toBe(NOW + 700_000)
})

test.each([
  [undefined, 0],
  ['20', 20_000],
  [new Date(NOW + 5_000).toUTCString(), 5_000],
  [new Date(NOW - 5_000).toUTCString(), 0],
  ['soon', 0],
  ['9e99', 23 * 3_600_000],
])('to be asked again after %j means %i ms', (header, wait) => {
  expect(retryAfterMs(header, NOW)).toBe(wait)
})

test.each([401, 403, 404, 302, 500])('%i is about the endpoint, so its work waits', async status => {
  const { url } = await scriptedEndpoint(() => ({ status, json: {} }))
  expect(await failing(open({ url }).post('x', {}))).toBeInstanceOf(RetryLater)
})

test('a rejection quotes the endpoint, without the key', async () => {
  const echo = { error: { message: `too long, dear sk-secret; ${'x'.repeat(500)}` } }
  const { url } = await scriptedEndpoint(() => ({ status: 400, json: echo }))
  const endpoint = open({ url, key: 'sk-secret' })
  const error = await failing(endpoint.post('x', {}))
  expect(error).toBeInstanceOf(RejectedRequest)
  expect(error.message).toContain('too long, dear [secret]')
  expect(error.message.length).toBeLessThan(300)
  endpoint.ensureReady()
})

test('an error about a wrong key does not contain the key', async () => {
  const { url } = await scriptedEndpoint(() => ({ status: 401, json: { error: 'no such key: sk-secret' } }))
  const error = await failing(open({ url, key: 'sk-secret' }).post('x', {}))
  expect(`${error.message} ${error.stack}`).not.toContain('sk-secret')
})

test('a timeout counts as an attempt', async () => {
  const { url } = await scriptedEndpoint(() => 'silence')
  const error = await failing(open({ url, timeoutMs: 60 }).post('x', {}))
  expect(error).not.toBeInstanceOf(RetryLater)
  expect(error.message).toContain('did not answer within 0.06 s')
})

test.each(['', '<html>', '{"cut'])('%j is not JSON', async text => {
  const { url } = await scriptedEndpoint(() => ({ text }))
  expect((await failing(open({ url }).post('x', {}))).message).toContain('not JSON')
})

test('closing aborts running calls with RetryLater', async () => {
  const { url } = await scriptedEndpoint(() => 'silence')
  const endpoint = open({ url })
  const error = failing(endpoint.post('x', {}))
  await endpoint.close()
  expect(await error).toBeInstanceOf(RetryLater)
})
