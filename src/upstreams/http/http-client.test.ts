import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type Script, scriptedServer } from '../../../test/support/scripted-server.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Deadlines } from '../deadlines.ts'
import type { FailureDetails } from '../failures.ts'
import { HttpClient, type HttpRequest } from './http-client.ts'
import { targetOf } from './redirect.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const serve = async (script: Script) => {
  const server = await scriptedServer(script)
  closing.push(() => server.close())
  return server
}

/** A server on another address of this machine, to stand for one that is far away. */
const serveOn = async (host: string, answer: RequestListener): Promise<string> => {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  closing.push(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  return `http://${host}:${(server.address() as AddressInfo).port}/mcp`
}

/** A server of bare sockets: `answer` gets what arrived, one request at a time. */
const serveRaw = async (answer: (socket: Socket, request: string) => void) => {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = createSocketServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', chunk => {
      requests.push(chunk.toString())
      answer(socket, chunk.toString())
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, sockets }
}

const responseOf = (body: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`

const responseTimeouts = { headersMs: 250, bodyMs: 250 }

const post = (http: HttpClient, url: string, more: Partial<HttpRequest> = {}) => {
  let settle: (end: { failure?: FailureDetails; status?: number; text?: string }) => void = () => {}
  const done = new Promise<{ failure?: FailureDetails; status?: number; text?: string }>(resolve => {
    settle = resolve
  })
  let status = 0
  const chunks: Buffer[] = []
  const sending = http.send(
    {
      method: 'POST',
      target: targetOf(url),
      headers: ['x', 'y'],
      body: Buffer.from('{"a":1}'),
      responseTimeouts,
      ...more,
    },
    {
      status: code => {
        status = code
      },
      bytes: chunk => void chunks.push(chunk),
      end: () => settle({ status, text: Buffer.concat(chunks).toString() }),
      failed: failure => settle({ failure }),
    },
  )
  return { done, sending }
}

describe.each([
  ['its own client', false],
  ['undici', true],
])('over %s', (_client, usesUndiciOnly) => {
  const connect = (secretHeaders: string[] = [], more: Partial<ConstructorParameters<typeof HttpClient>[0]> = {}) => {
    const times = { connectMs: 2000, deadlines: new Deadlines(10) }
    const http = new HttpClient({ secretHeaders, ...times, log: SILENT, usesUndiciOnly, ...more })
    closing.push(() => http.close())
    return http
  }

  it('sends the bytes of a text, one for each character', async () => {
    const server = await serve((_arrived, response) => response.end('{}'))
    const body = Buffer.from('{"text":"日本 é"}')
    const http = connect()
    for (const sent of [body, body.toString('latin1')])
      expect(await post(http, server.url, { body: sent }).done).toMatchObject({ status: 200 })
    expect(server.arrivals.map(({ text }) => text)).toEqual([body.toString(), body.toString()])
  })

  describe('phases', () => {
    it('names a refused connection', async () => {
      const server = await scriptedServer(() => {})
      await server.close()
      const { failure } = await post(connect(), server.url).done
      expect(failure?.reason).toBe('upstream_unreachable')
      expect(failure?.text).toMatch(/^did not answer: connect ECONNREFUSED 127\.0\.0\.1:\d+ \(is it running\?\)$/)
    })

    it('names a host that does not exist', async () => {
      const { failure } = await post(connect(), 'http://nowhere.invalid/mcp').done
      expect(failure).toMatchObject({
        reason: 'upstream_unreachable',
        text: expect.stringContaining('nowhere.invalid'),
      })
    })

    it('times out on a server that never answers', async () => {
      const server = await serve(() => {})
      expect((await post(connect(), server.url).done).failure).toEqual({
        reason: 'upstream_timeout',
        text: 'did not answer in time',
      })
      await server.until(() => server.sockets.size === 0, 'the socket to close')
    })

    it('times out on a body that stops, and not on one that goes on', async () => {
      const server = await serve((arrived, response) => {
        response.write('a')
        if (arrived.url === '/stops') return
        let left = 6
        const timer = setInterval(() => {
          response.write('b')
          if (--left > 0) return
          clearInterval(timer)
          response.end()
        }, 60)
      })
      const http = connect()
      expect((await post(http, `${server.origin}/goes-on`).done).text).toBe('abbbbbb')
      expect((await post(http, `${server.origin}/stops`).done).failure?.text).toBe(
        'fell silent in the middle of its answer',
      )
    })

    it('tells a connection closed before the answer from one closed within it', async () => {
      const server = await serve((arrived, response) => {
        if (arrived.url === '/before') return void response.destroy()
        response.writeHead(200, { 'content-length': '10' })
        response.write('half', () => response.destroy())
      })
      const http = connect()
      expect((await post(http, `${server.origin}/before`).done).failure).toMatchObject({
        reason: 'upstream_stream_lost',
        text: expect.stringMatching(/^closed the connection before answering/),
      })
      expect((await post(http, `${server.origin}/within`).done).failure).toMatchObject({
        reason: 'upstream_stream_lost',
        text: expect.stringMatching(/^broke off its answer/),
      })
    })

    it('says so when the other side speaks no HTTP', async () => {
      const server = await serve((_, response) => {
        response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n')
      })
      expect((await post(connect(), server.url).done).failure?.reason).toBe('upstream_protocol')
    })

    it('fails with an invalid header instead of throwing', async () => {
      const server = await serve(() => {})
      const { failure } = await post(connect(), server.url, { headers: ['x', 'a\nb'] }).done
      expect(failure).toMatchObject({ reason: 'upstream_protocol', text: expect.stringContaining('invalid x header') })
    })
  })

  describe('redirects', () => {
    it.each([307, 308])('follows %d with the same method, body and headers', async status => {
      const server = await serve((arrived, response) => {
        if (arrived.url === '/mcp') response.writeHead(status, { location: '/mcp/' }).end('moved')
        else response.end(`${arrived.method} ${arrived.text}`)
      })
      expect((await post(connect(), server.url).done).text).toBe('POST {"a":1}')
      expect(server.arrivals.map(({ url, headers }) => [url, headers.x])).toEqual([
        ['/mcp', 'y'],
        ['/mcp/', 'y'],
      ])
    })

    it('remembers 308 and not 307', async () => {
      const server = await serve((arrived, response) => {
        if (arrived.url.startsWith('/moved'))
          response.writeHead(Number(arrived.url.slice(6)), { location: '/new' }).end()
        else response.end('ok')
      })
      const http = connect()
      for (const path of ['/moved308', '/moved308', '/moved307', '/moved307'])
        await post(http, server.origin + path).done
      expect(server.arrivals.map(({ url }) => url)).toEqual([
        ...['/moved308', '/new', '/new'],
        ...['/moved307', '/new', '/moved307', '/new'],
      ])
    })

    it('sends no credentials to another origin, also when it remembers the redirect', async () => {
      const other = await serve((_, response) => void response.end('ok'))
      const server = await serve((_, response) => void response.writeHead(308, { location: other.url }).end())
      const http = connect(['X-Api-Key'], { allowsCrossOrigin: true })
      const headers = ['authorization', 'Bearer s', 'X-Api-Key', 's', 'mcp-method', 'ping']
      await post(http, server.url, { headers }).done
      await post(http, server.url, { headers }).done
      expect(server.arrivals).toHaveLength(1)
      expect(other.arrivals).toHaveLength(2)
      for (const { headers } of other.arrivals) {
        expect(headers).toMatchObject({ 'mcp-method': 'ping' })
        expect(headers).not.toHaveProperty('authorization')
        expect(headers).not.toHaveProperty('x-api-key')
      }
    })

    it('uses the configured URL again when the remembered one is gone', async () => {
      const other = await scriptedServer((_, response) => void response.end('other'))
      let isMoved = true
      const server = await serve((_, response) => {
        if (isMoved) response.writeHead(308, { location: other.url }).end()
        else response.end('home')
      })
      const http = connect([], { allowsCrossOrigin: true })
      expect((await post(http, server.url).done).text).toBe('other')
      await other.close()
      isMoved = false
      expect((await post(http, server.url).done).failure?.reason).toMatch(/unreachable|stream_lost/)
      await expect.poll(async () => (await post(http, server.url).done).text).toBe('home')
    })

    it.each([307, 308])('refuses %d to another origin, says what to set, and sends nothing there', async status => {
      const other = await serve((_, response) => void response.end('ok'))
      const server = await serve((_, response) => void response.writeHead(status, { location: other.url }).end())
      const http = connect()
      const { failure } = await post(http, server.url).done
      expect(failure?.reason).toBe('upstream_redirect')
      expect(failure?.text).toContain(`another origin (${other.origin})`)
      expect(failure?.text).toContain('"allowCrossOriginRedirect": true')
      await post(http, server.url).done
      expect(server.arrivals).toHaveLength(2) // it was not remembered
      expect(other.sockets.size).toBe(0)
    })

    it.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '0.0.0.0'])(
      'never leads to our own port by %s, not even where redirects are allowed',
      async host => {
        const own = await serve((_, response) => void response.end('wiped'))
        const port = Number(new URL(own.origin).port)
        const location = `http://${host}:${port}/mcp`
        const server = await serve((_, response) => void response.writeHead(308, { location }).end())
        const http = connect([], { allowsCrossOrigin: true, ownPort: () => port })
        expect((await post(http, server.url).done).failure).toEqual({
          reason: 'upstream_redirect',
          text: 'pointed to the address of this gateway itself',
        })
        expect(own.arrivals).toHaveLength(0)
        const direct = await post(http, own.url).done // what is configured may be anything
        expect(direct.text).toBe('wiped')
      },
    )

    it.runIf(process.platform === 'linux').each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]'])(
      'never leads from a public server to the private %s, not even where redirects are allowed',
      async host => {
        const inside = await serve((_, response) => void response.end('metadata'))
        const { port } = new URL(inside.origin)
        const outside = await serveOn('127.0.0.2', (_, response) => {
          response.writeHead(308, { location: `http://${host}:${port}/latest` }).end()
        })
        const http = connect([], { allowsCrossOrigin: true, isPrivate: address => address !== '127.0.0.2' })
        for (let i = 0; i < 2; i++) {
          const { failure } = await post(http, outside).done
          expect(failure).toMatchObject({
            reason: 'upstream_redirect',
            text: expect.stringContaining('from a public server to the private address'),
          })
        }
        expect(inside.sockets.size).toBe(0)
        expect(inside.arrivals).toHaveLength(0)
      },
    )

    it.runIf(process.platform === 'linux')(
      'leads a private server to another private address where allowed',
      async () => {
        const inside = await serve((_, response) => void response.end('ok'))
        const outside = await serveOn('127.0.0.2', (_, response) => {
          response.writeHead(307, { location: inside.url }).end()
        })
        expect((await post(connect([], { allowsCrossOrigin: true }), outside).done).text).toBe('ok')
      },
    )

    it('stops after five', async () => {
      const server = await serve((_, response) => void response.writeHead(307, { location: '/again' }).end())
      expect((await post(connect(), server.url).done).failure).toEqual({
        reason: 'upstream_protocol',
        text: 'redirected more than 5 times',
      })
      expect(server.arrivals).toHaveLength(6)
    })

    it('refuses a location that is no URL', async () => {
      const server = await serve((_, response) => void response.writeHead(308, { location: 'mailto:x' }).end())
      expect((await post(connect(), server.url).done).failure?.text).toContain('mailto:x')
    })

    it('delivers other redirects as responses', async () => {
      const server = await serve((_, response) => void response.writeHead(302, { location: '/login' }).end())
      expect((await post(connect(), server.url).done).status).toBe(302)
    })
  })

  describe('abort', () => {
    it('closes the request and says nothing more', async () => {
      const server = await serve((_, response) => void response.write('begun'))
      const heard: string[] = []
      const sending = connect().send(
        { method: 'POST', target: targetOf(server.url), headers: [], body: null },
        {
          status: () => sending.abort(),
          bytes: () => void heard.push('bytes'),
          end: () => heard.push('end'),
          failed: () => heard.push('failed'),
        },
      )
      await server.until(() => server.arrivals[0]?.isGone === true, 'the request to be closed')
      sending.abort()
      expect(heard).toEqual([])
    })

    it('works before the connection is there', async () => {
      const server = await serve((_, response) => void response.end())
      const http = connect()
      const heard: string[] = []
      const receiver = {
        status: () => {},
        bytes: () => {},
        end: () => heard.push('end'),
        failed: () => heard.push('failed'),
      }
      http.send({ method: 'POST', target: targetOf(server.url), headers: [], body: null }, receiver).abort()
      await post(http, server.url).done
      expect(heard).toEqual([])
      expect(server.arrivals).toHaveLength(1)
    })
  })

  it('pauses reading while the receiver is busy', async () => {
    const size = 32 * 1024 * 1024
    let written = 0
    const server = await serve((_, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      const write = () => {
        while (written < size) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', write)
        }
        response.end()
      }
      write()
    })
    let release: () => void = () => {}
    const behind = new Promise<void>(resolve => {
      release = resolve
    })
    let read = 0
    const done = new Promise<void>(resolve => {
      connect().send(
        { method: 'GET', target: targetOf(server.url), headers: [], body: null },
        {
          status: () => {},
          bytes: chunk => {
            read += chunk.length
            return read === chunk.length ? behind : undefined
          },
          end: resolve,
          failed: failure => expect.unreachable(failure.text),
        },
      )
    })
    let before = -1
    while (before !== written || written === 0) {
      before = written
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    expect(written).toBeLessThan(size)
    release()
    await done
    expect(read).toBe(size)
  })

  it('keeps connections and leaves none behind', async () => {
    const server = await serve((_, response) => void response.end('ok'))
    const http = connect()
    for (let i = 0; i < 20; i++) await post(http, server.url).done
    // A connection is free again one turn after its reply has ended, so one call after the other takes turns on two.
    expect(server.sockets.size).toBeLessThanOrEqual(2)
    await http.close()
    await http.close()
    await server.until(() => server.sockets.size === 0, 'sockets to close')
    expect((await post(http, server.url).done).failure?.text).toBe('is being disconnected')
  })

  describe('connections', () => {
    it('never give a request the response to another', async () => {
      const server = await serveRaw((socket, request) => {
        if (request.includes('/first')) socket.write(responseOf('first') + responseOf('smuggled'))
        else socket.write(responseOf('second'))
      })
      const http = connect()
      expect((await post(http, `${server.origin}/first`).done).text).toBe('first')
      expect((await post(http, `${server.origin}/second`).done).text).toBe('second')
      expect(server.requests).toHaveLength(2)
    })

    it('are closed when they bring a response unasked', async () => {
      const server = await serveRaw(socket => {
        socket.write(responseOf('asked'))
        setTimeout(() => socket.write(responseOf('unasked')), 20)
      })
      const http = connect()
      expect((await post(http, server.origin).done).text).toBe('asked')
      await expect.poll(() => server.sockets.size).toBe(0)
    })

    it('carry a POST once, even where the server closes a connection instead of answering', async () => {
      const server = await serveRaw((socket, request) => {
        if (request.includes('/first')) socket.write(responseOf('ok'))
        else socket.destroy()
      })
      const http = connect()
      await post(http, `${server.origin}/first`).done
      const { failure } = await post(http, `${server.origin}/second`).done
      expect(failure?.reason).toBe('upstream_stream_lost')
      expect(failure?.text).toMatch(/^closed the connection before answering/)
      expect(server.requests.filter(text => text.includes('/second'))).toHaveLength(1)
    })

    it('are not used again after a response that was not taken to its end', async () => {
      const server = await serve((arrived, response) => {
        if (arrived.url === '/endless') response.write('begun')
        else response.end('ok')
      })
      const http = connect()
      const { sending } = post(http, `${server.origin}/endless`)
      await server.until(() => server.arrivals.length === 1, 'the request')
      sending.abort()
      expect((await post(http, server.url).done).text).toBe('ok')
      await server.until(() => server.arrivals[0]?.isGone === true, 'the first connection to close')
    })

    it('end a body that has no other end', async () => {
      const server = await serveRaw(socket => socket.end('HTTP/1.0 200 OK\r\n\r\nall of it'))
      expect((await post(connect(), server.origin).done).text).toBe('all of it')
    })

    it.each([
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx : y\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    ])('are closed after %j', async text => {
      const server = await serveRaw(socket => socket.write(text))
      const { failure } = await post(connect(), server.origin).done
      expect(failure?.reason).toMatch(usesUndiciOnly ? /^upstream_(protocol|stream_lost)$/ : /^upstream_protocol$/)
      await expect.poll(() => server.sockets.size).toBe(0)
    })
  })

  it.each<[string, Partial<HttpRequest>]>([
    ['a value', { headers: ['x', 'a\r\nx-injected: 1'] }],
    ['a name', { headers: ['x: 1\r\nx-injected', '1'] }],
    ['a path', { target: { origin: 'set below', path: '/ HTTP/1.1\r\nx-injected: 1\r\n' } }],
    ['a second length', { headers: ['content-length', '1'] }],
    ['a second framing', { headers: ['Transfer-Encoding', 'chunked'] }],
  ])('sends no header that is injected by %s', async (_name, request) => {
    const server = await serve((_, response) => void response.end('ok'))
    const target = request.target && { ...request.target, origin: server.origin }
    const { failure } = await post(connect(), server.url, { ...request, ...(target && { target }) }).done
    expect(failure).toBeDefined()
    expect(server.arrivals).toHaveLength(0)
  })

  it('survives a receiver that throws', async () => {
    const server = await serve((_, response) => void response.end('ok'))
    const http = connect()
    const failure = await new Promise<FailureDetails>(resolve => {
      const fail = () => {
        throw new Error('a defect')
      }
      http.send(
        { method: 'POST', target: targetOf(server.url), headers: [], body: null },
        { status: fail, bytes: () => {}, end: () => {}, failed: resolve },
      )
    })
    expect(failure.text).toContain('a defect')
    expect((await post(http, server.url).done).text).toBe('ok')
  })
})
