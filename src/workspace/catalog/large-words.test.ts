import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { routed } from '../../../test/support/routes.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const heapMiB = async (): Promise<number> => {
  for (let i = 0; i < 5; i++) {
    await new Promise(resolve => setImmediate(resolve))
    collect()
  }
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

const long = (i: number): string => `x://${i}/${'a'.repeat(2 ** 20)}`

test('an unknown URI is not cached at full length', async () => {
  const unknown = ({ sink }: Exchange) => void sink({ kind: 'failure', error: rpcError('invalidParams') })
  const { say, arrivals } = routed({ a: { answer: unknown }, b: { answer: unknown } })
  const before = await heapMiB()
  for (let i = 0; i < 20; i++) await (await say('resources/read', { uri: long(i) })).failure()
  expect(arrivals.length).toBe(40)
  await (await say('resources/read', { uri: long(0) })).failure()
  expect(arrivals.length).toBe(40)
  arrivals.length = 0
  expect((await heapMiB()) - before).toBeLessThan(10)
})

test('a link of any length is recorded, but not at full length', async () => {
  let i = 0
  const answer = ({ method, sink }: Exchange): void => {
    const link = { type: 'resource_link', uri: `x://${i}/${'a'.repeat(4000)}`, name: 'n' }
    const result = method === 'tools/call' ? { content: [link] } : { contents: [] }
    void sink({ kind: 'result', result: Json.of(result) })
  }
  const lists = { tools: [{ name: 'x' }] }
  const { say, arrivals, last } = routed({ a: { answer }, b: { lists, answer } })
  const before = await heapMiB()
  for (i = 0; i < 3500; i++) {
    await (await say('tools/call', { name: 'x' }, { caller: { principal: `p${i % 10}` } })).result()
    arrivals.length = 0
  }
  expect((await heapMiB()) - before).toBeLessThan(10)
  const uri = `x://3499/${'a'.repeat(4000)}`
  await (await say('resources/read', { uri }, { caller: { principal: 'p9' } })).result()
  expect(last()?.server).toBe('b')
})
