import { expect, test } from 'vitest'
import { runShort } from './short.ts'

// `npm run chaos` does the same with 200 clients and 50 kills, and waits until servers have no session left over.
test('a gateway that is killed loses no session, and no call ends twice or not at all', {
  timeout: 120_000,
}, async () => {
  const { findings, results } = await runShort('one', 9)
  expect(findings).toEqual([])
  expect(results).toBeGreaterThan(8)
})
