import { afterEach, expect, test } from 'vitest'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { openSession, openStream, send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
const start = async (script: Script = {}): Promise<string> => {
  front = await startFront(script)
  return front.url
}
afterEach(() => front.close())

const request = (id: unknown, method = 'tools/call') => ({ jsonrpc: '2.0', id, method, params: { name: 'echo' } })
const echo = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })

test.each(['2025-03-26', '2025-06-18', '2025-11-25'])(
  'a batch in a %s session is answered as one array, in order',
  async revision => {
    const url = await start({ 'tools/call': exchange => void setImmediate(() => echo(exchange)), 'a/b': echo })
    const { headers } = await openSession(url, revision)
    const body = [request(1), { jsonrpc: '2.0', method: 'acme/note' }, request('two', 'a/b'), request(3, 'ping')]
    const reply = await send(url, { headers, body })
    expect(JSON.parse(reply.text).map((message: { id: unknown }) => message.id)).toEqual([1, 'two', 3])
    expect(front.seen.map(({ method }) => method)).toContain('acme/note')
  },
)

test('a batch with notifications becomes a stream of single messages', async () => {
  const url = await start({
    'tools/call': exchange => {
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/progress',
        params: Json.of({ progressToken: 1, progress: 1 }),
      })
      void echo(exchange)
    },
  })
  const { headers } = await openSession(url, '2025-03-26')
  const stream = await openStream(url, { headers, body: [request(1), request(2)] })
  expect((await stream.all()).map(({ json }) => json.method ?? json.id)).toEqual([
    'notifications/progress',
    1,
    'notifications/progress',
    2,
  ])
})

test('an element that is no message fails alone', async () => {
  const url = await start({ 'tools/call': echo })
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: [request(1), 5, { jsonrpc: '2.0', id: 2 }] })
  const answers = JSON.parse(reply.text) as { id: unknown; error?: { code: number } }[]
  expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
    [1, undefined],
    [null, -32600],
    [2, -32600],
  ])
})

test('a batch without requests gets 202', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: [{ jsonrpc: '2.0', method: 'acme/note' }] })
  expect([reply.status, reply.text]).toEqual([202, ''])
})

test.each([
  ['empty', []],
  ['with initialize', [request(1), request(2, 'initialize')]],
  ['mixing requests and responses', [request(1), { jsonrpc: '2.0', id: 5, result: {} }]],
  ['too long', Array.from({ length: 101 }, (_, i) => request(i))],
])('a batch that is %s is rejected as a whole', async (_name, body) => {
  const url = await start({ 'tools/call': echo })
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body })
  expect([reply.status, reply.json.error?.code]).toEqual([400, -32600])
  expect(front.seen.some(({ method }) => method === 'tools/call')).toBe(false)
})

test('a batch without a session is rejected', async () => {
  const url = await start()
  expect((await send(url, { body: [request(1)] })).status).toBe(400)
})
