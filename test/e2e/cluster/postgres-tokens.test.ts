import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { openPostgres } from '../../../src/stores/postgres.ts'
import { openState } from '../../../src/stores/state/open-state.ts'
import type { StateStore } from '../../../src/stores/state/state-store.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { modern, send } from '../../support/raw.ts'
import { runCommand } from '../cli/in-process.ts'

const server = inject('postgresUrl')
const name = `tokens_${randomBytes(6).toString('hex')}`
const url = (server ?? '').replace(/\/[^/?]+(?=\?|$)/, `/${name}`)

const onServer = async (statement: string): Promise<void> => {
  const database = openPostgres({ url: server ?? '' })
  await database.exec(statement).finally(() => database.close())
}

describe.skipIf(server === undefined)('dragoman token with a store that replicas share', () => {
  let folder: string
  let config: string
  const gateways: Gateway[] = []
  const stores: StateStore[] = []

  beforeAll(async () => {
    await onServer(`CREATE DATABASE ${name}`)
    folder = await mkdtemp(join(tmpdir(), 'dragoman-token-store-'))
    config = join(folder, 'dragoman.json')
    const demo = { builtin: 'demo' }
    await writeFile(config, JSON.stringify({ store: url, listen: { port: 0 }, mcpServers: { demo } }))
    const snapshot = await loadConfig({ file: config, env: process.env })
    for (let i = 0; i < 2; i++) {
      const state = await openState({ kind: 'postgres', url }, SILENT)
      stores.push(state.store)
      const cluster = { labels: [], listen: { host: '127.0.0.1', port: 0 } }
      gateways.push(await startGateway({ ...snapshot, cluster }, { log: SILENT, state }))
    }
  })
  afterAll(async () => {
    for (const gateway of gateways) await gateway.close()
    for (const store of stores) await store.close()
    await rm(folder, { recursive: true })
    await onServer(`DROP DATABASE ${name} WITH (FORCE)`)
  })

  const token = (...args: string[]) => runCommand(['token', ...args, '--config', config, '--data', folder])
  const statuses = (secret?: string): Promise<number[]> =>
    Promise.all(
      gateways.map(async gateway => {
        const { body, headers } = modern(1, 'tools/list')
        const bearer = secret === undefined ? {} : { authorization: `Bearer ${secret}` }
        return (await send(gateway.url(), { body, headers: { ...headers, ...bearer } })).status
      }),
    )

  test('what it creates and revokes counts at every replica', async () => {
    expect((await token('list')).stdout).toBe('There are no tokens in the store of the replicas.\n')
    expect(await statuses()).toEqual([200, 200])
    const { stdout } = await token('create', 'laptop')
    expect(stdout).toContain('Its hash is stored in the store of the replicas.')
    expect(stdout).toContain('From now on every caller needs a token.')
    const secret = /drg_[\w-]{43}/.exec(stdout)?.[0] ?? ''
    await vi.waitFor(async () => expect(await statuses(secret)).toEqual([200, 200]), { timeout: 10_000 })
    expect(await statuses()).toEqual([401, 401])
    expect((await token('list')).stdout).toContain('laptop')
    expect((await token('revoke', 'laptop')).stdout).toContain('Revoked token')
    await vi.waitFor(async () => expect(await statuses(secret)).toEqual([401, 401]), { timeout: 10_000 })
  })

  test('a store that cannot be reached is named', async () => {
    const wrong = join(folder, 'wrong.json')
    await writeFile(wrong, JSON.stringify({ store: 'postgres://nobody@127.0.0.1:1/none', mcpServers: 'default' }))
    const { code, stderr } = await runCommand(['token', 'list', '--config', wrong, '--data', folder])
    expect(code).not.toBe(0)
    expect(stderr).toContain('127.0.0.1:1')
  })
})
