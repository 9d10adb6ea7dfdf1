import { afterAll, beforeAll, expect, it } from 'vitest'
import { openChannel } from '../../support/channel.ts'
import { send } from '../../support/raw.ts'
import { answerWith, startRestApi } from '../../support/rest-api.ts'
import { type Served, serve } from './served.ts'

/** Seed 003 without a server of its own: an API and its document, one line of configuration, and the same curl examples. */

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const text = { content: { 'text/plain': { schema: { type: 'string' } } }, description: '' }
const document = {
  openapi: '3.0.3',
  info: { title: 'kulturarv', version: '1.0.0' },
  paths: {
    '/ping': {
      get: { operationId: 'example-ping', description: 'Returns a simple pong response', responses: { 200: text } },
    },
    '/echo': {
      get: {
        operationId: 'example-echo',
        description: 'Echoes back the provided message',
        parameters: [
          {
            name: 'message',
            in: 'query',
            required: true,
            description: 'The message to echo back',
            schema: { type: 'string' },
          },
        ],
        responses: { 200: text },
      },
    },
    '/photo': { get: { operationId: 'photo', responses: { 200: { description: '', content: { 'image/png': {} } } } } },
    '/down': { get: { operationId: 'down', responses: { 200: text } } },
  },
}

let served: Served
const closing: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  const api = await startRestApi({
    '/openapi.json': answerWith('application/json', JSON.stringify(document)),
    '/ping': answerWith('text/plain', 'pong'),
    '/echo': ({ url }, response) =>
      answerWith('text/plain', `Echo: ${new URL(url, 'http://x').searchParams.get('message')}`)({} as never, response),
    '/photo': answerWith('image/png', PNG),
    '/down': answerWith('text/plain', 'Could not connect to API', 503),
  })
  closing.push(api.close)
  served = await serve({ mcpServers: { kulturarv: { openapi: `${api.origin}/openapi.json` } } })
  closing.push(served.close)
  await served.ready
})
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

const curl = (body: object, path = '/message') => send(`${served.origin}${path}`, { headers: { accept: '*/*' }, body })
const call = (name: string, given: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 3, method: 'tools/call' },
  params: { name, arguments: given },
})

it('List Tools', async () => {
  const { json } = await curl({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} })
  expect(json.result?.tools).toMatchObject([
    { name: 'example-ping', description: 'Returns a simple pong response', inputSchema: { type: 'object' } },
    {
      name: 'example-echo',
      description: 'Echoes back the provided message',
      inputSchema: {
        type: 'object',
        properties: { message: { type: 'string', description: 'The message to echo back' } },
        required: ['message'],
      },
    },
    { name: 'photo' },
    { name: 'down' },
  ])
})

it('Call Tool: text, an image, and a tool error', async () => {
  const result = async (name: string, given?: object) => (await curl(call(name, given))).json.result
  expect((await result('example-ping'))?.content).toEqual([{ type: 'text', text: 'pong' }])
  expect((await result('example-echo', { message: 'Hello, World!' }))?.content).toEqual([
    { type: 'text', text: 'Echo: Hello, World!' },
  ])
  expect((await result('photo'))?.content).toEqual([
    { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' },
  ])
  expect(await result('down')).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: 'HTTP 503 Service Unavailable\nCould not connect to API' }],
  })
})

it('SSE Stream: the answer is in the body and on the stream', async () => {
  const channel = await openChannel(`${served.origin}/sse`)
  const path = `/message?session_id=${channel.id}`
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'curl', version: '1.0' } }
  const direct = await curl({ jsonrpc: '2.0', id: 1, method: 'initialize', params }, path)
  expect(direct.json.result).toMatchObject({ protocolVersion: '2024-11-05', serverInfo: { name: 'kulturarv' } })
  expect(await channel.next()).toEqual({ event: 'message', data: direct.text })
  channel.close()
})
