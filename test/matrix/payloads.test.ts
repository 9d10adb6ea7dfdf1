import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { expect, test } from 'vitest'
import { isModern } from '../../src/protocol/revisions.ts'
import { clientOf, everyCell, inCell, serverOf } from './cells.ts'
import { spelt } from './client.ts'
import { ToolError } from './server.ts'

const ROWS = { $defs: { row: { type: 'object' } }, type: 'array', items: { $ref: '#/$defs/row' } }

test.each(['stateless', 'stdio'])(
  'D8: SDK v1 takes a modern tool whose output is an array, in the list and in the call (%s server)',
  async dialect => {
    await inCell(clientOf('2025-11-25'), serverOf('2026-07-28', dialect), {}, async ({ server, url }) => {
      const tool = { name: 'rows', inputSchema: { type: 'object' }, outputSchema: ROWS }
      const plain = { name: 'plain', inputSchema: { type: 'object' }, outputSchema: { type: 'object' } }
      server.methods.set('tools/list', () => ({ tools: [tool, plain] }))
      server.tools.set('rows', () => ({ content: [], structuredContent: [{ a: 1 }, { b: 2 }] }))
      const client = new Client({ name: 'v1', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name)).toEqual(['rows', 'plain'])
      expect(tools[0]?.outputSchema).toEqual({
        type: 'object',
        properties: { result: { ...ROWS, items: { $ref: '#/properties/result/$defs/row' } } },
        required: ['result'],
      })
      expect(tools[1]?.outputSchema).toEqual({ type: 'object' })
      const result = await client.callTool({ name: 'rows' }) // which it checks against that schema
      expect(result.structuredContent).toEqual({ result: [{ a: 1 }, { b: 2 }] })
      expect(server.of('tools/call').map(({ message }) => message.params?.name)).toEqual(['rows'])
      await client.close()
    })
  },
)

const SOUND = Buffer.from(Array.from({ length: 256 }, (_, n) => n)).toString('base64')
const KNOWN_TO_THE_FIRST = ['text', 'image', 'resource']

everyCell(
  'E6: sound, a link and structure reach a 2024-11-05 client in blocks it knows',
  async ({ client, server }) => {
    server.tools.set('rich', () => ({
      content: [
        { type: 'audio', data: SOUND, mimeType: 'audio/wav' },
        { type: 'resource_link', uri: 'test://a', name: 'a', description: 'the first' },
      ],
      structuredContent: { n: 1, list: [true] },
    }))
    const { result } = await client.call('tools/call', { name: 'rich' })
    const content = result?.content as Record<string, unknown>[]
    expect(content).toEqual([
      { type: 'resource', resource: { uri: expect.stringMatching(/^audio:/), mimeType: 'audio/wav', blob: SOUND } },
      { type: 'text', text: 'a\ntest://a\nthe first', uri: 'test://a', name: 'a', description: 'the first' },
      { type: 'text', text: '{"n":1,"list":[true]}' },
    ])
    for (const { type } of content) expect(KNOWN_TO_THE_FIRST).toContain(type)
    expect(result?.structuredContent).toEqual({ n: 1, list: [true] })
    expect(server.of('tools/call')).toHaveLength(1)
  },
  { only: (client, server) => client === '2024-11-05' && server >= '2025-06-18' },
)

const NUMBERS = '{"n":12345678901234567890,"x":1.0,"e":[1E+2,-0]}'
const numbers = { n: spelt('12345678901234567890'), x: spelt('1.0'), e: [spelt('1E+2'), spelt('-0')] }

everyCell('E10: numbers and unknown members keep their spelling on both wires', async ({ client, server }) => {
  const annotations = { readOnlyHint: true, acme: numbers }
  const tool = { name: 't', inputSchema: { type: 'object', default: numbers }, annotations, acme: numbers }
  server.methods.set('tools/list', () => ({ tools: [tool], acme: numbers }))
  server.tools.set('t', () => ({
    content: [{ type: 'text', text: 'x', acme: numbers }],
    acme: numbers,
    _meta: { 'acme/m': numbers },
  }))
  await client.call('tools/list')
  const list = client.texts.find(text => text.includes('"tools":['))
  for (const spelling of [
    `"inputSchema":{"type":"object","default":${NUMBERS}}`,
    `"annotations":{"readOnlyHint":true,"acme":${NUMBERS}},"acme":${NUMBERS}`,
    `],"acme":${NUMBERS}`,
  ])
    expect(list).toContain(spelling)

  const given = { name: 't', arguments: numbers, acme: numbers }
  await client.call('tools/call', given, { meta: { 'acme/m': numbers } })
  const [call] = server.of('tools/call')
  for (const spelling of [`"arguments":${NUMBERS},"acme":${NUMBERS}`, `"acme/m":${NUMBERS}`])
    expect(call?.text).toContain(spelling)
  const answer = client.texts.find(text => text.includes('"content":['))
  for (const spelling of [`"text":"x","acme":${NUMBERS}}],"acme":${NUMBERS}`, `"acme/m":${NUMBERS}`])
    expect(answer).toContain(spelling)
})

everyCell(
  'F11: a resource a modern server does not have is not found in the words of a legacy client',
  async ({ client, server }) => {
    server.methods.set('resources/read', ({ uri }) => {
      throw new ToolError(-32602, 'Resource not found', { uri: uri === 'test://b' ? 'test://other' : uri, acme: 1 })
    })
    const read = async (uri: string) => (await client.call('resources/read', { uri })).error
    expect(await read('test://a')).toEqual({
      code: -32002,
      message: 'Resource not found',
      data: { uri: 'test://a', acme: 1 },
    })
    expect(await read('test://b')).toMatchObject({ code: -32602, data: { uri: 'test://other' } })
    expect(server.of('resources/read').map(({ message }) => message.params?.uri)).toEqual(['test://a', 'test://b'])
  },
  { only: (client, server) => !isModern(client) && isModern(server) },
)
