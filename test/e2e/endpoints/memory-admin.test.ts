import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { MemoryServerList } from '../../../src/admin/api/memory.ts'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { EntityDetails, EpisodeDetails, MemorySearch, MemoryStats } from '../../../src/protocol/memory-views.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { createToken, newDataDirectory } from '../auth/guarded.ts'
import { call } from '../cli/call.ts'

const CONFIG = {
  limits: { shutdownMs: 200 },
  mcpServers: {
    memory: { builtin: 'memory' },
    mine: { builtin: 'memory', memory: { tenant: 'principal' } },
    demo: { builtin: 'demo' },
  },
}

const start = async (config: object, data: string | undefined, insecure = false): Promise<Gateway> => {
  const snapshot = await loadConfig({ value: config, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT, data, insecure })
  await gateway.ready
  return gateway
}

type Headers = Readonly<Record<string, string>>

const client =
  (gateway: () => Gateway) =>
  async (
    method: string,
    path: string,
    headers: Headers,
    body?: unknown,
  ): Promise<{ status: number; json: unknown }> => {
    const response = await fetch(`${gateway().origin}/admin/memory${path}`, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, json: text.startsWith('{') && !text.includes('}\n{') ? JSON.parse(text) : text }
  }

describe('with tokens', () => {
  let gateway: Gateway
  const ask = client(() => gateway)
  const owner = (): Headers => ({ authorization: `Bearer ${gateway.localSecret}` })
  let [ann, bob, limited]: Headers[] = [{}, {}, {}]

  beforeAll(async () => {
    const data = await newDataDirectory()
    ann = (await createToken(data, { principal: 'ann' })).headers
    bob = (await createToken(data, { principal: 'bob' })).headers
    limited = (await createToken(data, { principal: 'eve', workspaces: ['demo'] })).headers
    gateway = await start(CONFIG, data)
    for (const [headers, secret] of [
      [ann, 'lilac'],
      [bob, 'maple'],
    ] as const) {
      const episode = { name: secret, episode_body: `The password of Dora is ${secret}.` }
      const params = { name: 'add_memory', arguments: episode }
      const answer = await call(`${gateway.origin}/mcp/mine`, 'tools/call', params, headers)
      expect(answer).not.toMatchObject({ result: { isError: true } })
      expect(answer).toHaveProperty('result')
    }
  })
  afterAll(() => gateway.close())

  test('callers see which memories they may see', async () => {
    const tenants = async (headers: Headers) => {
      const { servers } = (await ask('GET', '', headers)).json as MemoryServerList
      return servers.map(({ name, tenants }) => [name, ...tenants.map(({ id, isEmpty }) => `${id} ${isEmpty}`)])
    }
    const shared = ['memory', 'workspace:default true', 'workspace:memory true']
    expect(await tenants(ann ?? {})).toEqual([shared, ['mine', 'principal:ann false']])
    expect(await tenants(owner())).toEqual([
      shared,
      ['mine', 'principal:local true', 'principal:ann false', 'principal:bob false'],
    ])
    expect((await ask('GET', '', {})).status).toBe(401)
    expect((await ask('GET', '', limited ?? {})).status).toBe(403)
  })

  test('no principal sees the memory of another one', async () => {
    const find = async (headers: Headers, tenant = '') =>
      ask('GET', `/search?server=mine&q=password${tenant && `&tenant=${tenant}`}`, headers)
    expect(JSON.stringify((await find(ann ?? {})).json)).toMatch(/lilac/)
    for (const tenant of ['', 'principal:ann'])
      expect(JSON.stringify((await find(ann ?? {}, tenant)).json)).not.toMatch(/maple/)
    for (const path of [
      '/search?q=x',
      '/stats?',
      '/timeline?',
      '/graph?',
      '/jobs?',
      '/export?',
      '/episodes/x?',
      '/entities/x?',
    ])
      expect(await ask('GET', `${path}&server=mine&tenant=principal:bob`, ann ?? {})).toMatchObject({
        status: 404,
        json: { error: { message: 'There is no memory "principal:bob" that you may see; there are: principal:ann' } },
      })
    expect(JSON.stringify((await find(owner(), 'principal:bob')).json)).toMatch(/maple/)
    // An id of another memory is unknown in one's own.
    const { facts } = (await find(owner(), 'principal:bob')).json as MemorySearch
    const episode = facts[0]?.episodes[0]?.id ?? ''
    expect((await ask('GET', `/episodes/${episode}?server=mine&tenant=principal:bob`, owner())).status).toBe(200)
    expect((await ask('GET', `/episodes/${episode}?server=mine`, ann ?? {})).status).toBe(404)
  })

  test.each([
    ['POST', '/episodes', { text: 'x' }],
    ['DELETE', '/episodes/x', undefined],
    ['PATCH', '/entities/x', {}],
    ['PATCH', '/facts/x', {}],
    ['DELETE', '/facts/x', undefined],
    ['POST', '/forget/preview', { kind: 'group', group: 'main' }],
    ['POST', '/forget', { kind: 'group', group: 'main' }],
    ['POST', '/import', 'x'],
    ['POST', '/jobs/retry', {}],
  ])('%s %s is for the owner only', async (method, path, body) => {
    expect((await ask(method, path, ann ?? {}, body)).status).toBe(403)
    expect((await ask(method, path, {}, body)).status).toBe(401)
  })
})

describe('without tokens', () => {
  let gateway: Gateway
  const ask = client(() => gateway)
  const owner = (): Headers => ({ authorization: `Bearer ${gateway.localSecret}` })
  const own = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const { status, json } = await ask(method, path, owner(), body)
    expect([status, json]).toEqual([expect.toSatisfy((code: number) => code < 300), expect.anything()])
    return json as T
  }
  beforeAll(async () => {
    gateway = await start(CONFIG, await newDataDirectory())
  })
  afterAll(() => gateway.close())

  test('a viewer reads the local memory, and changes nothing', async () => {
    await ask('POST', '/episodes?server=mine', owner(), { text: 'Ann owns a boat.' })
    expect(JSON.stringify((await ask('GET', '/search?server=mine&q=boat', {})).json)).toContain('Ann owns a boat.')
    expect((await ask('POST', '/episodes?server=mine', {}, { text: 'x' })).status).toBe(403)
    expect((await ask('GET', '/search?server=mine&q=boat&tenant=principal:ann', {})).status).toBe(404)
  })

  test('a memory is added, found, changed, and forgotten with a preview and a proof', async () => {
    const { episode, entities, facts } = await own<EpisodeDetails>('POST', '/episodes', {
      text: 'Zoltan and Mira saw Vienna. Mira liked the trams.',
      name: 'The trip',
      at: '2025-05-01',
    })
    expect(episode).toMatchObject({ name: 'The trip', group: 'main', at: Date.UTC(2025, 4, 1), characters: 49 })
    const found = await own<MemorySearch>('GET', '/search?q=trams')
    expect(found.facts[0]).toMatchObject({ text: 'Mira liked the trams.', episodes: [{ name: 'The trip' }] })
    expect(found.passages[0]).toMatchObject({ episode: { id: episode.id } })
    const mira = entities.find(({ name }) => name === 'Mira')?.id ?? ''
    const changed = await own<EntityDetails>('PATCH', `/entities/${mira}`, { name: 'Mira Kos', labels: ['Person'] })
    expect(changed).toMatchObject({ entity: { name: 'Mira Kos', labels: ['Person'] }, aliases: ['Mira'] })
    const liked = facts.find(({ text }) => text.includes('trams'))?.id ?? ''
    expect((await ask('PATCH', `/facts/${liked}`, owner(), { validUntil: '2025-06-01' })).status).toBe(204)
    const asOf = async (date: string) =>
      (await own<EntityDetails>('GET', `/entities/${mira}?asOf=${date}`)).facts.map(({ id }) => id).includes(liked)
    expect([await asOf('2025-05-15'), await asOf('2025-06-15')]).toEqual([true, false])
    expect(await own('POST', '/forget/preview', { kind: 'subject', name: 'Zoltan' })).toMatchObject({
      episodes: [{ text: 'The trip', isNamed: true }],
      facts: expect.arrayContaining([expect.objectContaining({ text: 'Mira liked the trams.', isNamed: false })]),
    })
    expect((await ask('GET', `/episodes/${episode.id}`, owner())).status).toBe(200)
    const proof = await own('POST', '/forget', { kind: 'subject', name: 'Zoltan' })
    expect(proof).toMatchObject({ episodes: 1, isClean: true, places: expect.any(Array) })
    expect((await ask('GET', `/episodes/${episode.id}`, owner())).status).toBe(404)
    const { changes } = await own<MemoryStats>('GET', '/stats')
    expect(changes.slice(0, 3).map(({ actor, action }) => `${actor}: ${action}`)).toEqual([
      'console: forget subject',
      'console: change fact',
      'console: change entity',
    ])
  })

  test('to forget nothing erases nothing', async () => {
    expect(await own('POST', '/forget/preview', { kind: 'subject', name: 'Nowhere' })).toEqual({
      episodes: [],
      entities: [],
      facts: [],
    })
    expect(await own('POST', '/forget', { kind: 'subject', name: 'Nowhere' })).toMatchObject({ episodes: 0, facts: 0 })
  })

  test.each([
    ['GET', '/search', undefined, 400, 'q: is missing'],
    ['GET', `/search?q=${'x'.repeat(1001)}`, undefined, 400, 'at most 1000'],
    ['GET', '/search?q=x&limit=0', undefined, 400, 'limit: expected a whole number from 1 to 100'],
    ['GET', '/search?q=x&asOf=yesterday', undefined, 400, 'asOf: "yesterday" is not an ISO 8601 date'],
    ['GET', '/search?q=x&group=a/b', undefined, 400, 'must contain only letters'],
    ['GET', '/search?q=x&server=demo', undefined, 404, 'There is no memory server "demo"; there are: memory, mine'],
    ['GET', '/timeline?kind=all', undefined, 400, 'kind: expected episode or fact'],
    ['GET', '/timeline?after=1', undefined, 400, 'after: is not a place in this list'],
    ['GET', '/episodes/missing', undefined, 404, 'There is no episode missing'],
    ['GET', '/entities/missing', undefined, 404, 'There is no entity missing'],
    ['DELETE', '/episodes/missing', undefined, 404, 'There is no episode missing'],
    ['DELETE', '/facts/missing', undefined, 404, 'There is no fact missing'],
    ['PATCH', '/facts/missing', { text: 'x' }, 404, 'There is no fact missing'],
    ['PATCH', '/facts/missing', { validUntil: '2025-02-30' }, 400, 'validUntil: "2025-02-30" is not an ISO 8601 date'],
    ['PATCH', '/facts/missing', { text: ' ' }, 400, 'text: is empty'],
    ['PATCH', '/facts/missing', { colour: 'red' }, 400, 'colour'],
    ['POST', '/episodes', { text: ' ' }, 400, 'there is nothing to remember'],
    ['POST', '/episodes', {}, 400, 'text'],
    ['POST', '/episodes', { text: 'x', at: 'then' }, 400, 'at: "then" is not an ISO 8601 date'],
    ['POST', '/episodes', { text: '{', source: 'json' }, 400, 'is not valid JSON'],
    ['POST', '/forget', { kind: 'entity', id: 'missing' }, 404, 'There is no entity missing'],
    ['POST', '/forget', { kind: 'subject' }, 400, 'to forget by "subject", give "name"'],
    ['POST', '/forget/preview', { kind: 'subject', name: ' ' }, 400, 'name: is empty'],
    ['POST', '/import?format=excel', 'x', 400, 'There is no format "excel"'],
    ['POST', '/import', ' ', 400, 'There is nothing in it to import'],
    ['POST', '/import?modified=soon', 'x', 400, 'modified: expected a time in milliseconds'],
  ] as const)('%s %s is refused', async (method, path, body, status, message) => {
    await own('POST', '/episodes', { text: 'There is something.' })
    const { status: found, json } = await ask(method, path, owner(), body)
    expect([found, json]).toEqual([status, { error: { message: expect.stringContaining(message) } }])
  })

  test('a file is imported with a report, and exported as it is', async () => {
    const lines = ['{"type":"entity","name":"Ida","entityType":"person","observations":["Ida sings"]}', 'broken']
    const report = await own('POST', '/import?server=mine&name=memory.jsonl', lines.join('\n'))
    expect(report).toMatchObject({ format: 'server-memory', created: 1, faulty: 1, faults: [{ where: 'line 2' }] })
    const response = await fetch(`${gateway.origin}/admin/memory/export?server=mine`, { headers: owner() })
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="memory.jsonl"')
    const exported = (await response.text()).trim().split('\n')
    expect(JSON.parse(exported[0] ?? '')).toMatchObject({ type: 'dragoman-memory' })
    expect(exported.join('\n')).toContain('Ida sings')
  })

  test('a large file is refused with what to do instead, announced or not', async () => {
    const message = expect.stringContaining('larger than 32 MiB')
    const refused = [413, { error: { message } }]
    const half = connect(gateway.port, '127.0.0.1')
    half.write(
      `POST /admin/memory/import HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${owner().authorization}\r\ncontent-length: 52428800\r\n\r\nx`,
    )
    const answer = await new Promise<string>(resolve => half.once('data', data => resolve(data.toString())))
    half.destroy()
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(answer).toContain('dragoman memory import FILE')
    const piece = new TextEncoder().encode(`x${`${' '.repeat(1023)}\n`.repeat(1024)}`)
    const body = ReadableStream.from(Array.from({ length: 40 }, () => piece))
    const response = await fetch(`${gateway.origin}/admin/memory/import?server=mine&name=big.txt`, {
      method: 'POST',
      headers: owner(),
      body,
      duplex: 'half',
    } as RequestInit)
    expect([response.status, await response.json()]).toEqual(refused)
  }, 60_000)

  test('an import that is cut off stores nothing half, and the next one works', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write(
      `POST /admin/memory/import?server=mine&name=cut.txt HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${owner().authorization}\r\ncontent-length: 1000\r\n\r\nA sentence that has no end`,
    )
    await new Promise(resolve => setTimeout(resolve, 300))
    socket.destroy()
    await vi.waitFor(() => own('POST', '/import?server=mine&name=whole.txt', 'A sentence with an end.'), {
      timeout: 5000,
    })
    const text = JSON.stringify(await own('GET', '/timeline?server=mine&kind=episode'))
    expect(text).toContain('A sentence with an end.')
    expect(text).not.toContain('has no end')
  })
})

test('a gateway that cannot tell its callers apart shows them the memory of anonymous callers', async () => {
  const gateway = await start(CONFIG, await newDataDirectory(), true)
  const { json } = await client(() => gateway)('GET', '', {})
  expect((json as MemoryServerList).servers[1]?.tenants).toEqual([
    { id: 'anybody', label: 'anonymous callers', isEmpty: true },
  ])
  await gateway.close()
})

test('without a memory server, or without a data directory, the answer says what to do', async () => {
  const none = await start({ mcpServers: { demo: { builtin: 'demo' } } }, await newDataDirectory())
  expect(await client(() => none)('GET', '', {})).toMatchObject({ status: 200, json: { servers: [] } })
  expect(await client(() => none)('GET', '/stats', {})).toMatchObject({
    status: 404,
    json: { error: { message: expect.stringContaining('No memory server is configured; add') } },
  })
  await none.close()
  const homeless = await start(CONFIG, undefined)
  expect(await client(() => homeless)('GET', '/stats', {})).toMatchObject({ status: 503 })
  await homeless.close()
})
