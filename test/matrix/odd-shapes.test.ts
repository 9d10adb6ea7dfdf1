import { describe, expect, test } from 'vitest'
import { clientOf, inCell, inCells, SERVERS, serverOf } from './cells.ts'
import { ToolError } from './server.ts'

// Every request gets one answer, whatever the server says; a call that is never answered runs into the test's timeout.

const NAMES = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
const ASKING = { elicitation: {}, sampling: {}, roots: {} }
const TEXT = { content: [{ type: 'text', text: 'done' }] }

describe('a call is answered although its server asks by a method that every JavaScript object has', () => {
  const clients = [clientOf('2026-07-28'), clientOf('2025-11-25'), clientOf('2025-11-25', 'stdio')]
  test.each(SERVERS)('$name', async server => {
    await inCells(clients, server, { capabilities: ASKING }, async ({ client, server }) => {
      server.tools.set('ask', async call => {
        call.progress(1, { message: 'x'.repeat(1 << 20) }) // its reader is behind when the question comes
        const refused: unknown[] = []
        for (const method of NAMES) refused.push(await call.ask(method, method, {}).catch((error: Error) => error))
        return { content: [{ type: 'text', text: String(refused.length) }] }
      })
      const meta = { progressToken: 1 }
      const refuse = () => ({ error: { code: -32601, message: 'not here' } })
      const { result, error } = await client.call('tools/call', { name: 'ask' }, { meta, answer: refuse })
      expect(result ?? error, client.revision).toBeDefined()
      const { result: next } = await client.call('tools/list')
      expect(next?.tools).toHaveLength(1)
    })
  })
})

test.each([
  ['no object', ['https://a.example']],
  ['null', [null]],
  ['nothing', []],
  ['an object instead of a list', { url: 'https://a.example' }],
])('a server that demands links to be opened and names %s has its call answered', async (_, elicitations) => {
  for (const dialect of ['streamable', 'http-sse'])
    await inCell(clientOf('2026-07-28'), serverOf('2025-11-25', dialect), {}, async ({ another, server }) => {
      const client = await another({ elicitation: { url: {} } })
      server.tools.set('link', () => {
        throw new ToolError(-32042, 'open this', { elicitations })
      })
      const { error } = await client.call('tools/call', { name: 'link' })
      expect(error).toMatchObject({ code: -32603, message: 'open this' })
    })
})

/** What a server may say where the specification wants an object with members. */
const ODD: readonly unknown[] = [[], [[]], 7, 'text', null, true, { constructor: null, __proto__: [] }]

describe('a client is served although a server introduces itself oddly', () => {
  for (const server of [serverOf('2026-07-28'), serverOf('2025-11-25'), serverOf('2025-06-18', 'stdio')])
    test.each(ODD.map(odd => [odd]))(`${server.name} with %j`, async odd => {
      const prepare: NonNullable<Parameters<typeof inCell>[2]['prepare']> = made => {
        const hello = made.methods.get(made.revision === '2026-07-28' ? 'server/discover' : 'initialize')
        const told = { capabilities: { tools: odd, extensions: odd, experimental: odd }, _meta: odd, instructions: odd }
        if (hello) made.methods.set('server/discover', params => ({ ...hello(params), ...told }))
        if (hello && made.revision !== '2026-07-28')
          made.methods.set('initialize', params => ({ ...hello(params), ...told }))
        made.tools.set('t', () => TEXT)
      }
      const clients = [clientOf('2026-07-28'), clientOf('2025-11-25'), clientOf('2024-11-05')]
      await inCells(clients, server, { prepare }, async ({ client }) => {
        expect((await client.call('tools/call', { name: 't' })).result).toMatchObject(TEXT)
        await client.call('server/discover')
        await client.call('tools/list')
      })
    })
})

describe('a list, a result or a notice of an odd shape costs no answer', () => {
  const methods = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'completion/complete']
  const members = ['tools', 'prompts', 'resources', 'resourceTemplates', 'completion']
  const more = ['prompts/get', 'resources/read', 'messages', 'contents', 'content', '_meta', 'structuredContent']
  for (const server of [serverOf('2026-07-28'), serverOf('2025-11-25'), serverOf('2024-11-05', 'http-sse')])
    for (const client of [clientOf('2026-07-28'), clientOf('2025-06-18'), clientOf('2024-11-05')])
      test(`${client.name} → ${server.name}`, async () => {
        await inCell(client, server, { capabilities: ASKING }, async ({ client, server }) => {
          for (const odd of ODD) {
            const result = Object.fromEntries([...members, ...more, 'nextCursor'].map(member => [member, odd]))
            for (const method of [...methods, 'prompts/get', 'resources/read']) server.methods.set(method, () => result)
            server.tools.set('t', call => {
              call.progress(1, { message: odd, total: odd })
              call.log('info', odd)
              server.say('notifications/resources/updated', { uri: odd, _meta: odd })
              server.say('notifications/tools/list_changed', { _meta: odd })
              return result
            })
            const meta = { progressToken: 'p' }
            expect(await client.call('tools/call', { name: 't' }, { meta })).toBeDefined()
            const params = { name: 'p', uri: 'test://a', ref: { type: 'ref/prompt', name: 'p' }, argument: {} }
            for (const method of [...methods, 'prompts/get', 'resources/read'])
              expect(await client.call(method, params)).toBeDefined()
          }
        })
      })
})
