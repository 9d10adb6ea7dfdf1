import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Front, startFront } from '../../../test/support/front.ts'
import { modern } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await front.close()
})

/** The first line of the answer to a peer that sends this and then neither sends nor closes. */
const answerTo = async (text: string): Promise<string> => {
  const socket = connect({ port: front.port, host: '127.0.0.1', allowHalfOpen: true })
  sockets.push(socket)
  socket.write(text)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.toString().split('\r\n')[0] ?? ''
}

const POST = 'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n'

test.each([
  ['whose headers never end', 'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n', /408/, 200],
  ['whose body never ends', `${POST}content-length: 100\r\n\r\n{`, /408/, 200],
  ['that does not speak HTTP', 'hello there\r\n\r\n', /400/, undefined],
  ['whose headers are too large', `${POST}x: ${'y'.repeat(20_000)}\r\n\r\n`, /431/, undefined],
  ['that is refused before its body', `${POST.replace('/mcp', '/x')}content-length: 9\r\n\r\n{`, /404/, undefined],
  ['that announces too large a body', `${POST}content-length: 999999999\r\n\r\n{`, /413/, undefined],
])(
  'a connection %s is destroyed soon after the response, though the client stays',
  async (_, text, status, timeoutMs) => {
    front = await startFront({}, { limits: timeoutMs === undefined ? {} : { requestTimeoutMs: timeoutMs } })
    expect(await answerTo(text)).toMatch(status)
    await expect.poll(() => front.connections(), { timeout: 5000 }).toBe(0)
  },
)

test('a connection that reads nothing of a large response is destroyed', async () => {
  const large = Json.of({ content: [{ type: 'text', text: 'x'.repeat(32 << 20) }] })
  const script = { 'tools/call': (exchange: Exchange) => exchange.sink({ kind: 'result', result: large }) }
  front = await startFront(script, { limits: { stallMs: 300 } })
  const { headers, body } = modern(1, 'tools/call', { name: 'large' })
  const text = JSON.stringify(body)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect({ port: front.port, host: '127.0.0.1', allowHalfOpen: true })
  sockets.push(socket.pause())
  socket.write(`${POST}accept: application/json\r\n${lines.join('')}content-length: ${text.length}\r\n\r\n${text}`)
  await expect.poll(() => front.seen.length).toBe(1)
  await expect.poll(() => front.connections(), { timeout: 5000 }).toBe(0)
})
