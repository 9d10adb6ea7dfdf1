import { describe, expect, it } from 'vitest'
import { connectScripted } from '../../../test/support/remote-upstream.ts'
import {
  callerOf,
  DISCOVERED,
  exchangeWith,
  failure,
  legacy,
  modern,
  notice,
  openStream,
  request,
  result,
  type Script,
  sendJson,
  tokenOf,
} from '../../../test/support/scripted-server.ts'
import type { RemoteServer } from '../../config/snapshot.ts'
import { decodeHeaderValue } from '../../protocol/param-headers.ts'
import { Json } from '../../wire/json/json.ts'
import type { RemoteOptions } from '../connect-remote.ts'

const META = 'io.modelcontextprotocol/'

const connect = async (script: Script, config: Partial<RemoteServer> = {}, options: Partial<RemoteOptions> = {}) => {
  const { server, upstream } = await connectScripted(modern(script), config, options)
  return { server, upstream, peer: await upstream.open(callerOf()) }
}

describe('a request to a modern server', () => {
  it('is sent with an id of the gateway, and headers from the body and the configuration', async () => {
    const { server, peer } = await connect(
      ({ body }, response) => sendJson(response, result(body.id, { resultType: 'complete', content: [] })),
      { headers: { 'X-Api-Key': 'k', 'Mcp-Method': 'spoofed' } },
    )
    expect(peer).toMatchObject({ revision: '2026-07-28', asks: false })
    const caller = callerOf({
      headers: new Map([
        ['mcp-param-region', 'eu'],
        ['traceparent', '00-1-2-01'],
      ]),
    })
    await exchangeWith(peer, 'tools/call', { params: { name: 'données' }, caller }).result()
    await exchangeWith(peer, 'tools/call', { params: { name: 'x' } }).result()
    const [first, second] = server.of('tools/call')
    expect(first?.headers).toMatchObject({
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': '=?base64?ZG9ubsOpZXM=?=',
      'mcp-param-region': 'eu',
      traceparent: '00-1-2-01',
      'x-api-key': 'k',
    })
    expect(first?.headers).not.toHaveProperty('mcp-session-id')
    expect(second?.body.id).toBe(Number(first?.body.id) + 1)
  })

  it('keeps every byte of the params and of the result that need not change', async () => {
    const envelope = `"_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{},"v":[1.0]}`
    const params = `{"name":"x","arguments":{"n":12345678901234567890,"x":1.0,"e":1e400},${envelope}}`
    const answer = '{"content":[],"structuredContent":{"n":12345678901234567890,"f":1.0},"unknown":{"é":"\\u00e9"}}'
    const { server, peer } = await connect(({ body }, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{"jsonrpc":"2.0","id":${body.id},"result":${answer}}`)
    })
    const call = exchangeWith(peer, 'tools/call', { params: Json.parse(Buffer.from(params)) })
    const final = await call.final()
    expect(final.kind === 'result' && final.result.toString()).toBe(answer)
    expect(server.of('tools/call')[0]?.text).toContain(params)
  })

  it('gets the envelope of a legacy caller', async () => {
    const { server, peer } = await connect(({ body }, response) => sendJson(response, result(body.id, {})))
    const caller = callerOf({
      revision: '2025-06-18',
      capabilities: Json.of({ elicitation: {}, tasks: {} }),
      logLevel: 'error',
    })
    await exchangeWith(peer, 'tools/list', { caller }).result()
    expect(server.of('tools/list')[0]?.body.params?._meta).toEqual({
      [`${META}protocolVersion`]: '2026-07-28',
      [`${META}clientCapabilities`]: { elicitation: {} },
      [`${META}logLevel`]: 'error',
    })
  })

  it('passes server/discover on', async () => {
    const { server, peer } = await connect(() => {})
    expect(await exchangeWith(peer, 'server/discover').result()).toEqual(DISCOVERED)
    expect(server.of('server/discover')).toHaveLength(2)
  })

  it('sends a notification and expects nothing', async () => {
    const { server, peer } = await connect((_, response) => void response.writeHead(400).end())
    const sent = exchangeWith(peer, 'notifications/acme', { kind: 'notification', params: { a: 1 } })
    const arrived = await server.arrived('notifications/acme')
    expect(arrived.body).toEqual({ jsonrpc: '2.0', method: 'notifications/acme', params: { a: 1 } })
    await exchangeWith(peer, 'server/discover').result()
    expect(sent.frames).toEqual([])
  })
})

describe('a streamed reply', () => {
  it('becomes notices in order and then the result', async () => {
    const { peer } = await connect(({ body }, response) => {
      const stream = openStream(response)
      stream.raw(': hello\n\nevent: ping\ndata: {}\n\ndata:\n\n')
      stream.event(notice('notifications/message', { level: 'info', data: 1 }))
      stream.event(notice('notifications/message', { level: 'info', data: 2 }), 'event: notification\n')
      stream.event(result(body.id, { content: [] }), 'event: response\n')
      stream.end()
    })
    const call = exchangeWith(peer, 'tools/call')
    await call.final()
    expect(
      call.frames.map(frame => (frame.kind === 'notice' ? frame.params.get('data')?.asNumber() : frame.kind)),
    ).toEqual([1, 2, 'result'])
  })

  it('gives every caller progress under its own token, whatever its type', async () => {
    const { server, peer } = await connect((arrived, response) => {
      const stream = openStream(response)
      stream.event(notice('notifications/progress', { progressToken: tokenOf(arrived), progress: 1, x: 1 }))
      stream.event(notice('notifications/progress', { progressToken: 'foreign', progress: 2 }))
      stream.event(result(arrived.body.id, {}))
      stream.end()
    })
    const tokens: (string | number)[] = ['same', 7, 'same']
    const calls = tokens.map(progressToken =>
      exchangeWith(peer, 'tools/call', { params: { _meta: { progressToken } } }),
    )
    await Promise.all(calls.map(call => call.final()))
    for (const [i, call] of calls.entries()) {
      const notices = call.frames.filter(frame => frame.kind === 'notice')
      expect(notices.map(frame => frame.params.toValue())).toEqual([{ progressToken: tokens[i], progress: 1, x: 1 }])
    }
    expect(new Set(server.of('tools/call').map(tokenOf)).size).toBe(3)
  })

  it('may hold arrays', async () => {
    const { peer } = await connect(({ body }, response) => {
      const stream = openStream(response)
      stream.event([notice('notifications/message', {}), result(body.id, { ok: true })])
      stream.end()
    })
    const call = exchangeWith(peer, 'tools/call')
    expect(await call.result()).toEqual({ ok: true })
    expect(call.frames.map(({ kind }) => kind)).toEqual(['notice', 'result'])
  })

  it('ends the call with the response, though the server keeps the stream open and goes on', async () => {
    const { server, peer } = await connect(({ body }, response) => {
      const stream = openStream(response)
      stream.event(result(body.id, { n: 1 }))
      stream.event(result(body.id, { n: 2 }))
      stream.event(notice('notifications/message', {}))
    })
    const call = exchangeWith(peer, 'tools/call')
    expect(await call.result()).toEqual({ n: 1 })
    server.become(({ body }, response) => sendJson(response, result(body.id, {})))
    await exchangeWith(peer, 'tools/call').result()
    expect(call.frames).toHaveLength(1)
  })

  it('is read no faster than the caller takes it', async () => {
    const total = 400
    let written = 0
    const { peer } = await connect(
      ({ body }, response) => {
        if (body.method !== 'tools/call') return // silent
        const stream = openStream(response)
        const data = 'x'.repeat(100_000)
        const write = () => {
          while (written < total) {
            written++
            if (!stream.event(notice('notifications/message', { data }))) return void response.once('drain', write)
          }
          stream.event(result(body.id, {}))
          stream.end()
        }
        write()
      },
      { timeoutMs: 700 },
    )
    let release: () => void = () => {}
    const gate = new Promise<void>(resolve => {
      release = resolve
    })
    const call = exchangeWith(peer, 'tools/call', { onFrame: frame => (frame.kind === 'notice' ? gate : undefined) })
    await call.notice('notifications/message')
    // Until a later request has timed out: a slow reader is not the server's fault.
    expect((await exchangeWith(peer, 'tools/list').failure()).data?.reason).toBe('upstream_timeout')
    expect(written).toBeLessThan(total)
    release()
    await call.result()
    expect(call.frames).toHaveLength(total + 1)
  })
})

describe('a misbehaving server', () => {
  const page = '<html><h1>Out of order</h1>\n<pre>secret stack trace</pre></html>'
  const cases: [string, Script, { message: RegExp; reason: string }][] = [
    [
      'garbage instead of JSON',
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":'),
      { message: /answered something that is not JSON \(application\/json\)/, reason: 'upstream_protocol' },
    ],
    [
      'a page',
      (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(page),
      { message: /not JSON \(text\/html\)/, reason: 'upstream_protocol' },
    ],
    [
      'an empty body',
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(),
      { message: /accepted tools\/call but sent no answer/, reason: 'upstream_protocol' },
    ],
    [
      'JSON that is no JSON-RPC',
      ({ body }, response) => sendJson(response, { id: body.id, result: {} }),
      { message: /answered no JSON-RPC: jsonrpc must be "2.0"/, reason: 'upstream_protocol' },
    ],
    [
      'the wrong id',
      (_, response) => sendJson(response, result(999, {})),
      { message: /answered without a response to tools\/call/, reason: 'upstream_protocol' },
    ],
    [
      'our id as a string',
      ({ body }, response) => sendJson(response, result(String(body.id), {})),
      { message: /answered without a response/, reason: 'upstream_protocol' },
    ],
    [
      'half an event',
      ({ body }, response) => {
        const stream = openStream(response)
        stream.raw(`data: ${JSON.stringify(result(body.id, {})).slice(0, 20)}`)
        stream.end()
      },
      { message: /ended its stream without a response to tools\/call/, reason: 'upstream_stream_lost' },
    ],
    [
      'an event that is complete but for its blank line',
      ({ body }, response) => {
        const stream = openStream(response)
        stream.raw(`data: ${JSON.stringify(result(body.id, {}))}\n`)
        stream.end()
      },
      { message: /ended its stream/, reason: 'upstream_stream_lost' },
    ],
    [
      'nothing but an empty event',
      (_, response) => {
        const stream = openStream(response)
        stream.raw('id: 1\ndata:\n\n')
        stream.end()
      },
      { message: /ended its stream/, reason: 'upstream_stream_lost' },
    ],
    [
      'garbage in an event',
      (_, response) => {
        const stream = openStream(response)
        stream.raw('data: {oops\n\n')
        stream.end()
      },
      { message: /answered without a response/, reason: 'upstream_protocol' },
    ],
    [
      'a connection closed in the middle of a stream',
      (_, response) => {
        const stream = openStream(response)
        stream.event(notice('notifications/message', {}))
        setTimeout(stream.cut, 20)
      },
      { message: /broke off its answer/, reason: 'upstream_stream_lost' },
    ],
    [
      'a connection closed before the answer',
      (_, response) => void response.destroy(),
      { message: /closed the connection before answering/, reason: 'upstream_stream_lost' },
    ],
    [
      '500 with a page',
      (_, response) => void response.writeHead(500, { 'content-type': 'text/html' }).end(page),
      { message: /answered HTTP 500: "Out of order"$/, reason: 'upstream_protocol' },
    ],
    [
      '500 with an error about nothing',
      (_, response) => sendJson(response, failure(null, -32000, 'Out of order\nsecret'), 500),
      { message: /answered HTTP 500: "Out of order"$/, reason: 'upstream_protocol' },
    ],
    [
      '503',
      (_, response) => void response.writeHead(503).end(page),
      { message: /not available \(HTTP 503: "Out of order"\)/, reason: 'upstream_unreachable' },
    ],
    [
      '404 with a page',
      (_, response) => void response.writeHead(404).end(page),
      { message: /HTTP 404: "Out of order" \(is the URL right\?\)/, reason: 'upstream_protocol' },
    ],
    [
      '401',
      (_, response) => sendJson(response, failure(1, -32001, 'Expired\nsecret'), 401),
      { message: /refused our credentials \(HTTP 401: "Expired"\)/, reason: 'upstream_auth' },
    ],
    [
      '403 that asks for credentials',
      (_, response) => void response.writeHead(403, { 'www-authenticate': 'Bearer' }).end(),
      { message: /refused our credentials \(HTTP 403\)/, reason: 'upstream_auth' },
    ],
    [
      '403 for another reason',
      (_, response) => void response.writeHead(403).end('Access is only allowed at localhost:8931\nsecret'),
      {
        message: /refused the request \(HTTP 403: "Access is only allowed at localhost:8931"\)/,
        reason: 'upstream_refused',
      },
    ],
    [
      '403 without a word',
      (_, response) => void response.writeHead(403).end(),
      { message: /refused the request \(HTTP 403\)/, reason: 'upstream_refused' },
    ],
    [
      '302',
      (_, response) => void response.writeHead(302, { location: '/login' }).end(),
      { message: /HTTP 302 to \/login/, reason: 'upstream_protocol' },
    ],
    ['413', (_, response) => void response.writeHead(413).end(), { message: /too large for it/, reason: 'too_large' }],
    ['silence', () => {}, { message: /was silent for 0.3 s after tools\/call/, reason: 'upstream_timeout' }],
    [
      'a stream of comments and nothing else',
      (_, response) => {
        const stream = openStream(response)
        const timer = setInterval(() => stream.raw(': still here\n\n'), 20)
        response.on('close', () => clearInterval(timer))
      },
      { message: /was silent for 0.3 s/, reason: 'upstream_timeout' },
    ],
    [
      'an answer that is too large',
      ({ body }, response) => sendJson(response, result(body.id, { x: 'x'.repeat(200_000) })),
      { message: /answered more than 100000 bytes/, reason: 'too_large' },
    ],
    [
      'an event that is too large',
      ({ body }, response) => {
        const stream = openStream(response)
        stream.event(result(body.id, { x: 'x'.repeat(200_000) }))
      },
      { message: /sent an event of more than 100000 bytes/, reason: 'too_large' },
    ],
  ]

  it.each(cases)('%s is one failure that names the server', async (_, script, expected) => {
    const { server, peer } = await connect(script, { timeoutMs: 300 }, { maxBytes: 100_000 })
    const call = exchangeWith(peer, 'tools/call', { params: { name: 'x' } })
    const error = await call.failure()
    expect(error.code).toBe(-32603)
    expect(error.message).toMatch(/^Server "far" /)
    expect(error.message).toMatch(expected.message)
    expect(error.data).toEqual({ reason: expected.reason, upstream: 'far' })
    expect(JSON.stringify(error)).not.toContain('secret')
    expect(call.finals()).toHaveLength(1)
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it.each([400, 404, 200, 422])('answers with its own error under %d', async status => {
    const { peer } = await connect(({ body }, response) =>
      sendJson(response, failure(body.id, -32602, 'Unknown tool', { name: 'x' }), status),
    )
    expect(await exchangeWith(peer, 'tools/call').failure()).toEqual({
      code: -32602,
      message: 'Unknown tool',
      data: { name: 'x' },
    })
  })

  it.each(['server-error', null])('fails this request with an error of id %s', async id => {
    const { peer } = await connect((_, response) => sendJson(response, failure(id, -32600, 'Not Acceptable'), 406))
    expect(await exchangeWith(peer, 'tools/call').failure()).toMatchObject({ code: -32600, message: 'Not Acceptable' })
  })

  it('fails this request with an error event', async () => {
    const { peer } = await connect((_, response) => {
      const stream = openStream(response)
      stream.event({ code: -32050, message: 'out of memory' }, 'event: error\n')
    })
    expect(await exchangeWith(peer, 'tools/call').failure()).toMatchObject({ code: -32050, message: 'out of memory' })
  })

  it('gets no answer to a request it must not make', async () => {
    const { server, peer } = await connect(({ body }, response) => {
      const stream = openStream(response)
      stream.event(request(5, 'elicitation/create'))
      stream.event(result(body.id, {}))
      stream.end()
    })
    const call = exchangeWith(peer, 'tools/call')
    await call.result()
    expect(call.frames).toHaveLength(1)
    expect(server.arrivals).toHaveLength(2)
  })

  it('takes JSON under a wrong type', async () => {
    const { peer } = await connect(({ body }, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).end(JSON.stringify(result(body.id, { ok: 1 })))
    })
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ ok: 1 })
  })

  it('loses its null cursor', async () => {
    const { peer } = await connect(({ body }, response) =>
      sendJson(response, result(body.id, { tools: [], nextCursor: null })),
    )
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ tools: [] })
    expect(await exchangeWith(peer, 'acme/do').result()).toEqual({ tools: [], nextCursor: null })
  })
})

describe('retrying', () => {
  it.each(['tools/list', 'resources/read', 'prompts/get', 'completion/complete'])(
    'repeats %s once when its stream is lost',
    async method => {
      const { server, peer } = await connect(({ body }, response) => {
        if (server.of(method).length === 1) response.destroy()
        else sendJson(response, result(body.id, { ok: true }))
      })
      expect(await exchangeWith(peer, method).result()).toEqual({ ok: true })
    },
  )

  it('retries once only', async () => {
    const { server, peer } = await connect((_, response) => void response.destroy())
    await exchangeWith(peer, 'tools/list').failure()
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('waits out a short Retry-After, once', async () => {
    const { server, peer } = await connect(({ body }, response) => {
      if (server.of('tools/call').length === 1) response.writeHead(429, { 'retry-after': '0.1' }).end()
      else sendJson(response, result(body.id, { ok: true }))
    })
    const began = Date.now()
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ ok: true })
    expect(Date.now() - began).toBeGreaterThanOrEqual(95)
  })

  it.each([
    ['30', 30_000],
    ['0', 0],
    [undefined, undefined],
  ])('passes Retry-After: %s on where waiting does not help', async (header, retryAfterMs) => {
    const { peer } = await connect(
      (_, response) => void response.writeHead(429, header ? { 'retry-after': header } : {}).end(),
    )
    const error = await exchangeWith(peer, 'tools/call').failure()
    expect(error).toMatchObject({ code: -32603, data: { reason: 'upstream_busy', upstream: 'far' } })
    expect(error.data?.retryAfterMs).toBe(retryAfterMs)
  })

  it('detects the era again when a modern server turns legacy', async () => {
    const { server, upstream, peer } = await connect(() => {})
    server.become(legacy(({ body }, response) => sendJson(response, failure(null, -32000, `no ${body.method}`), 400)))
    expect(await exchangeWith(peer, 'tools/call').failure()).toMatchObject({ message: 'no tools/call' })
    expect(await upstream.open(callerOf())).toMatchObject({ revision: '2025-11-25', asks: true })
  })

  it('explains a version that is no longer served', async () => {
    const { server, upstream, peer } = await connect(() => {})
    server.become(({ body }, response) =>
      sendJson(response, failure(body.id, -32022, 'no', { supported: ['2027-01-01'], requested: '2026-07-28' }), 400),
    )
    expect(await exchangeWith(peer, 'tools/call').failure()).toMatchObject({
      code: -32603,
      message: expect.stringContaining('no longer speaks 2026-07-28'),
    })
    await expect(upstream.open(callerOf())).rejects.toThrow('Server "far" speaks only 2027-01-01')
  })
})

describe('giving up', () => {
  it('closes the request when the caller cancels, and says nothing more', async () => {
    const { server, peer } = await connect((_, response) => void openStream(response))
    const call = exchangeWith(peer, 'tools/call')
    const arrived = await server.arrived('tools/call')
    call.abort.abort({ kind: 'cancelled', text: 'enough' })
    await server.until(() => arrived.isGone, 'the request to be closed')
    expect(call.frames).toEqual([])
    expect(server.arrivals).toHaveLength(2)
  })

  it('sends nothing for a caller that has cancelled already', async () => {
    const { server, peer } = await connect(() => {})
    const abort = { reason: { kind: 'gone' }, onAbort: () => () => {} } as const
    peer.dispatch({
      ...{ kind: 'request', method: 'tools/call', params: Json.empty, caller: callerOf(), signal: abort },
      sink: () => expect.unreachable(),
    })
    await exchangeWith(peer, 'server/discover').result()
    expect(server.of('tools/call')).toHaveLength(0)
  })

  it('does not time out while messages arrive', async () => {
    const { peer } = await connect(
      ({ body }, response) => {
        const stream = openStream(response)
        let left = 8
        const timer = setInterval(() => {
          if (left-- > 0) return void stream.event(notice('notifications/message', {}))
          clearInterval(timer)
          stream.event(result(body.id, { done: true }))
          stream.end()
        }, 80)
      },
      { timeoutMs: 500 },
    )
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ done: true })
  })

  it('does not time out while a large message arrives', async () => {
    const { peer } = await connect(
      ({ body }, response) => {
        const text = JSON.stringify(result(body.id, { text: 'x'.repeat(800) }))
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length })
        let at = 0
        const timer = setInterval(() => {
          response.write(text.slice(at, at + 100))
          at += 100
          if (at >= text.length) clearInterval(timer)
        }, 80)
      },
      { timeoutMs: 500 },
    )
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ text: 'x'.repeat(800) })
  })

  it('never times out on subscriptions/listen', async () => {
    const { server, peer } = await connect(
      ({ body }, response) => {
        if (body.method !== 'subscriptions/listen') return // silent
        openStream(response).event(notice('notifications/subscriptions/acknowledged', { notifications: {} }))
      },
      { timeoutMs: 100 },
    )
    const listen = exchangeWith(peer, 'subscriptions/listen')
    await listen.notice('notifications/subscriptions/acknowledged')
    expect((await exchangeWith(peer, 'tools/call').failure()).data?.reason).toBe('upstream_timeout')
    expect(listen.finals()).toEqual([])
    listen.abort.abort({ kind: 'gone' })
    await server.until(() => server.of('subscriptions/listen')[0]?.isGone === true, 'the stream to be closed')
  })
})

it.each(['données/日本', 'a\u0000b', 'constructor', '__proto__', ' x '])(
  'a method of an extension may be called %j, and costs the server no good name',
  async method => {
    const { peer, server } = await connect(({ body }, response) => sendJson(response, result(body.id, { ok: true })))
    expect(await exchangeWith(peer, method).result()).toMatchObject({ ok: true })
    const { headers, body } = server.arrivals.at(-1) as (typeof server.arrivals)[number]
    expect(body.method).toBe(method)
    expect(decodeHeaderValue(String(headers['mcp-method']))).toBe(method)
  },
)
