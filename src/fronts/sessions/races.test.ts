import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { type Front, startFront } from '../../../test/support/front.ts'
import { modern, openStream, send } from '../../../test/support/raw.ts'
import { Json } from '../../wire/json/json.ts'
import { EventLog, type StreamReader } from '../streams/event-log.ts'
import { StreamRetention } from '../streams/stream-retention.ts'

let front: Front | undefined
afterEach(async () => {
  await front?.close()
  front = undefined
  vi.useRealTimers()
})
const INIT = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
}
const begin = async (url: string) => {
  const r = await send(url, { body: INIT })
  return { 'mcp-session-id': String(r.headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
}
/** A modern request as bytes, to be sent behind others on one connection. */
const rawPost = (id: number, method: string, params: Record<string, unknown>): string => {
  const { headers, body } = modern(id, method, params)
  const text = JSON.stringify(body)
  const lines = Object.entries({
    host: '127.0.0.1',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
  })
  return `POST /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n${text}`
}
const BOUNDS = { streamLogBytes: 1 << 20, streamLogEvents: 1000 }

test('a slow reader of a finished stream gets everything, however long it takes', () => {
  vi.useFakeTimers()
  const retention = new StreamRetention({ total: 1 << 26, perOwner: 1 << 26 })
  const log = new EventLog('p1', { limits: BOUNDS, retention }, 'me')
  const got: string[] = []
  let ended = false
  let room = 1
  const reader: StreamReader = {
    write: p => {
      got.push(Buffer.concat([...p]).toString())
      return --room > 0
    },
    end: () => {
      ended = true
    },
    destroy: () => {},
  }
  log.attach(reader, 0)
  void log.append([Buffer.from('"one"')])
  void log.append([Buffer.from('"result"')])
  log.finish()
  retention.retain(log, 30_000, () => {})
  vi.advanceTimersByTime(31_000)
  retention.sweep(Date.now())
  room = 10
  log.drained(reader)
  expect([got.length, ended]).toEqual([2, true])
})

test('discarding many small logs does not overflow the stack', () => {
  const retention = new StreamRetention({ total: 2_000_000, perOwner: 2_000_000 })
  for (let i = 0; i < 20_000; i++) {
    const log = new EventLog(`p${i}`, { limits: { ...BOUNDS, streamLogBytes: 1 << 26 }, retention }, 'me')
    void log.append([Buffer.from('{"a":1}')])
    log.finish()
    retention.retain(log, 30_000, () => {})
  }
  const big = new EventLog('big', { limits: { ...BOUNDS, streamLogBytes: 1 << 26 }, retention }, 'me')
  expect(() => void big.append([Buffer.alloc(1_990_000, 0x61)])).not.toThrow()
})

test('DELETE ends every GET stream of the session', async () => {
  front = await startFront()
  const h = await begin(front.url)
  const one = await openStream(front.url, { method: 'GET', headers: { ...h, accept: 'text/event-stream' } })
  const two = await openStream(front.url, { method: 'GET', headers: { ...h, accept: 'text/event-stream' } })
  await send(front.url, { method: 'DELETE', headers: h })
  expect(await two.next()).toBeUndefined()
  expect(await Promise.race([one.next().then(() => 'ended'), sleep(500).then(() => 'still open')])).toBe('ended')
  one.close()
})

test('only the newest GET stream gets the priming event', async () => {
  front = await startFront()
  const h = await begin(front.url)
  const get = { method: 'GET', headers: { ...h, accept: 'text/event-stream' } }
  const one = await openStream(front.url, get)
  const bytes: string[] = []
  const two = await openStream(front.url, get)
  two.response.on('data', (c: Buffer) => bytes.push(c.toString()))
  await expect.poll(() => bytes.join('')).toContain('id: g1.')
  one.close()
  two.close()
})

test('the response of a POST stream ends when a resume replaces it', async () => {
  let finish = () => {}
  front = await startFront({
    'tools/call': e => {
      void e.sink({ kind: 'notice', method: 'notifications/message', params: Json.of({ level: 'info', data: 1 }) })
      finish = () => void e.sink({ kind: 'result', result: Json.of({ content: [] }) })
    },
  })
  const h = await begin(front.url)
  const one = await openStream(front.url, {
    headers: h,
    body: { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'x' } },
  })
  const first = await one.next()
  const two = await openStream(front.url, {
    method: 'GET',
    headers: { ...h, accept: 'text/event-stream', 'last-event-id': first?.id ?? '' },
  })
  finish()
  expect((await two.next())?.json.id).toBe(2)
  expect(await Promise.race([one.next().then(() => 'ended'), sleep(500).then(() => 'still open')])).toBe('ended')
  one.close()
})

test('a subscription that the server ended is still aborted when the session ends', async () => {
  front = await startFront({
    'subscriptions/listen': e => void e.sink({ kind: 'failure', error: { code: -32601, message: 'no' } }),
  })
  const h = await begin(front.url)
  await send(front.url, { headers: h, body: { jsonrpc: '2.0', method: 'notifications/initialized' } })
  await send(front.url, { method: 'DELETE', headers: h })
  const standing = front.seen.find(e => e.method === 'subscriptions/listen')
  expect(standing?.signal.reason).toBeDefined()
})

test('pipelined requests behind a stream are cancelled when the socket closes', async () => {
  front = await startFront({ 'tools/call': () => {} })
  const post = (id: number) => rawPost(id, 'subscriptions/listen', { notifications: {} })
  const socket = connect(front.port, '127.0.0.1')
  socket.write(post(1) + post(2) + post(3))
  await expect.poll(() => front?.seen.length).toBe(3)
  socket.destroy()
  await once(socket, 'close')
  await expect.poll(() => front?.seen.map(e => e.signal.reason?.kind)).toEqual(['gone', 'gone', 'gone'])
})

test('a request in absolute form is served', async () => {
  front = await startFront()
  const socket = connect(front.port, '127.0.0.1')
  socket.write(
    `GET http://127.0.0.1:${front.port}/mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\nconnection: close\r\n\r\n`,
  )
  let text = ''
  for await (const c of socket) text += c
  expect(text.split('\r\n')[0]).toContain('405')
})

test('the response of a pipelined call behind a stream is destroyed, not buffered without bound', async () => {
  let sink: ((n: number) => unknown) | undefined
  front = await startFront(
    {
      'tools/call': e => {
        sink = n =>
          e.sink({
            kind: 'notice',
            method: 'notifications/message',
            params: Json.of({ level: 'info', data: 'x'.repeat(n) }),
          })
      },
    },
    { limits: { stallMs: 300, streamLogBytes: 100_000 } },
  )
  const socket = connect(front.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(rawPost(1, 'subscriptions/listen', { notifications: {} }) + rawPost(2, 'tools/call', { name: 'x' }))
  await expect.poll(() => sink).toBeDefined()
  for (let i = 0; i < 50; i++) void sink?.(20_000)
  const call = front.seen.find(e => e.method === 'tools/call')
  await expect.poll(() => call?.signal.reason?.kind, { timeout: 5000 }).toBe('gone')
  socket.destroy()
})

test('a large response is kept for a client that lost its stream', () => {
  const retention = new StreamRetention({ total: 1 << 26, perOwner: 1 << 26 })
  const log = new EventLog('p1', { limits: { streamLogBytes: 1 << 20, streamLogEvents: 1000 }, retention }, 'me')
  void log.append([Buffer.from('"first"')])
  void log.append([Buffer.alloc(2 << 20, 0x61)]) // the response; there is no reader
  log.finish()
  expect(log.holds(0)).toBe(true)
})
