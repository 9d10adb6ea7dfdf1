import { afterAll, describe, expect, test } from 'vitest'
import { endPrograms } from '../e2e/cli/program.ts'
import { measurePromotion } from './promotion.ts'

afterAll(endPrograms)

const MOST_BYTES = 1000 // of the old generation for each call: a tenth of it is normal, the defect costs 3500 and more

// SlotList says why: a Map or Set that each call adds itself to keeps finished calls.
describe('finished calls do not reach the old generation', () => {
  test.each([
    { client: 'modern', server: 'modern' },
    { client: 'session', server: 'legacy' },
    { client: 'modern', server: 'legacy' },
  ] as const)('$client client, $server server', { timeout: 120_000 }, async pair => {
    const { scavenges, promotedPerCall, allocatedPerCall } = await measurePromotion({
      ...pair,
      warmUp: 1000,
      calls: 4000,
    })
    expect(scavenges).toBeGreaterThan(3)
    expect(promotedPerCall + allocatedPerCall).toBeLessThan(MOST_BYTES)
  })
})
