import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startFront } from '../../../test/support/front.ts'
import { modern } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

type Finish = typeof onTestFinished

/** A front, and a way to connect to it; both end with the test. */
const start = async (onFinished: Finish, ...args: Parameters<typeof startFront>) => {
  const front = await startFront(...args)
  const sockets: Socket[] = []
  onFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await front.close()
  })
  const open = (): Socket => {
    const socket = connect({ port: front.port, host: '127.0.0.1', allowHalfOpen: true })
    sockets.push(socket)
    return socket
  }
  return { front, open }
}

/** The first line of the answer to a peer that sends this and then neither sends nor closes. */
const answerTo = async (socket: Socket, text: string): Promise<string> => {
  socket.write(text)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.toString().split('\r\n')[0] ?? ''
}

const POST = 'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n'

// At the same time: each waits two seconds for the client to close.
test.concurrent.for<[string, string, RegExp, number | undefined]>([
  ['whose headers never end', 'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n', /408/, 200],
  ['whose body never ends', `${POST}content-length: 100\r\n\r\n{`, /408/, 200],
  ['that does not speak HTTP', 'hello there\r\n\r\n', /400/, undefined],
  ['whose headers are too large', `${POST}x: ${'y'.repeat(20_000)}\r\n\r\n`, /431/, undefined],
  ['that is refused before its body', `${POST.replace('/mcp', '/x')}content-length: 9\r\n\r\n{`, /404/, undefined],
  ['that announces too large a body', `${POST}content-length: 999999999\r\n\r\n{`, /413/, undefined],
])(
  'a connection %s is destroyed soon after the response, though the client stays',
  async ([, text, status, timeoutMs], { expect, onTestFinished }) => {
    const limits = timeoutMs === undefined ? {} : { requestTimeoutMs: timeoutMs }
    const { front, open } = await start(onTestFinished, {}, { limits })
    expect(await answerTo(open(), text)).toMatch(status)
    await expect.poll(() => front.connections(), { timeout: 5000 }).toBe(0)
  },
)

test('a connection that reads nothing of a large response is destroyed', async () => {
  const large = Json.of({ content: [{ type: 'text', text: 'x'.repeat(32 << 20) }] })
  const script = { 'tools/call': (exchange: Exchange) => exchange.sink({ kind: 'result', result: large }) }
  const { front, open } = await start(onTestFinished, script, { limits: { stallMs: 300 } })
  const { headers, body } = modern(1, 'tools/call', { name: 'large' })
  const text = JSON.stringify(body)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = open().pause()
  socket.write(`${POST}accept: application/json\r\n${lines.join('')}content-length: ${text.length}\r\n\r\n${text}`)
  await expect.poll(() => front.seen.length).toBe(1)
  await expect.poll(() => front.connections(), { timeout: 5000 }).toBe(0)
})
