import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startLoginProcesses } from '../../../test/support/login-processes.ts'
import { openPostgres } from '../../stores/postgres.ts'

const server = inject('postgresUrl')
const name = `login_${randomBytes(6).toString('hex')}`
const url = (server ?? '').replace(/\/[^/?]+(?=\?|$)/, `/${name}`)

const onServer = async (statement: string): Promise<void> => {
  const database = openPostgres({ url: server ?? '' })
  await database.exec(statement).finally(() => database.close())
}

describe.skipIf(server === undefined)('processes on PostgreSQL', () => {
  beforeAll(() => onServer(`CREATE DATABASE ${name}`))
  afterAll(() => onServer(`DROP DATABASE ${name} WITH (FORCE)`))

  test('four with 50 calls each send one refresh; one that is killed after its answer costs nothing', async () => {
    const { issuer, processes, loginThatEnds, killBeforeAnswer, refreshes } = await startLoginProcesses(url)
    await loginThatEnds()
    const outcomes = await Promise.all(processes.map(({ call }) => call(50)))
    expect(outcomes).toEqual(Array.from({ length: 4 }, () => new Array(50).fill(200)))
    expect(refreshes()).toBe(1)

    await loginThatEnds()
    issuer.settings.rejectsReuse = false // it forgives a lost answer
    const others = await killBeforeAnswer()
    expect(refreshes()).toBe(2)
    expect(await Promise.all(others.map(({ call }) => call(10)))).toEqual(others.map(() => new Array(10).fill(200)))
    expect(refreshes()).toBe(3)
  })
})
