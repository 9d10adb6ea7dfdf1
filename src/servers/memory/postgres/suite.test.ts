import { afterAll, describe, expect, test, vi } from 'vitest'
import { whyNoPostgres } from '../../../../test/services/postgres.ts'
import { stopServer } from './store.fixture.ts'

const why = whyNoPostgres()
if (why) console.warn(`The tests of the PostgreSQL driver are skipped: ${why}.`)

// What every store promises is told once, beside the SQLite driver; here the same tests get a store of this driver.
vi.mock('../sqlite/store.fixture.ts', async original => ({
  ...(await original<typeof import('../sqlite/store.fixture.ts')>()),
  temporaryStore: (await import('./store.fixture.ts')).temporaryStore,
}))

afterAll(stopServer)

describe.skipIf(why)(`PostgreSQL keeps what every store promises${why ? ` (skipped: ${why})` : ''}`, async () => {
  test('it is this driver that is tested', async () => {
    const { temporaryStore } = await import('../sqlite/store.fixture.ts')
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
