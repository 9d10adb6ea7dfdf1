import { describe, expect, it } from 'vitest'
import { answerWith, connectScripted } from '../../test/support/remote-upstream.ts'
import {
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

const dedicated = callerOf({ session: 'client-1' })

describe('opening', () => {
  it('probes once and then shakes hands with a legacy server', async () => {
    const { server, upstream } = await connectScripted(legacy(answerOk))
    const peer = await upstream.open(dedicated)
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
    await upstream.open({ ...dedicated, session: 'client-2' })
    expect(server.of('server/discover')).toHaveLength(1)
    expect(server.of('initialize')).toHaveLength(2)
  })

  it('uses the modern era of a server that has both', async () => {
    const { server, upstream } = await connectScripted(modern(legacy(answerOk)))
    expect((await upstream.open(dedicated)).revision).toBe('2026-07-28')
    expect(server.of('initialize')).toHaveLength(0)
  })

  it.each([
    ['modern', '2026-07-28'],
    ['legacy', '2025-11-25'],
  ] as const)('does as the configuration says: %s', async (era, revision) => {
    const { server, upstream } = await connectScripted(modern(legacy(answerOk)), { era })
    expect((await upstream.open(dedicated)).revision).toBe(revision)
    expect(server.of('server/discover')).toHaveLength(0)
  })

  it('says which server is down, why, and what to do', async () => {
    const { server, upstream } = await connectScripted(() => {})
    await server.close()
    const began = Date.now()
    for (let i = 0; i < 20; i++)
      await expect(upstream.open(dedicated)).rejects.toMatchObject({
        message: expect.stringMatching(/^Server "far" did not answer: connect ECONNREFUSED .* \(is it running\?\)$/),
        error: { code: -32603 },
      })
    expect(Date.now() - began).toBeLessThan(2000)
  })

  it('backs off from a server that is down', async () => {
    const { server, upstream } = await connectScripted(
      (_, response) => void response.writeHead(503).end(),
      {},
      { backoffMs: 4000 },
    )
    for (let i = 0; i < 20; i++) await expect(upstream.open(dedicated)).rejects.toThrow('HTTP 503')
    expect(server.arrivals).toHaveLength(1)
  })

  it('follows a server that turned from legacy to modern', async () => {
    const { server, upstream } = await connectScripted(legacy(answerOk))
    await upstream.open(dedicated)
    server.become(
      modern(({ body }, response) => {
        const data = { supported: ['2026-07-28'], requested: '2025-11-25' }
        if (body.method === 'initialize') sendJson(response, failure(body.id, -32022, 'Unsupported', data), 400)
        else answerOk({ body } as Parameters<Script>[0], response)
      }),
    )
    const peer = await upstream.open({ ...dedicated, session: 'client-2' })
    expect(peer.revision).toBe('2026-07-28')
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
  })

  it('notices it also on an open session', async () => {
    const { server, upstream } = await connectScripted(legacy(answerOk))
    const peer = await upstream.open(dedicated)
    const data = { supported: ['2026-07-28'], requested: '2025-11-25' }
    server.become(
      modern(({ body, headers }, response) => {
        const isModern = headers['mcp-protocol-version'] === '2026-07-28'
        if (isModern) sendJson(response, result(body.id, { ok: true }))
        else if (body.method === 'initialize') sendJson(response, failure(body.id, -32022, 'Unsupported', data), 400)
        else sendJson(response, failure(null, -32001, 'Session not found'), 404)
      }),
    )
    await exchangeWith(peer, 'tools/list').failure()
    const next = await upstream.open(dedicated)
    expect(next.revision).toBe('2026-07-28')
    expect(await exchangeWith(next, 'tools/list').result()).toEqual({ ok: true })
  })

  it('works with a server that moved', async () => {
    const inner = modern(answerOk)
    const { upstream } = await connectScripted((arrived, response) => {
      if (arrived.url === '/mcp') response.writeHead(307, { location: '/mcp/' }).end()
      else inner(arrived, response)
    })
    expect(await exchangeWith(await upstream.open(dedicated), 'tools/list').result()).toEqual({ ok: true })
  })
})

describe('closing', () => {
  const listen: Script = (_, response) => void openStream(response)
  const hanging: Script = ({ body }, response) => {
    if (body.method === 'tools/call') openStream(response)
    else answerOk({ body } as Parameters<Script>[0], response)
  }

  it('ends sessions at the server, calls and streams with their callers, and every socket', async () => {
    const { server, upstream } = await connectScripted(legacy(hanging, { listen }))
    const peer = await upstream.open(dedicated)
    const call = exchangeWith(peer, 'tools/call')
    const standing = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    await server.arrived('tools/call')
    await Promise.all([upstream.close(), upstream.close()])
    expect((await call.failure()).data).toEqual({ reason: 'upstream_lost', upstream: 'far' })
    expect(await standing.result()).toEqual({ resultType: 'complete' })
    expect(server.of('DELETE')).toHaveLength(1)
    await server.until(() => server.sockets.size === 0, 'sockets to close')
    await expect(upstream.open(dedicated)).rejects.toThrow('Server "far" is being disconnected')
  })

  it('ends modern calls too', async () => {
    const { server, upstream } = await connectScripted(modern(hanging))
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    await server.arrived('tools/call')
    await upstream.close()
    expect((await call.failure()).data).toEqual({ reason: 'upstream_lost', upstream: 'far' })
    await server.until(() => server.sockets.size === 0, 'sockets to close')
  })

  it('does not wait for a server that does not answer', async () => {
    const inner = legacy(hanging, { listen })
    const { upstream } = await connectScripted(
      (arrived, response) => {
        if (arrived.method !== 'DELETE') inner(arrived, response)
      },
      {},
      { closeMs: 100 },
    )
    await upstream.open(dedicated)
    const began = Date.now()
    await upstream.close()
    expect(Date.now() - began).toBeLessThan(1000)
  })

  it('in the middle of opening leaves nothing behind', async () => {
    const inner = legacy(hanging, { listen })
    const { server, upstream } = await connectScripted((arrived, response) => {
      if (arrived.body.method === 'initialize') setTimeout(() => inner(arrived, response), 50)
      else inner(arrived, response)
    })
    const opening = upstream.open(dedicated)
    await server.arrived('initialize')
    await upstream.close()
    const peer = await opening
    expect(await exchangeWith(peer, 'tools/list').failure()).toMatchObject({ data: { reason: 'upstream_lost' } })
    expect(server.of('DELETE')).toHaveLength(1)
    await server.until(() => server.sockets.size === 0, 'sockets to close')
  })

  it('leaves no timer and no handle behind', async () => {
    const resources = () =>
      process.getActiveResourcesInfo().filter(name => name === 'Timeout' || name === 'TCPSocketWrap').length
    const sessions = Array.from({ length: 50 }, (_, i) => `s${i}`)
    const before = resources()
    const { server, upstream } = await connectScripted(legacy(hanging, { listen, sessions }), { timeoutMs: 60_000 })
    const calls = []
    for (let i = 0; i < 50; i++) {
      const caller = callerOf({ session: `client-${i}` })
      const peer = await upstream.open(caller)
      calls.push(exchangeWith(peer, 'tools/call', { caller }))
      exchangeWith(peer, 'subscriptions/listen', { caller })
    }
    await server.arrived('tools/call', 50)
    expect(resources()).toBeGreaterThan(before)
    await upstream.close()
    await Promise.all(calls.map(call => call.failure()))
    await server.until(() => server.sockets.size === 0, 'sockets to close')
    await expect.poll(resources).toBeLessThanOrEqual(before)
  })
})
