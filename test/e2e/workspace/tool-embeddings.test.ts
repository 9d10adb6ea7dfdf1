import { afterEach, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { serverOf } from '../../matrix/cells.ts'
import { embedded, meaning, type Scripted, scriptedEndpoint } from '../../support/memory/endpoint.ts'
import { modern, send } from '../../support/raw.ts'

// A workspace whose budget names a memory ranks tools by the model of that memory, too.

/** Words that mean the same, as the little model knows them; no tool has the words of the queries. */
const CONCEPTS = { umbrella: 'rain', weather: 'rain', forecast: 'rain', invoice: 'money', bill: 'money' }

const TOOLS = ['forecast', 'create_invoice', 'resize_image', 'translate', 'play_song', 'lock_door'].map(name => ({
  name,
  description: `Does it: ${name.replace('_', ' ')}. ${'More is said here. '.repeat(20)}`,
  inputSchema: { type: 'object' },
}))

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const vectors = ({ body }: { body: { input: readonly string[] } }): Scripted =>
  embedded(body.input, text => meaning(text, 64, CONCEPTS))

const open = async (script: Parameters<typeof scriptedEndpoint>[0] = vectors) => {
  const endpoint = await scriptedEndpoint(script)
  const server = await serverOf('2026-07-28').start()
  closing.push(server.close)
  server.methods.set('tools/list', () => ({ tools: TOOLS, ttlMs: 0, cacheScope: 'private' }))
  const embeddings = { url: endpoint.url, key: 'k-1', model: 'm' }
  const value = {
    mcpServers: {
      things: { url: 'url' in server.config ? server.config.url : '' },
      memory: { builtin: 'memory', memory: { embeddings } },
    },
    workspaces: { default: { servers: ['things'], budget: { tokens: 1000, favourites: [], embeddings: 'memory' } } },
    limits: { shutdownMs: 200 },
  }
  const snapshot = await loadConfig({ value, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT })
  closing.push(gateway.close)
  await gateway.ready
  /** The names that a search finds, the best first. */
  const search = async (query: string): Promise<string[]> => {
    const call = modern(1, 'tools/call', { name: 'search_tools', arguments: { query } })
    const { text } = await send(gateway.url(), call)
    return [...text.matchAll(/\\n\\n(\w+)\(/g)].map(([, name]) => name ?? '')
  }
  return { endpoint, search }
}

test('a tool is found by what it means, and by words until the vectors are there', async () => {
  const { endpoint, search } = await open()
  expect(await search('umbrella')).toEqual([]) // no word of it is in a tool, and there are no vectors yet
  await expect.poll(async () => (await search('umbrella'))[0]).toBe('forecast')
  expect((await search('pay a bill'))[0]).toBe('create_invoice')
  expect((await search('umbrella to resize the image')).slice(0, 2).toSorted()).toEqual(['forecast', 'resize_image'])
  const texts = endpoint.asked.flatMap(({ body }) => body.input).filter(text => text.startsWith('things: '))
  expect(texts).toHaveLength(TOOLS.length) // each once, however often there was a search
  expect(endpoint.asked[0]?.headers.authorization).toBe('Bearer k-1')
})

describe('an endpoint that', () => {
  test.each<[string, () => Scripted]>([
    ['is down', () => ({ status: 503, text: 'no' })],
    ['rejects the texts', () => ({ status: 400, json: { error: { message: 'too long' } } })],
    ['answers nonsense', () => ({ json: { data: 'x' } })],
    ['never answers', () => 'silence'],
  ])('%s leaves the search by words as it is, and is not asked again and again', async (_, script) => {
    const { endpoint, search } = await open(script)
    for (let i = 0; i < 5; i++) expect(await search('resize an image')).toEqual(['resize_image'])
    expect(endpoint.asked.length).toBeLessThanOrEqual(2)
  })

  test('is slow with a query does not hold up the search', async () => {
    let isSlow = false
    const { search } = await open(asked => (isSlow ? 'silence' : vectors(asked)))
    await expect.poll(async () => (await search('umbrella'))[0]).toBe('forecast')
    isSlow = true
    const begun = performance.now()
    expect((await search('resize an image'))[0]).toBe('resize_image')
    expect(performance.now() - begun).toBeLessThan(5000) // one second, and what this machine adds
  })
})

test('the name of something else than a memory with embeddings is a mistake in the file', async () => {
  const read = (embeddings: string) =>
    loadConfig({
      value: {
        mcpServers: { demo: { builtin: 'demo' }, memory: { builtin: 'memory' } },
        workspaces: { default: { servers: ['demo'], budget: { tokens: 1000, embeddings } } },
      },
      env: {},
    })
  for (const name of ['demo', 'memory', 'nothing'])
    await expect(read(name)).rejects.toThrow(/workspaces.default.budget.embeddings.*"builtin": "memory" server/)
})
