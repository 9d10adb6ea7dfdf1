import { expect } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { isModern, REVISIONS } from '../../src/protocol/revisions.ts'
import { everyCell } from './cells.ts'

everyCell('every kind of request is answered in the client’s own revision', async ({ client, server }) => {
  server.tools.set('echo', ({ arguments: args }) => ({
    content: [{ type: 'text', text: String(args.message) }],
    acme: { kept: 1 },
  }))
  const call = await client.call('tools/call', { name: 'echo', arguments: { message: 'hi' } })
  expect(call.error).toBeUndefined()
  expect(call.result).toMatchObject({ content: [{ type: 'text', text: 'hi' }], acme: { kept: 1 } })
  const methods: [string, Record<string, unknown>, string][] = [
    ['tools/list', {}, 'tools'],
    ['prompts/list', {}, 'prompts'],
    ['prompts/get', { name: 'p' }, 'messages'],
    ['resources/list', {}, 'resources'],
    ['resources/templates/list', {}, 'resourceTemplates'],
    ['resources/read', { uri: 'test://a' }, 'contents'],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: 'b' } },
      'completion',
    ],
  ]
  for (const [method, params, member] of methods) {
    const { result, error } = await client.call(method, params)
    expect([method, error]).toEqual([method, undefined])
    expect(result).toHaveProperty(member)
    if (isModern(client.revision)) expect(result?.resultType).toBe('complete')
    else for (const name of ['resultType', 'ttlMs', 'cacheScope']) expect(result).not.toHaveProperty(name)
    const isCacheable = method.endsWith('/list') || method === 'resources/read'
    if (isModern(client.revision) && isCacheable)
      expect(result).toMatchObject({ ttlMs: expect.any(Number), cacheScope: 'private' })
  }
  const requests = server.arrivals.filter(({ message }) => message.id !== undefined && message.method)
  for (const { message } of requests.filter(({ message }) => message.method !== 'initialize')) {
    const meta = (message.params?._meta ?? {}) as Record<string, unknown>
    if (isModern(server.revision))
      expect(meta).toMatchObject({ [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: {} })
    else expect(Object.keys(meta).filter(key => key.startsWith('io.modelcontextprotocol/'))).toEqual([])
  }
})

everyCell('errors come back with code, message and data', async ({ client }) => {
  const { error } = await client.call('tools/call', { name: 'nobody' })
  expect(error).toMatchObject({ code: -32602, message: 'Unknown tool nobody' })
  const unknown = await client.call('acme/unknown', { a: 1 })
  expect(unknown.error?.code).toBe(-32601)
})

everyCell('progress travels under the client’s own token, in order, before the result', async ({ client, server }) => {
  server.tools.set('work', async call => {
    for (const n of [1, 2, 3]) {
      call.progress(n, { total: 3, message: `step ${n}` })
      await new Promise(resolve => setImmediate(resolve))
    }
    return { content: [] }
  })
  const { notices, result } = await client.call('tools/call', { name: 'work' }, { meta: { progressToken: 'mine' } })
  expect(result).toBeDefined()
  const hasMessage = client.revision !== REVISIONS[0] || server.revision === REVISIONS[0] // equal ones pass untouched
  expect(notices.map(({ method, params }) => [method, params])).toEqual(
    [1, 2, 3].map(n => [
      'notifications/progress',
      { progressToken: 'mine', progress: n, total: 3, ...(hasMessage && { message: `step ${n}` }) },
    ]),
  )
  const meta = server.of('tools/call')[0]?.message.params?._meta as { progressToken?: unknown } | undefined
  expect([undefined, 'mine']).not.toContain(meta?.progressToken)
})

everyCell(
  'E11: a method of nobody’s specification passes, and only the envelope differs',
  async ({ client, server }) => {
    const params = { value: [1, { a: 2 }], requestState: 'theirs', inputResponses: { a: 1 }, uri: 'acme://x' }
    const answer = { got: { ttl: 1 }, nextCursor: 'n', inputRequests: {} }
    server.methods.set('acme/do', () => answer)
    if (!isModern(client.revision)) {
      await client.notify('acme/early', { n: 0 }) // after the handshake alone, also where no process was needed for it
      expect((await server.arrived('acme/early')).message.params).toMatchObject({ n: 0 })
    }
    const { result } = await client.call('acme/do', params, { meta: { 'acme/m': 1 } })
    const own = { ...result }
    if (isModern(client.revision)) {
      expect(own.resultType).toBe('complete')
      delete own.resultType
      delete own._meta // who the server is
    }
    expect(own).toEqual(answer)
    const { message, headers } = await server.arrived('acme/do')
    const { _meta: meta, ...rest } = message.params ?? {}
    expect(rest).toEqual(params)
    const envelope = Object.keys(meta as object).filter(key => key !== 'acme/m')
    expect((meta as Record<string, unknown>)['acme/m']).toBe(1)
    const logs = isModern(client.revision) ? [] : [META.logLevel]
    expect(envelope.sort()).toEqual(
      isModern(server.revision) ? [META.clientCapabilities, META.clientInfo, ...logs, META.protocolVersion] : [],
    )
    if (isModern(server.revision) && 'host' in headers) expect(headers['mcp-method']).toBe('acme/do')
    await client.notify('acme/note', { n: 1 })
    const { message: note } = await server.arrived('acme/note')
    expect(note.params).toMatchObject({ n: 1 })
  },
)
