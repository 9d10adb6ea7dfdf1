import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import { type Front, startFront } from '../../../test/support/front.ts'
import { modern, openSession, type RawReply, send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { serveStdio } from '../stdio/stdio.ts'

let front: Front
let calls: Exchange[]
const leaving: (() => void)[] = []

const start = async (): Promise<void> => {
  calls = []
  front = await startFront({ 'tools/call': exchange => void calls.push(exchange) })
}
afterEach(async () => {
  for (const leave of leaving.splice(0)) leave()
  await front.close()
})

interface Answer {
  readonly id?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

/** A client that sends and reads answers, wherever they come. */
interface Client {
  send(message: object): void
  next(): Promise<Answer>
}

const createAnswers = () => {
  const answers: Answer[] = []
  const waiting: ((answer: Answer) => void)[] = []
  return {
    push: (answer: Answer): void => {
      const next = waiting.shift()
      if (next) next(answer)
      else answers.push(answer)
    },
    next: (): Promise<Answer> => {
      const known = answers.shift()
      return known ? Promise.resolve(known) : new Promise(resolve => waiting.push(resolve))
    },
  }
}

/** What a reply holds, as JSON or, where it took longer, as events. */
const answersIn = ({ headers, text }: RawReply): Answer[] => {
  const isStream = headers['content-type'] === 'text/event-stream'
  const parts = isStream ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data) : [text]
  return parts.filter(part => part !== '').flatMap(part => JSON.parse(part) as Answer | Answer[])
}

const sessionClient = async (): Promise<Client> => {
  const { headers } = await openSession(front.url)
  const { push, next } = createAnswers()
  const post = async (body: object) => {
    for (const answer of answersIn(await send(front.url, { headers, body }))) push(answer)
  }
  return { send: message => void post(message), next }
}

const channelClient = async (): Promise<Client> => {
  const channel = await openChannel(`http://127.0.0.1:${front.port}/sse`)
  leaving.push(() => channel.close())
  return { send: message => void channel.post(message), next: () => channel.message() as Promise<Answer> }
}

const pipeClient = async (): Promise<Client> => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const { push, next } = createAnswers()
  let text = ''
  output.on('data', chunk => {
    const lines = (text + chunk).split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) push(JSON.parse(line) as Answer)
  })
  void serveStdio(front.context, { input, output, workspace: 'default', principal: 'local' })
  leaving.push(() => input.end())
  return { send: message => void input.write(`${JSON.stringify(message)}\n`), next }
}

const call = (id: number, progressToken?: unknown) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 't', _meta: { progressToken } },
})
const modernCall = (id: number, progressToken: unknown) =>
  modern(id, 'tools/call', { name: 't' }, { meta: { progressToken } })

const running = (count: number) => expect.poll(() => calls.length).toBe(count)
const finish = (at: number) => calls[at]?.sink({ kind: 'result', result: Json.of({ content: [] }) })

describe.each([
  ['a session over Streamable HTTP', sessionClient],
  ['an SSE channel', channelClient],
  ['a pipe', pipeClient],
])('%s', (_name, connect) => {
  test('rejects a progress token in use; the first call goes on, and the token is free afterwards', async () => {
    await start()
    const client = await connect()
    client.send(call(1, 'token'))
    await running(1)
    client.send(call(2, 'token'))
    expect(await client.next()).toMatchObject({
      id: 2,
      error: { code: -32600, message: expect.stringMatching(/progress token/) },
    })
    expect(calls).toHaveLength(1)
    finish(0)
    expect(await client.next()).toMatchObject({ id: 1, result: { content: [] } })
    client.send(call(3, 'token'))
    await running(2)
    finish(1)
    expect(await client.next()).toMatchObject({ id: 3, result: { content: [] } })
  })

  test('distinguishes 1 from "1", and accepts any number of calls without a token', async () => {
    await start()
    const client = await connect()
    const tokens = [1, '1', undefined, undefined]
    tokens.forEach((token, id) => {
      client.send(call(id, token))
    })
    await running(4)
    for (const at of tokens.keys()) finish(at)
    const answers = await Promise.all(tokens.map(() => client.next()))
    expect(answers.map(({ id }) => id).sort()).toEqual([0, 1, 2, 3])
    expect(answers.filter(({ error }) => error)).toEqual([])
  })

  test('frees the token of a call that is cancelled', async () => {
    await start()
    const client = await connect()
    client.send(call(1, 7))
    await running(1)
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await expect.poll(() => calls[0]?.signal.reason).toMatchObject({ kind: 'cancelled' })
    client.send(call(2, 7))
    await running(2)
  })
})

test('the second of two elements of a batch with the same token is rejected', async () => {
  await start()
  const { headers } = await openSession(front.url, '2025-03-26')
  const reply = send(front.url, { headers, body: [call(1, 'same'), call(2, 'same')] })
  await running(1)
  finish(0)
  expect(answersIn(await reply)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ id: 1, result: { content: [] } }),
      expect.objectContaining({ id: 2, error: expect.objectContaining({ code: -32600 }) }),
    ]),
  )
})

test('both eras on a pipe share tokens and ids', async () => {
  await start()
  const client = await pipeClient()
  client.send(modernCall(1, 'token').body)
  await running(1)
  client.send(modernCall(2, 'token').body)
  expect(await client.next()).toMatchObject({ id: 2, error: { code: -32600 } })
  client.send(call(3, 'token'))
  expect(await client.next()).toMatchObject({ id: 3, error: { code: -32600 } })
  client.send(call(4, 'other'))
  await running(2)
  client.send(modernCall(4, 'third').body)
  expect(await client.next()).toMatchObject({ id: 4, error: { code: -32600 } })
  finish(0)
  expect(await client.next()).toMatchObject({ id: 1, result: {} })
})

test('modern requests over HTTP each have their own stream, so they may use the same token', async () => {
  await start()
  const replies = [send(front.url, modernCall(1, 'token')), send(front.url, modernCall(2, 'token'))]
  await running(2)
  for (const at of [0, 1]) finish(at)
  for (const { json } of await Promise.all(replies)) expect(json.result).toMatchObject({ content: [] })
})
