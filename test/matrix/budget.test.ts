import { expect } from 'vitest'
import { isModern } from '../../src/protocol/revisions.ts'
import { everyCell } from './cells.ts'
import type { MatrixServer } from './server.ts'

const FORM = {
  mode: 'form',
  message: 'Name?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
}
const accept = { action: 'accept', content: { name: 'Ann' } }
const OWN = ['search_tools', 'describe_tool', 'call_tool']
const TOOLS = ['work', 'ask', 'echo'].map(name => ({
  name,
  description: `A tool called ${name}. ${'It is described at length. '.repeat(20)}`,
  inputSchema: { type: 'object' },
}))

const prepare = (server: MatrixServer): void => {
  server.methods.set('tools/list', () => ({ tools: TOOLS, ttlMs: 0, cacheScope: 'private' }))
  server.tools.set('echo', ({ arguments: args }) => ({
    content: [{ type: 'text', text: JSON.stringify(args) }],
    structuredContent: { args },
    acme: { kept: 1 },
  }))
  server.tools.set('ask', async call => ({
    content: [{ type: 'text', text: JSON.stringify(await call.ask('n', 'elicitation/create', FORM)) }],
  }))
  server.tools.set('work', async call => {
    for (const n of [1, 2]) call.progress(n, { total: 2 })
    return { content: [] }
  })
}

const options = { rules: { budget: { tokens: 100, favourites: [] } }, capabilities: { elicitation: {} }, prepare }
const through = (name: string, args: Record<string, unknown> = {}) => ({
  name: 'call_tool',
  arguments: { name, arguments: args },
})

everyCell(
  'a workspace above its budget lists three tools, and calls through them are like direct ones',
  async ({ client, server }) => {
    const { result: list } = await client.call('tools/list')
    expect(((list?.tools ?? []) as { name: string }[]).map(({ name }) => name)).toEqual(OWN)
    const { result: found } = await client.call('tools/call', { name: 'search_tools', arguments: { query: 'echo' } })
    expect(JSON.stringify(found)).toContain('echo()')
    if (isModern(client.revision)) expect(found?.resultType).toBe('complete')
    else expect(found).not.toHaveProperty('resultType')

    const args = { n: 1, nested: { deep: ['x'] } }
    const direct = await client.call('tools/call', { name: 'echo', arguments: args })
    const called = await client.call('tools/call', through('echo', args))
    expect(called.result).toEqual(direct.result)
    const [first, second] = server.of('tools/call').map(({ message }) => message.params)
    const { _meta: _one, ...sent } = first ?? {}
    const { _meta: _other, ...sentThrough } = second ?? {}
    expect(sentThrough).toEqual(sent)

    const { notices } = await client.call('tools/call', through('work'), { meta: { progressToken: 'mine' } })
    expect(notices.map(({ params }) => [params?.progressToken, params?.progress])).toEqual([
      ['mine', 1],
      ['mine', 2],
    ])
  },
  options,
)

everyCell(
  'a tool that is called through the gateway asks its client',
  async ({ client }) => {
    const answered = await client.call('tools/call', through('ask'), { answer: () => accept })
    const direct = await client.call('tools/call', { name: 'ask' }, { answer: () => accept })
    expect(answered.result).toEqual(direct.result)
    expect(answered.asked.length).toBe(direct.asked.length)
  },
  { ...options, only: client => client >= '2025-06-18' },
)

everyCell(
  'a tool that is called through the gateway runs as a task',
  async ({ client }) => {
    const started = await client.call('tools/call', { ...through('echo', { n: 1 }), task: { ttl: 60_000 } })
    const { taskId } = (started.result?.task ?? {}) as { taskId?: string }
    const { result } = await client.call('tasks/result', { taskId })
    expect(result).toMatchObject({ content: [{ type: 'text', text: '{"n":1}' }] })
  },
  { ...options, only: client => client === '2025-11-25' },
)

everyCell(
  'a server whose tools are called by name hears of the roots of its client, and of names that it does not list',
  async ({ client, server }) => {
    await client.call('tools/call', { name: 'echo', arguments: {} })
    const unknown = await client.call('tools/call', { name: 'unlisted', arguments: {} })
    expect(unknown.error ?? unknown.result).toBeDefined()
    expect(server.of('tools/call').map(({ message }) => message.params?.name)).toEqual(['echo', 'unlisted'])
    await client.notify('notifications/roots/list_changed')
    await server.arrived('notifications/roots/list_changed')
  },
  {
    ...options,
    capabilities: { roots: { listChanged: true } },
    only: (client, server) => !isModern(client) && !isModern(server),
  },
)
