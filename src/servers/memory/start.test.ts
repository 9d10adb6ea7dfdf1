import { expect, onTestFinished, test, vi } from 'vitest'
import { talk } from '../../../test/support/embedded.ts'
import { said, scriptedEndpoint } from '../../../test/support/memory/endpoint.ts'
import { temporaryFolder } from '../../../test/support/memory/sqlite-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import type { PlainObject } from '../../wire/json/json.ts'
import { type MemoryOptions, startMemory } from './start.ts'

const start = async (options: Partial<MemoryOptions> = {}) => {
  const folder = options.folder ?? (await temporaryFolder())
  const server = startMemory({ folder, tenant: 'workspace', group: 'main', version: '1', log: SILENT, ...options })
  onTestFinished(() => server.close())
  const call = async (name: string, args: PlainObject = {}): Promise<string> =>
    JSON.stringify(await (await talk(server, 'tools/call', { name, arguments: args })).result())
  return { server, folder, call }
}

const FINDING = {
  entities: ['Ann', 'Acme'].map(name => ({ name, kind: 'Person', aliases: [], summary: `${name} is known.` })),
  facts: [{ source: 'Ann', relation: 'EMPLOYED_BY', target: 'Acme', fact: 'Ann earns her money at Acme', passage: 0 }],
}

test('a configured model reads added episodes within its budget, and every call carries the key', async () => {
  const endpoint = await scriptedEndpoint(() => said(FINDING))
  const extraction = { url: endpoint.url, key: 'k', model: 'large', callsPerMinute: 100, dailyTokens: 100_000 }
  const { call } = await start({ extraction })
  await call('add_memory', { name: 'Job', episode_body: 'Ann joined Acme.' })
  const found = () => call('search_memory_facts', { query: 'money' })
  await vi.waitFor(async () => expect(await found()).toContain('Ann earns her'), { timeout: 10_000, interval: 100 })
  expect(endpoint.asked[0]?.headers.authorization).toBe('Bearer k')
})

test('the next gateway continues the work of a closed one', async () => {
  const endpoint = await scriptedEndpoint(() => 'silence')
  const extraction = { url: endpoint.url, model: 'large' }
  const { server, folder, call } = await start({ extraction })
  await call('add_memory', { name: 'Job', episode_body: 'Ann joined Acme.' })
  await vi.waitFor(() => expect(endpoint.asked).toHaveLength(1))
  await server.close()
  endpoint.become(() => said(FINDING))
  const next = await start({ folder, extraction })
  const found = () => next.call('search_memory_facts', { query: 'money' })
  await vi.waitFor(async () => expect(await found()).toContain('Ann earns her'), { timeout: 10_000, interval: 100 })
})

test('without a model no job is enqueued', async () => {
  const { call } = await start()
  await call('add_memory', { name: 'Job', episode_body: 'Ann joined Acme.' })
  expect(await call('get_status')).toContain('0 jobs pending, 0 failed')
})

test('a fact without an episode is embedded, too', async () => {
  const endpoint = await scriptedEndpoint(() => 'silence')
  const { call } = await start({ embeddings: { url: endpoint.url, model: 'e' } })
  await call('add_triplet', { source_node_name: 'A', edge_name: 'KNOWS', fact: 'A knows B', target_node_name: 'B' })
  await vi.waitFor(() => expect(endpoint.asked.length).toBeGreaterThan(0))
  expect(await call('get_memory_jobs')).toContain('embed')
})
