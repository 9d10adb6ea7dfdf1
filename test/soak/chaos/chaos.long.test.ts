import { expect, test } from 'vitest'
import { whyNoPostgres } from '../../support/postgres.ts'
import { SCENARIOS } from './scenario.ts'
import { runShort } from './short.ts'

const NAMES = SCENARIOS.filter(({ gateways }) => gateways > 1).map(({ name }) => name)

test.skipIf(whyNoPostgres()).each(NAMES)(
  'three replicas lose no session and no call: %s',
  { timeout: 240_000 },
  async name => {
    const { findings, results } = await runShort(name, 16)
    expect(findings).toEqual([])
    expect(results).toBeGreaterThan(16)
  },
)
