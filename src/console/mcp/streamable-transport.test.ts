import { afterEach, expect, test, vi } from 'vitest'
import type { ReceivedMessage } from './messages.ts'
import { StreamableTransport } from './streamable-transport.ts'

const ENDPOINT = {
  url: 'http://gateway.test/mcp',
  version: '1',
  capabilities: {},
  token: () => Promise.resolve(undefined),
  onUnauthorized: () => {},
}
const ANSWER = 'data: {"jsonrpc":"2.0","id":7,"result":{"ok":true}}\n\n'
const events = (text: string, status = 200): Response =>
  new Response(text, { status, headers: { 'content-type': 'text/event-stream' } })

/** Sends a request whose POST and later GETs get these responses; returns what was received, and the GETs. */
const exchange = async (responses: readonly (Response | Error)[], ended = new AbortController()) => {
  const resumed: (string | null)[] = []
  const rest = [...responses]
  vi.spyOn(globalThis, 'fetch').mockImplementation((_url, init) => {
    if (init?.method === 'GET') resumed.push(new Headers(init.headers).get('last-event-id'))
    const next = rest.shift()
    if (next === undefined) throw new Error('one request too many')
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next)
  })
  const received: ReceivedMessage[] = []
  const transport = new StreamableTransport(ENDPOINT)
  await transport.open(message => {
    received.push(message)
    if (message.kind === 'result') ended.abort()
  })
  const sending = transport.send('{}', {}, { id: 7, ended: ended.signal })
  sending.catch(() => {})
  await vi.runAllTimersAsync()
  return { sending, received, resumed }
}

vi.useFakeTimers()
afterEach(() => vi.restoreAllMocks())

test('a stream that ends without the answer is resumed after its last event, when the server says', async () => {
  const { sending, received, resumed } = await exchange([
    events('id: a\ndata: \n\nretry: 40\n\nid: half'),
    events('id: b\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'),
    events(ANSWER),
  ])
  await sending
  expect(resumed).toEqual(['a', 'b'])
  expect(received.map(({ kind }) => kind)).toEqual(['notification', 'result'])
})

test('a lost connection is resumed, also if the gateway is away for a moment', async () => {
  const cut = new ReadableStream({
    start: controller => controller.enqueue(new TextEncoder().encode('id: a\ndata: \n\n')),
    pull: controller => controller.error(new TypeError('network error')),
  })
  const lost = new Response(cut, { headers: { 'content-type': 'text/event-stream' } })
  const { sending, received } = await exchange([
    lost,
    new TypeError('Failed to fetch'),
    events('', 503),
    events(ANSWER),
  ])
  await sending
  expect(received).toHaveLength(1)
})

test.each([
  ['has no ids', [events(': nothing\n\n')], []],
  ['is unknown by now', [events('id: a\ndata: \n\n'), events('', 400)], ['a']],
  [
    'brings nothing any more',
    [events('id: a\ndata: \n\n'), ...Array.from({ length: 5 }, () => events(''))],
    ['a', 'a', 'a', 'a', 'a'],
  ],
])('a stream that %s fails its request', async (_what, responses, expected) => {
  const { sending, resumed } = await exchange(responses)
  await expect(sending).rejects.toMatchObject({ reason: 'network' })
  expect(resumed).toEqual(expected)
})

test('a stream is not resumed for a request that has ended', async () => {
  const { sending, resumed } = await exchange([events('id: a\ndata: \n\n')], endedAtOnce())
  await sending
  expect(resumed).toEqual([])
})

const endedAtOnce = (): AbortController => {
  const ended = new AbortController()
  ended.abort()
  return ended
}
