import { afterAll, describe, expect, test, vi } from 'vitest'
import { stopServer } from '../../../../test/support/memory/postgres-store.ts'
import { whyNoPostgres } from '../../../../test/support/postgres.ts'

const why = whyNoPostgres()
if (why) console.warn(`The tests of the PostgreSQL driver are skipped: ${why}.`)

// What every store promises is told once, beside the SQLite driver; here the same tests get a store of this driver.
vi.mock('../../../../test/support/memory/sqlite-store.ts', async original => ({
  ...(await original<typeof import('../../../../test/support/memory/sqlite-store.ts')>()),
  temporaryStore: (await import('../../../../test/support/memory/postgres-store.ts')).temporaryStore,
}))

afterAll(stopServer)

describe.skipIf(why)(`PostgreSQL keeps what every store promises${why ? ` (skipped: ${why})` : ''}`, async () => {
  test('it is this driver that is tested', async () => {
    const { temporaryStore } = await import('../../../../test/support/memory/sqlite-store.ts')
    expect((await (await temporaryStore()).stats()).driver).toBe('pg')
  })
  await import('../sqlite/add.test.ts')
  await import('../sqlite/entities.test.ts')
  await import('../sqlite/facts.test.ts')
  await import('../sqlite/jobs.test.ts')
  await import('../sqlite/vectors.test.ts')
  await import('../sqlite/export.test.ts')
  await import('../sqlite/isolation.test.ts')
  await import('../sqlite/interleaved.test.ts')
})
