import { afterEach, expect, test } from 'vitest'
import { type Front, startFront } from '../../../test/support/front.ts'
import { openSession, send } from '../../../test/support/raw.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
afterEach(() => front.close())

const accept = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.empty })
const uriOf = (name: string) => `file:///${name}/${'x'.repeat(60_000)}`

const FULL = [...'abcdefghijklmnopq'] // as many of these as one session may have

test('the subscriptions of a session are bounded; unsubscribing makes room', async () => {
  front = await startFront({ 'resources/subscribe': accept, 'resources/unsubscribe': accept })
  const { headers } = await openSession(front.url)
  let id = 0
  const say = async (method: string, name: string) =>
    (await send(front.url, { headers, body: { jsonrpc: '2.0', id: ++id, method, params: { uri: uriOf(name) } } })).json
  for (const name of [...FULL, 'c']) expect((await say('resources/subscribe', name)).result).toEqual({})
  const refused = await say('resources/subscribe', 'z')
  expect(refused.error).toMatchObject({ code: -32602 })
  expect(refused.error?.message).toContain('1048576')
  await say('resources/unsubscribe', 'a')
  expect((await say('resources/subscribe', 'z')).result).toEqual({})
  expect(front.seen.filter(({ method }) => method === 'resources/subscribe')).toHaveLength(FULL.length + 2)
})

const refuse = (exchange: Exchange) => exchange.sink({ kind: 'failure', error: rpcError('internal', 'refused') })

test('a failed subscribe is not counted; a failed unsubscribe leaves the subscription counted', async () => {
  let answer = refuse
  const obey = (exchange: Exchange) => answer(exchange)
  front = await startFront({ 'resources/subscribe': obey, 'resources/unsubscribe': obey })
  const { headers } = await openSession(front.url)
  let id = 0
  const say = async (method: string, name: string) =>
    (await send(front.url, { headers, body: { jsonrpc: '2.0', id: ++id, method, params: { uri: uriOf(name) } } })).json
  for (const name of [...FULL, 'y', 'z'])
    expect((await say('resources/subscribe', name)).error?.message).toBe('refused')
  answer = accept
  for (const name of FULL) expect((await say('resources/subscribe', name)).result).toEqual({})
  answer = refuse
  await say('resources/unsubscribe', 'a')
  answer = accept
  expect((await say('resources/subscribe', 'z')).error).toMatchObject({ code: -32602 })
})

test('a subscribe request counts while it is in flight, and not at all if its id is in use', async () => {
  const waiting: Exchange[] = []
  let arrived = (): void => {}
  const hold = (exchange: Exchange) => {
    waiting.push(exchange)
    arrived()
  }
  front = await startFront({ 'resources/subscribe': hold })
  const session = await openSession(front.url)
  const headers = { ...session.headers, accept: 'application/json' } // however long an answer takes, it is no stream
  const subscribe = async (id: number, name: string) => {
    const params = { uri: uriOf(name) }
    return (await send(front.url, { headers, body: { jsonrpc: '2.0', id, method: 'resources/subscribe', params } }))
      .json
  }
  const held = async (id: number, name: string) => {
    const here = new Promise<void>(resolve => (arrived = resolve))
    const answered = subscribe(id, name)
    await here
    return { answered }
  }
  const first = await held(1, 'a')
  for (const name of ['b', 'c', 'd']) expect((await subscribe(1, name)).error).toMatchObject({ code: -32600 })
  const others: Awaited<ReturnType<typeof held>>[] = []
  for (const [at, name] of FULL.slice(1).entries()) others.push(await held(at + 2, name))
  expect((await subscribe(99, 'z')).error).toMatchObject({ code: -32602 })
  for (const exchange of waiting) void accept(exchange)
  for (const { answered } of [first, ...others]) expect((await answered).result).toEqual({})
})
