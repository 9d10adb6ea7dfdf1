import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestDaemon } from '../../support/cli.ts'
import { type TestClient, textOf } from '../../support/client.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { answerWith, startRestApi } from '../../support/rest-api.ts'

// Answers of APIs that are not what their document promises, or that have no end.

const MIB = 1024 * 1024
const get = (operationId: string, type = 'application/json') => ({
  get: { operationId, responses: { 200: { description: '', content: { [type]: { schema: {} } } } } },
})
const document = {
  openapi: '3.1.0',
  info: { title: 'Odd', version: '1' },
  paths: {
    '/huge': get('huge', 'application/octet-stream'),
    '/broken-json': get('brokenJson'),
    '/binary-error': get('binaryError'),
    '/html-error': get('htmlError'),
    '/cut': get('cut'),
    '/stream-error': get('streamError', 'text/event-stream'),
    '/stream-breaks': get('streamBreaks', 'text/event-stream'),
    '/stream-long': get('streamLong', 'text/event-stream'),
    '/slow': get('slow', 'text/event-stream'),
  },
}

const events = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })

const closed: string[] = []
const answers = {
  '/openapi.json': answerWith('application/json', JSON.stringify(document)),
  '/huge': answerWith('application/octet-stream', Buffer.alloc(65 * MIB)),
  '/broken-json': answerWith('application/json', '{"a": '),
  '/binary-error': answerWith('image/png', Buffer.alloc(100), 500),
  '/html-error': answerWith('text/html', '<html><h1>Bad Gateway</h1></html>', 502),
  '/cut': (_: unknown, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' }).write('{"a":')
    setTimeout(() => response.destroy(), 20)
  },
  '/stream-error': (_: unknown, response: ServerResponse) =>
    void events(response).end('data: begun\n\nevent: error\ndata: out of credit\n\n'),
  '/stream-breaks': (_: unknown, response: ServerResponse) => {
    events(response).write('data: begun\n\n')
    setTimeout(() => response.destroy(), 20)
  },
  '/stream-long': async (_: unknown, response: ServerResponse) => {
    const chunks = Array.from({ length: 200 }, () => `data: ${'x'.repeat(100_000)}\n\n`)
    await pipeline(Readable.from(chunks), events(response)).catch(() => undefined) // the gateway has read enough
  },
  '/slow': (_: unknown, response: ServerResponse) => {
    events(response).write('data: {"progress": 1, "total": 2}\n\n')
    response.once('close', () => closed.push('/slow'))
  },
}

describe('an answer', () => {
  let client: TestClient
  const closing: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    const api = await startRestApi(answers)
    const daemon = await startTestDaemon({ mcpServers: { odd: { openapi: `${api.origin}/openapi.json` } } })
    client = await connectV2('SDK v2 modern', { url: `${daemon.origin}/mcp` })
    closing.push(api.close, () => daemon.close(), client.close)
  })
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  })

  it.each([
    ['huge', 'of more than 64 MiB', /more than 64 MiB/],
    ['brokenJson', 'that is not valid JSON', /^HTTP 200 OK with a body that is not valid JSON; .*\n\{"a": $/],
    ['binaryError', 'with an error status and bytes', /^HTTP 500 Internal Server Error\n\(100 bytes of image\/png\)$/],
    ['htmlError', 'with an error status and a page', /^HTTP 502 Bad Gateway\n<html>/],
    ['cut', 'that breaks off', /broke|closed|ended|lost/i],
    ['streamError', 'in events with an error', /^out of credit$/],
    ['streamBreaks', 'in events that breaks off', /broke|closed|ended|lost/i],
  ])('%s: %s is a tool error that says so', async (name, _what, message) => {
    const result = await client.call(name)
    expect(textOf(result).slice(0, 1000)).toMatch(message)
    expect(result.isError).toBe(true)
  })

  it('in events without end is cut, and says so', async () => {
    const text = textOf(await client.call('streamLong'))
    expect(text.length).toBeLessThan(5 * MIB)
    expect(text).toMatch(/… \(the stream is longer\)$/)
  })

  it('that nobody waits for any more is closed', async () => {
    const giveUp = new AbortController()
    const options = { signal: giveUp.signal, onProgress: () => giveUp.abort('no longer needed') }
    await expect(client.call('slow', {}, options)).rejects.toThrow('no longer needed')
    await expect.poll(() => closed).toEqual(['/slow'])
  })
})
