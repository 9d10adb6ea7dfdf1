import { expect, onTestFinished, test, vi } from 'vitest'
import { talk } from '../../../test/support/embedded.ts'
import { createTestLog } from '../../../test/support/log.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { startInThread } from './upstream.ts'

const start = () => {
  const { log, lines } = createTestLog()
  const entry = new URL('../../../test/support/scripted-thread', import.meta.url)
  const server = startInThread({ entry, data: undefined, name: 'scripted', log })
  onTestFinished(() => server.close())
  return { server, messages: () => lines.map(({ message }) => message) }
}

test('a call crosses with its parameters as they were written, and with who calls', async () => {
  const { server, messages } = start()
  const params = Json.parse(Buffer.from('{"big":12345678901234567890,"one":1.0}'))
  const call = await talk(server, 'echo', params, {
    caller: { principal: 'ada', capabilities: Json.of({ roots: {} }) },
  })
  await call.result()
  const [frame] = call.frames
  expect(frame?.kind === 'result' && frame.result.toString()).toBe(
    '{"params":{"big":12345678901234567890,"one":1.0},"who":"ada","can":{"roots":{}}}',
  )
  await server.close()
  expect(messages()).toEqual(['started', 'closed'])
})

test('a slow reader holds its own call back, and no other', async () => {
  const { server } = start()
  let catchUp = (): void => {}
  const slow = await talk(
    server,
    'count',
    { times: 3 },
    {
      onFrame: () =>
        new Promise<void>(resolve => {
          catchUp = resolve
        }),
    },
  )
  await vi.waitFor(() => expect(slow.frames).toHaveLength(1), { timeout: 10_000 })
  await (await talk(server, 'count', { times: 100 })).result()
  expect(slow.frames).toHaveLength(1)
  for (let taken = 2; taken <= 4; taken++) {
    catchUp()
    await vi.waitFor(() => expect(slow.frames).toHaveLength(taken))
  }
  await slow.result()
})

test('a thread that fails ends its calls with a reason, and the next call starts another', async () => {
  const { server, messages } = start()
  const [waiting, crash] = [
    await talk(server, 'count', { times: 1 }, { onFrame: () => new Promise(() => {}) }),
    await talk(server, 'crash'),
  ]
  expect((await crash.failure()).message).toBe('The server scripted stopped unexpectedly; try again')
  expect((await waiting.failure()).message).toBe('The server scripted stopped unexpectedly; try again')
  expect(messages()).toEqual(['started', 'thread of a built-in server failed'])
  await (await talk(server, 'echo')).result()
  expect(messages().at(-1)).toBe('started')
})

test.each(['throws', 'rejects'])(
  'a call whose reader %s on a notice ends with a failure, and others go on',
  async how => {
    const { server } = start()
    const onFrame = (frame: Frame): void | Promise<void> => {
      if (frame.kind !== 'notice') return
      if (how === 'rejects') return Promise.reject(new Error('cannot be written'))
      throw new Error('cannot be written')
    }
    const broken = await talk(server, 'count', { times: 3 }, { onFrame })
    expect((await broken.failure()).data).toEqual({ reason: 'gateway_error' })
    await (await talk(server, 'count', { times: 3 })).result()
    expect(broken.frames.map(({ kind }) => kind)).toEqual(['notice', 'failure'])
  },
)

test('a server that waits for a slow reader goes on when the call is cancelled', async () => {
  const { server, messages } = start()
  const call = await talk(server, 'count', { times: 3 }, { onFrame: () => new Promise(() => {}) })
  await vi.waitFor(() => expect(call.frames).toHaveLength(1), { timeout: 10_000 })
  call.abort.abort({ kind: 'cancelled' })
  await vi.waitFor(() => expect(messages()).toContain('counted'), { timeout: 5000 })
  expect(call.frames).toHaveLength(1)
})

const bytes = (...texts: string[]) => ReadableStream.from(texts.map(text => new TextEncoder().encode(text)))

test('an operation takes a stream and gives one; a refusal keeps its reason, a bug shows nothing', async () => {
  const { server, messages } = start()
  const doubled = (await server.invoke('double', [bytes('ab', 'c')])) as ReadableStream<Uint8Array>
  expect(await new Response(doubled).text()).toBe('ababcc')
  await expect(server.invoke('refuse', [])).rejects.toMatchObject({ refusal: 'missing', message: 'It is not there' })
  await expect(server.invoke('toString', [])).rejects.toMatchObject({ refusal: 'missing' })
  await expect(server.invoke('fail', [])).rejects.toMatchObject({
    refusal: 'failed',
    message: 'Internal error; see the log of the gateway',
  })
  expect(messages()).toContain('operation of a built-in server failed')
})

test('an operation ends with its thread, and the next one starts another', async () => {
  const { server } = start()
  await expect(server.invoke('crash', [])).rejects.toMatchObject({ refusal: 'busy' })
  await expect(server.invoke('refuse', [])).rejects.toMatchObject({ refusal: 'missing' })
  await server.close()
  await expect(server.invoke('refuse', [])).rejects.toMatchObject({ refusal: 'busy' })
})
