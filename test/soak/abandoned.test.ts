import { expect, test } from 'vitest'
import { soakAbandonment } from './abandonment.ts'

// `npm run soak` does the same with 5,000 of each kind.
test('clients that leave without a word, and large sets of capabilities, leave no memory behind', {
  timeout: 180_000,
}, async () => {
  expect(await soakAbandonment({ warmUp: 20, times: 60, capabilitySets: 30 })).toEqual([])
})
