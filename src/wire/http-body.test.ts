import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import { BodyAborted, BodyTooLarge, readBody } from './http-body.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** A request over a real socket: what the client writes is up to the caller. */
const request = async (head: string): Promise<{ socket: Socket; incoming: IncomingMessage }> => {
  const server = createServer()
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n`)
  const [incoming] = (await once(server, 'request')) as [IncomingMessage]
  return { socket, incoming }
}

const listeners = (stream: Readable) => ['data', 'end', 'error', 'close'].map(event => stream.listenerCount(event))

const stream = (length: string, ...chunks: string[]) =>
  Object.assign(Readable.from(chunks.map(chunk => Buffer.from(chunk))), { headers: { 'content-length': length } })

describe('readBody', () => {
  it('reads a body with a length', async () => {
    const { socket, incoming } = await request('Content-Length: 11')
    const body = readBody(incoming, 100)
    socket.write('hello ')
    await once(incoming, 'data')
    socket.write('world')
    expect((await body).toString()).toBe('hello world')
  })

  it('reads a chunked body and an empty one', async () => {
    const chunked = await request('Transfer-Encoding: chunked')
    chunked.socket.write('3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n')
    expect((await readBody(chunked.incoming, 5)).toString()).toBe('abcde')
    const empty = await request('Content-Length: 0')
    expect((await readBody(empty.incoming, 5)).length).toBe(0)
  })

  it('reads a large body into one buffer of its size', async () => {
    const size = 5_000_000
    const { socket, incoming } = await request(`Content-Length: ${size}`)
    const sent = Buffer.alloc(size, 'some text ')
    socket.write(sent)
    const body = await readBody(incoming, size)
    expect(body.equals(sent)).toBe(true)
    expect(body.buffer.byteLength).toBe(size)
  })

  it('refuses by the announced length, before any of it is read', async () => {
    const { incoming } = await request('Content-Length: 101')
    const before = listeners(incoming)
    await expect(readBody(incoming, 100)).rejects.toThrow(BodyTooLarge)
    expect(incoming.readableFlowing).toBeNull()
    expect(listeners(incoming)).toEqual(before)
  })

  it('refuses a body that turns out too large, and stops reading', async () => {
    const { socket, incoming } = await request('Transfer-Encoding: chunked')
    const body = readBody(incoming, 100)
    socket.write(`65\r\n${'x'.repeat(101)}\r\n`)
    await expect(body).rejects.toMatchObject({ name: 'BodyTooLarge', limit: 100 })
    expect(incoming.isPaused()).toBe(true)
  })

  it('takes a body of exactly the limit', async () => {
    const { socket, incoming } = await request('Transfer-Encoding: chunked')
    socket.write(`64\r\n${'x'.repeat(100)}\r\n0\r\n\r\n`)
    expect((await readBody(incoming, 100)).length).toBe(100)
  })

  it('rejects when the client leaves in the middle', async () => {
    const { socket, incoming } = await request('Content-Length: 100')
    const body = readBody(incoming, 100)
    socket.write('half')
    await once(incoming, 'data')
    socket.destroy()
    await expect(body).rejects.toThrow()
  })

  it('rejects when the stream is closed or over already', async () => {
    const closed = new PassThrough()
    const body = readBody(closed, 10)
    closed.destroy()
    await expect(body).rejects.toThrow(BodyAborted)
    await expect(readBody(closed, 10)).rejects.toThrow(BodyAborted)
  })

  it('rejects with the error of the stream', async () => {
    const failing = new PassThrough()
    const body = readBody(failing, 10)
    failing.destroy(new Error('broken pipe'))
    await expect(body).rejects.toThrow('broken pipe')
  })

  it('believes the bytes where the announced length is wrong', async () => {
    expect((await readBody(stream('5', 'abc', 'def', 'ghi'), 100)).toString()).toBe('abcdefghi')
    expect((await readBody(stream('6', 'abc', 'def', 'ghi', 'j'), 100)).toString()).toBe('abcdefghij')
    expect((await readBody(stream('50', 'abc', 'def'), 100)).toString()).toBe('abcdef')
    expect((await readBody(stream('x', 'abc', 'def'), 100)).toString()).toBe('abcdef')
    await expect(readBody(stream('5', 'abc', 'def'), 5)).rejects.toThrow(BodyTooLarge)
  })

  it('keeps nothing of a body that was read, while its stream lives', async () => {
    const size = 1 << 20
    const read = stream(String(size), 'x', 'x'.repeat(size - 1))
    const memory = await readBody(read, size).then(({ buffer }) => new WeakRef(buffer))
    await new Promise(setImmediate) // a WeakRef is kept for the turn it was made in
    collectGarbage()
    expect(memory.deref()).toBeUndefined()
    expect(read.listenerCount('data')).toBe(1)
  })

  it('does not set aside memory for what was only announced', async () => {
    const size = 64 << 20
    const { socket, incoming } = await request(`Content-Length: ${size}`)
    const before = process.memoryUsage().arrayBuffers
    const body = readBody(incoming, size)
    socket.write('a')
    await once(incoming, 'data')
    socket.write('b')
    await once(incoming, 'data')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(size / 2)
    socket.destroy()
    await expect(body).rejects.toThrow()
  })
})
