import { expect, test } from 'vitest'
import { fuzz } from './fuzz.ts'
import { writeMessage } from './mutate.ts'
import { createRandom } from './random.ts'

const SECONDS = 3
const AT_ONCE = 16 // other tests run meanwhile
const LONGEST_MS = 120_000

// The long forms are fuzz.long.test.ts and `npm run fuzz`. A failure shows what was sent, and the seed of the conversation.
test(
  'no message of a client or a server makes the gateway crash, hang, answer 500 or keep something',
  async () => {
    const { conversations, faults } = await fuzz({ seed: 20261116, seconds: SECONDS, atOnce: AT_ONCE })
    expect(faults).toEqual([])
    expect(conversations).toBeGreaterThan(20)
  },
  LONGEST_MS,
)

test('the same seed damages a message in the same way, and most seeds damage it', () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 't', arguments: { list: [1, 2] } } }
  const damaged = (seed: number): string => writeMessage(message, createRandom(seed), true).toString()
  const all = Array.from({ length: 200 }, (_, seed) => damaged(seed))
  expect(all).toEqual(Array.from({ length: 200 }, (_, seed) => damaged(seed)))
  expect(all.filter(text => text !== JSON.stringify(message)).length).toBeGreaterThan(180)
  expect(new Set(all).size).toBeGreaterThan(120)
})
