import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { buildGuardedSocketConnector } from '../../std/guarded-connector.ts'
import type { DispatchController, DispatchedRequest } from './dispatch.ts'
import { PlainPool } from './plain-pool.ts'
import { PlainRequest, RequestHeads } from './plain-request.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const serve = async (answer: RequestListener) => {
  const sockets: Socket[] = []
  const server = createServer({ keepAliveTimeout: 60_000 }, answer)
  server.on('connection', socket => sockets.push(socket))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  const open = (): number => sockets.filter(({ destroyed }) => !destroyed).length
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets, open }
}

const poolFor = (origin: string, onEmpty = () => {}): PlainPool => {
  const connect = buildGuardedSocketConnector({ connectMs: 2000, refusalOf: () => undefined })
  const pool = new PlainPool(origin, connect, onEmpty)
  closing.push(() => pool.destroy())
  return pool
}

/** Sends a POST; resolves with the body, or rejects with the error of the pool. */
const post = (pool: PlainPool, path: string, { body = '{}', onStart = (_: DispatchController) => {} } = {}) =>
  new Promise<string>((resolve, reject) => {
    const chunks: Buffer[] = []
    const request: DispatchedRequest = { origin: '', path, method: 'POST', headers: [], body: Buffer.from(body) }
    const plain = PlainRequest.of(request, pool.heads, {
      onRequestStart: onStart,
      onResponseStart: () => {},
      onResponseData: (_, chunk) => void chunks.push(chunk),
      onResponseEnd: () => resolve(Buffer.concat(chunks).toString()),
      onResponseError: (_, error) => reject(error),
    })
    if (plain) pool.send(plain)
    else reject(new Error('not plain'))
  })

describe('a pool', () => {
  test('uses one connection for requests one after the other, and as many as there are at once', async () => {
    const server = await serve((_, response) => void response.end('ok'))
    const pool = poolFor(server.origin)
    for (let i = 0; i < 20; i++) expect(await post(pool, '/')).toBe('ok')
    expect(server.sockets.length).toBeLessThanOrEqual(2) // free one turn after its response
    await Promise.all(Array.from({ length: 10 }, () => post(pool, '/')))
    expect(server.open()).toBeLessThanOrEqual(11)
  })

  test('uses the connection first that was used last', async () => {
    const held: (() => void)[] = []
    const ports: (number | undefined)[] = []
    const server = await serve((request, response) => {
      ports.push(request.socket.remotePort)
      if (request.url === '/held') held.push(() => response.end('ok'))
      else response.end('ok')
    })
    const pool = poolFor(server.origin)
    const both = [post(pool, '/held'), post(pool, '/held')]
    await expect.poll(() => held.length).toBe(2)
    held[0]?.()
    await Promise.race(both)
    held[1]?.()
    await Promise.all(both)
    await new Promise(setImmediate)
    await post(pool, '/')
    expect(ports[2]).toBe(ports[1])
  })

  test('closes a connection before the server does, by its Keep-Alive header', async () => {
    const server = await serve((_, response) => void response.writeHead(200, { 'keep-alive': 'timeout=3' }).end('ok'))
    let isEmpty = false
    const pool = poolFor(server.origin, () => {
      isEmpty = true
    })
    await post(pool, '/')
    expect(server.open()).toBe(1)
    await expect.poll(() => server.open(), { timeout: 2900 }).toBe(0)
    expect(isEmpty).toBe(true)
  })

  test('does not keep a connection that the server keeps for two seconds only', async () => {
    const server = await serve((_, response) => void response.writeHead(200, { 'keep-alive': 'timeout=2' }).end('ok'))
    await post(poolFor(server.origin), '/')
    await expect.poll(() => server.open()).toBe(0)
  })

  test('does not use a connection that the server has ended', async () => {
    const server = await serve((_, response) => void response.end('ok'))
    const pool = poolFor(server.origin)
    await post(pool, '/')
    server.sockets[0]?.end()
    await expect.poll(() => server.open()).toBe(0)
    expect(await post(pool, '/')).toBe('ok')
  })

  test('closes a connection whose response came before the end of its request', async () => {
    const server = await serve((request, response) => {
      response.end('early')
      request.pause()
    })
    const pool = poolFor(server.origin)
    expect(await post(pool, '/', { body: 'x'.repeat(16 * 1024 * 1024) })).toBe('early')
    await expect.poll(() => server.open()).toBe(0)
  })

  test('sends a large body whole', async () => {
    const server = await serve((request, response) => {
      let size = 0
      request.on('data', (chunk: Buffer) => {
        size += chunk.length
      })
      request.on('end', () => response.end(String(size)))
    })
    const pool = poolFor(server.origin)
    expect(await post(pool, '/', { body: 'x'.repeat(3_000_000) })).toBe('3000000')
  })

  test('fails what it carries, and what waits, when it is closed', async () => {
    const server = await serve(() => {})
    const pool = poolFor(server.origin)
    let start = (): void => {}
    const started = new Promise<void>(resolve => {
      start = resolve
    })
    const carried = post(pool, '/', { onStart: () => start() })
    await started
    const waiting = post(pool, '/')
    const outcomes = Promise.allSettled([carried, waiting])
    await pool.destroy()
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'UND_ERR_DESTROYED' } })
    await expect.poll(() => server.open()).toBe(0)
    await expect(post(pool, '/')).rejects.toMatchObject({ code: 'UND_ERR_DESTROYED' })
  })
})

describe('a request', () => {
  const heads = new RequestHeads('host')
  const plain = (more: Partial<DispatchedRequest>) => {
    const handler = {
      ...{ onRequestStart: () => {}, onResponseStart: () => {}, onResponseData: () => {} },
      ...{ onResponseEnd: () => {}, onResponseError: () => {} },
    }
    return PlainRequest.of({ origin: '', path: '/', method: 'POST', headers: [], body: null, ...more }, heads, handler)
  }

  test.each<[string, Partial<DispatchedRequest>]>([
    ...['host', 'Content-Length', 'transfer-encoding', 'connection', 'keep-alive', 'Upgrade', 'expect', 'TE'].map(
      (name): [string, Partial<DispatchedRequest>] => [name, { headers: [name, '1'] }],
    ),
    ['a name that is none', { headers: ['a b', '1'] }],
    ['a name with a colon', { headers: ['a:b', '1'] }],
    ['an empty name', { headers: ['', '1'] }],
    ['a line end in a value', { headers: ['a', 'b\nc'] }],
    ['a line end in a value after a valid one', { headers: ['a', 'b', 'a', 'b\r\nc: d'] }],
    ['a character beyond bytes', { headers: ['a', 'ŀ'] }],
    ['a space in the path', { path: '/a b' }],
    ['a line end in the path', { path: '/a\r\nb: c' }],
    ['a character beyond ASCII in the path', { path: '/ä' }],
    ['a path that is a URL', { path: 'http://a/' }],
    ['a method with a meaning of its own', { method: 'CONNECT' }],
    ['a body that is not expected', { method: 'DELETE', body: Buffer.from('x') }],
  ])('is not for this client with %s', (_name, more) => {
    expect(plain(more)).toBeUndefined()
    expect(plain(more)).toBeUndefined() // names are cached
  })

  test('is plain otherwise', () => {
    expect(plain({ headers: ['A-b', 'c\td\xff'], body: Buffer.from('x') })).toBeDefined()
    expect(plain({ method: 'GET' })).toBeDefined()
  })
})
