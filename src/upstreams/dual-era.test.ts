import { describe, expect, it } from 'vitest'
import { answerWith, connectScripted } from '../../test/support/remote-upstream.ts'
import {
  type Arrived,
  callerOf,
  exchangeWith,
  failure,
  legacy,
  modern,
  openStream,
  result,
  type Script,
  sendJson,
} from '../../test/support/scripted-server.ts'

const answerOk = answerWith({ ok: true })

const listen: Script = (_, response) => void openStream(response)
const SUPPORTED = { supported: ['2026-07-28'], requested: '2025-11-25' }

// As FastMCP 4.1 and Python mcp 2.3 do: `server/discover` lists 2026-07-28 alone, and `initialize` opens a session.
const bothEras = () => modern(legacy(answerOk, { listen, sessions: ['s1', 's2', 's3', 's4'] }))
// As TypeScript SDK v2 does with its stateless handler: no session id, and no GET stream.
const statelessLegacy = modern(legacy(answerOk, { sessions: [] }))
const refusing = (getStatus: number, status: number, code: number, data?: object): Script =>
  modern((arrived, response) => {
    const { id, method } = arrived.body
    if (arrived.method === 'GET') response.writeHead(getStatus).end()
    else if (method === 'initialize') sendJson(response, failure(id, code, 'No', data), status)
    else answerOk(arrived, response)
  })
const modernOnly = refusing(405, 400, -32022, SUPPORTED)

const modernCaller = callerOf()
const legacyCaller = (session = 'client-1') => callerOf({ revision: '2025-06-18', session })

describe('a server that speaks both eras', () => {
  it('serves each caller in the era of the caller', async () => {
    const { server, upstream } = await connectScripted(bothEras())
    expect((await upstream.open(legacyCaller())).revision).toBe('2025-11-25')
    expect((await upstream.open(modernCaller)).revision).toBe('2026-07-28')
    expect((await upstream.open(legacyCaller('client-2'))).revision).toBe('2025-11-25')
    expect((await upstream.open(legacyCaller())).revision).toBe('2025-11-25')
    expect(server.of('server/discover')).toHaveLength(1)
    expect(server.of('initialize')).toHaveLength(2)
  })

  it('asks a legacy caller on the stream of its call', async () => {
    const script: Script = (arrived, response) => {
      const { id, method } = arrived.body
      if (method !== 'tools/call') return answerOk(arrived, response)
      const stream = openStream(response)
      stream.event({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'Who?' } })
      void server.until(() => server.arrivals.some(answersQ)).then(() => stream.event(result(id, { content: [] })))
    }
    const answersQ = ({ body }: Arrived) => body.id === 'q' && body.result !== undefined
    const { server, upstream } = await connectScripted(modern(legacy(script, { listen })))
    const peer = await upstream.open(legacyCaller())
    const call = exchangeWith(peer, 'tools/call', { params: { name: 'greet' }, caller: legacyCaller() })
    const question = await call.question()
    expect(question.method).toBe('elicitation/create')
    question.answer({ kind: 'result', result: question.params.with('action', 'accept') })
    expect(await call.result()).toEqual({ content: [] })
  })

  it('is tried once with initialize for all legacy callers that come at the same time', async () => {
    const { server, upstream } = await connectScripted(modernOnly)
    await upstream.open(modernCaller)
    const peers = await Promise.all(['a', 'b', 'c'].map(session => upstream.open(legacyCaller(session))))
    expect(peers.map(({ revision }) => revision)).toEqual(['2026-07-28', '2026-07-28', '2026-07-28'])
    expect(server.of('GET')).toHaveLength(1)
  })

  it('without a GET endpoint is never sent initialize', async () => {
    const { server, upstream } = await connectScripted(modernOnly)
    for (const session of ['a', 'b']) expect((await upstream.open(legacyCaller(session))).revision).toBe('2026-07-28')
    expect(server.of('initialize')).toEqual([])
  })

  it('is sent initialize with the header that modern servers want on every POST', async () => {
    const { server, upstream } = await connectScripted(bothEras())
    await upstream.open(legacyCaller())
    expect(server.of('initialize')[0]?.headers['mcp-method']).toBe('initialize')
  })

  const refuseGetLater = (): Script => {
    let gets = 0
    return (_, response) => void response.writeHead(gets++ === 0 ? 400 : 405).end()
  }
  it.each([
    ['without a session id', modern(legacy(answerOk, { listen, sessions: [] })), 1, 0],
    ['without a GET stream', statelessLegacy, 0, 0],
    ['without a GET stream for sessions', modern(legacy(answerOk, { listen: refuseGetLater() })), 1, 1],
  ])(
    'serves all callers by its modern leg if the legacy leg has no back-channel: %s',
    async (_, script, sent, ended) => {
      const { server, upstream } = await connectScripted(script)
      for (const session of ['a', 'b']) expect((await upstream.open(legacyCaller(session))).revision).toBe('2026-07-28')
      expect(server.of('initialize')).toHaveLength(sent)
      await server.until(() => server.of('DELETE').length === ended, 'the end of the session that is not used')
    },
  )

  it.each([
    ['-32022', refusing(400, 400, -32022, SUPPORTED)],
    ['404 and -32601, as the specification asks', refusing(400, 404, -32601)],
    [
      'a server error',
      modern((arrived, response) => {
        if (arrived.body.method === 'initialize') response.writeHead(500).end()
        else answerOk(arrived, response)
      }),
    ],
  ])('is served by its modern leg if it answers initialize with %s', async (_, script) => {
    const { server, upstream } = await connectScripted(script)
    const peer = await upstream.open(legacyCaller())
    expect(peer.revision).toBe('2026-07-28')
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
    await upstream.open(legacyCaller('client-2'))
    expect(server.of('initialize')).toHaveLength(1)
    expect(server.of('tools/list')).toHaveLength(1) // no request but initialize is sent in the legacy way
  })

  it('does not send initialize for a modern caller', async () => {
    const { server, upstream } = await connectScripted(bothEras())
    await upstream.open(modernCaller)
    expect(server.of('initialize')).toHaveLength(0)
  })

  it('is tried again with initialize when the last result has expired', async () => {
    const { server, upstream } = await connectScripted(modernOnly, {}, { legacyMs: 20 })
    expect((await upstream.open(legacyCaller())).revision).toBe('2026-07-28')
    server.become(bothEras())
    await expect.poll(async () => (await upstream.open(legacyCaller())).revision).toBe('2025-11-25')
  })

  it('that stops taking legacy sessions serves legacy callers statelessly', async () => {
    const { server, upstream } = await connectScripted(bothEras())
    expect((await upstream.open(legacyCaller())).revision).toBe('2025-11-25')
    server.become(modernOnly)
    expect((await upstream.open(legacyCaller('client-2'))).revision).toBe('2026-07-28')
  })

  it.each(['modern', 'legacy'] as const)('serves all callers in the configured era: %s', async era => {
    const { upstream } = await connectScripted(bothEras(), { era })
    const revision = era === 'modern' ? '2026-07-28' : '2025-11-25'
    for (const caller of [legacyCaller(), modernCaller]) expect((await upstream.open(caller)).revision).toBe(revision)
  })
})
