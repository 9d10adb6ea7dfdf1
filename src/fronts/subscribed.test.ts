import { afterEach, expect, test } from 'vitest'
import { type Front, startFront } from '../../test/support/front.ts'
import { openSession, send } from '../../test/support/raw.ts'
import type { Exchange } from '../protocol/exchange.ts'
import { Json } from '../wire/json.ts'

let front: Front
afterEach(() => front.close())

const accept = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.empty })
const uriOf = (name: string) => `file:///${name}/${'x'.repeat(300 * 1024)}`

test('a session cannot subscribe without end; what it gives up it may have again', async () => {
  front = await startFront({ 'resources/subscribe': accept, 'resources/unsubscribe': accept })
  const { headers } = await openSession(front.url)
  let id = 0
  const say = async (method: string, name: string) =>
    (await send(front.url, { headers, body: { jsonrpc: '2.0', id: ++id, method, params: { uri: uriOf(name) } } })).json
  for (const name of ['a', 'b', 'c', 'c']) expect((await say('resources/subscribe', name)).result).toEqual({})
  const refused = await say('resources/subscribe', 'd')
  expect(refused.error).toMatchObject({ code: -32602 })
  expect(refused.error?.message).toContain('1048576')
  await say('resources/unsubscribe', 'a')
  expect((await say('resources/subscribe', 'd')).result).toEqual({})
  expect(front.seen.filter(({ method }) => method === 'resources/subscribe')).toHaveLength(5)
})
