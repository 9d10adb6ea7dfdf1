import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { modern, type RawReply, send } from '../../support/raw.ts'
import { answerToHalf, type Guarded, startGuarded } from './guarded.ts'

const gateways: Guarded[] = []
const start = async (options?: Parameters<typeof startGuarded>[0]): Promise<Guarded> => {
  const gateway = await startGuarded(options)
  gateways.push(gateway)
  return gateway
}
// However long a test takes, it happens within one second of the limiter.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
})
afterEach(async () => {
  vi.useRealTimers()
  for (const gateway of gateways.splice(0)) await gateway.close()
})

const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })
const pings = (url: string, count: number, headers: object = {}) =>
  Promise.all(
    Array.from({ length: count }, () => send(url, { body: PING.body, headers: { ...PING.headers, ...headers } })),
  )
const retryAfterMs = ({ json }: RawReply): number =>
  (json.error?.data as { retryAfterMs: number } | undefined)?.retryAfterMs ?? 0
const statuses = (replies: readonly { readonly status: number }[]): number[] =>
  replies.map(({ status }) => status).sort()

describe('a gateway with a rate per principal', () => {
  const limits = { rate: { perPrincipal: { perSecond: 2, burst: 1 } } }

  it('turns the rest away with 429, and says when to come again', async () => {
    const { url } = await start({ limits })
    const replies = await pings(url, 6)
    expect(statuses(replies)).toEqual([200, 200, 200, 429, 429, 429])
    for (const { json, headers } of replies.filter(({ status }) => status === 429)) {
      expect(headers['retry-after']).toBe('1')
      expect(json).toMatchObject({ id: null, error: { code: -32603, message: /Too Many Requests/ } })
      expect(json.error?.data).toEqual({ retryAfterMs: 1000 })
    }
  })

  it('takes a caller again who waited as long as was said', async () => {
    const { url } = await start({ limits })
    const replies = await pings(url, 6)
    vi.advanceTimersByTime(Math.max(...replies.map(retryAfterMs)) - 1)
    expect(statuses(await pings(url, 1))).toEqual([429])
    vi.advanceTimersByTime(1)
    expect(statuses(await pings(url, 1))).toEqual([200])
  })

  it('gives legacy callers -32002', async () => {
    const { url } = await start({ limits })
    await pings(url, 3)
    const reply = await send(url, { body: { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} } })
    expect(reply.status).toBe(429)
    expect(reply.json.error).toMatchObject({ code: -32002, data: { retryAfterMs: expect.any(Number) } })
  })

  it('answers before it has the body', async () => {
    const { url, gateway } = await start({ limits })
    await pings(url, 3)
    expect(await answerToHalf(gateway.port)).toMatch(/^HTTP\/1\.1 429 /)
  })

  it('counts every principal on its own', async () => {
    const gateway = await start({ limits })
    const [one, two] = [await gateway.create(), await gateway.create()]
    expect(statuses(await pings(gateway.url, 4, one.headers))).toEqual([200, 200, 200, 429])
    expect(statuses(await pings(gateway.other, 4, two.headers))).toEqual([200, 200, 200, 429])
  })
})

describe('a gateway with a rate per workspace', () => {
  it('counts all callers together, and every workspace on its own', async () => {
    const gateway = await start({ limits: { rate: { perWorkspace: { perSecond: 2, burst: 0 } } } })
    const [one, two] = [await gateway.create(), await gateway.create()]
    const mixed = await Promise.all([pings(gateway.url, 2, one.headers), pings(gateway.url, 2, two.headers)])
    expect(statuses(mixed.flat())).toEqual([200, 200, 429, 429])
    expect(statuses(await pings(gateway.other, 2, one.headers))).toEqual([200, 200])
  })
})

it('a gateway without a rate takes what comes', async () => {
  const { url } = await start()
  expect(new Set(statuses(await pings(url, 50)))).toEqual(new Set([200]))
})
