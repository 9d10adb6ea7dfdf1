import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { clientOf, everyCell, inCell, serverOf } from './cells.ts'

const isAcross = (client: string, server: string): boolean => client === '2026-07-28' && server !== '2026-07-28'

everyCell(
  'ML-4: every result of a legacy server tells a modern client who the server is',
  async ({ client, server }) => {
    server.tools.set('t', () => ({ content: [], _meta: { acme: 1 } }))
    const expected = { name: expect.stringMatching(/^raw-/), version: '1' }
    for (const [method, params] of [
      ['tools/list', {}],
      ['tools/call', { name: 't' }],
      ['prompts/list', {}],
      ['prompts/get', { name: 'p' }],
      ['resources/list', {}],
      ['resources/templates/list', {}],
      ['resources/read', { uri: 'test://a' }],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }],
      ['server/discover', {}],
    ] as const) {
      const { result } = await client.call(method, params)
      expect([method, result?._meta]).toMatchObject([method, { [META.serverInfo]: expected }])
    }
    expect((await client.call('tools/call', { name: 't' })).result?._meta).toMatchObject({ acme: 1 })
  },
  { only: isAcross },
)

test('what the server wrote there itself is kept', async () => {
  await inCell(clientOf('2026-07-28'), serverOf('2025-11-25'), {}, async ({ client, server }) => {
    const own = { [META.serverInfo]: { name: 'inner', version: '9' }, acme: 1 }
    server.tools.set('t', () => ({ content: [], _meta: own }))
    expect((await client.call('tools/call', { name: 't' })).result?._meta).toEqual(own)
  })
})

test('a legacy client is told nothing of it', async () => {
  await inCell(clientOf('2025-11-25'), serverOf('2025-06-18'), {}, async ({ client, server }) => {
    server.tools.set('t', () => ({ content: [] }))
    expect((await client.call('tools/call', { name: 't' })).result).toEqual({ content: [] })
  })
})
