import { expect, test } from 'vitest'
import { fuzz } from './fuzz.ts'

// A failure shows what was sent, and the seed of the conversation.
test('no message of a client or a server makes the gateway crash, hang, answer 500 or keep something in 20 seconds', {
  timeout: 180_000,
}, async () => {
  const { conversations, faults } = await fuzz({ seed: 20261117, seconds: 20 })
  expect(faults).toEqual([])
  expect(conversations).toBeGreaterThan(100)
})
