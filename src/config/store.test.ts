import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { compareConfigs } from './difference.ts'
import { loadConfig } from './load.ts'

const env = { DB_PASSWORD: 'p', SECRET: 'a secret that is long enough' }
const load = (value: object) => loadConfig({ value, env })
const URL = 'postgres://me:${DB_PASSWORD}@db.example.com/dragoman'
const FILLED = 'postgres://me:p@db.example.com/dragoman'

test('an address, or an address with a secret or a list of them', async () => {
  expect((await load({})).store).toBeUndefined()
  expect((await load({ store: URL })).store).toEqual({ url: FILLED })
  expect((await load({ store: { url: URL, secret: '${SECRET}' } })).store?.secrets).toEqual([env.SECRET])
  const both = await load({ store: { url: URL, secret: ['${SECRET}', 'another one, also long enough'] } })
  expect(both.store?.secrets).toEqual([env.SECRET, 'another one, also long enough'])
})

test('a password can be in a file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-store-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'password'), 'from-a-file\n')
  const config = { store: 'postgres://me:${file:password}@db/x', mcpServers: { demo: { builtin: 'demo' } } }
  await writeFile(join(folder, 'dragoman.json'), JSON.stringify(config))
  const { store, sources } = await loadConfig({ file: join(folder, 'dragoman.json'), env })
  expect(store?.url).toBe('postgres://me:from-a-file@db/x')
  expect(sources).toContain(join(folder, 'password'))
})

test.each([
  ['mysql://db/x', /store: expected an address like postgres:/],
  [{ url: 'db' }, /store\.url: expected an address like postgres:/],
  ['postgres://${NOT_SET}@db/x', /store: the variable NOT_SET is not set/],
  [{ url: URL, secret: 'short' }, /store\.secret: expected at least 16 characters, not 5/],
  [{ url: URL, secret: [] }, /store/],
  [17, /store: expected an address like postgres:.*or an object with "url" and "secret"/],
])('%j is rejected', async (store, problem) => {
  await expect(load({ store })).rejects.toThrow(problem)
})

test('the memory uses the store, unless it names a database of its own', async () => {
  const own = { builtin: 'memory', memory: { database: 'postgres://own/x' } }
  const { servers } = await load({ store: URL, mcpServers: { shared: { builtin: 'memory' }, own } })
  expect(servers.get('shared')).toMatchObject({ database: FILLED })
  expect(servers.get('own')).toMatchObject({ database: 'postgres://own/x' })
})

test('a changed store needs a restart, and is not shown', async () => {
  const difference = compareConfigs(await load({}), await load({ store: URL }))
  expect(difference.settings).toEqual([{ name: 'store', kind: 'changed', details: [{ at: 'url' }] }])
})
