import { afterEach, describe, expect, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { createHealth } from '../../../src/health/health.ts'
import type { RpcError } from '../../../src/protocol/errors.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { connectRemote } from '../../../src/upstreams/connect-remote.ts'
import { Json } from '../../../src/wire/json/json.ts'
import {
  callerOf,
  exchangeWith,
  failure,
  legacy,
  result,
  type Script,
  scriptedServer,
  sendJson,
} from '../../support/scripted-server.ts'

const SECRET = 'ALICE-SECRET'
const [alice, bob] = ['alice', 'bob'].map(principal => callerOf({ principal, revision: '2025-11-25' }))

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const start = async (script: Script) => {
  const server = await scriptedServer(script)
  const config: ServerConfig & { kind: 'remote' } = {
    name: 'far',
    disabled: false,
    kind: 'remote',
    url: server.url,
    type: 'auto',
    headers: {},
    era: 'legacy',
    timeoutMs: 2000,
  }
  const health = createHealth(Json.of({ name: 'test', version: '1' }), SILENT)
  const upstream = health.add(config, connectRemote(config, { log: SILENT }))
  closing.push(
    () => server.close(),
    () => upstream.close(),
    () => health.close(),
  )
  await health.probeAll()
  const fail = async (caller = alice): Promise<{ readonly message: string }> => {
    try {
      const peer = await upstream.open(caller ?? callerOf())
      return await exchangeWith(peer, 'tools/call', { caller: caller ?? callerOf() }).failure()
    } catch (thrown) {
      return (thrown as { error: RpcError }).error
    }
  }
  return { server, fail, status: () => health.statusOf('far') }
}

const answers: Script = ({ body: { id } }, response) =>
  id === undefined ? void response.writeHead(202).end() : sendJson(response, result(id, { ok: true, tools: [] }))

describe('what a server says to one user', () => {
  test('in the body of an HTTP error reaches neither other users nor the status', async () => {
    const { fail, status } = await start(
      legacy((arrived, response) =>
        arrived.body.method === 'tools/call'
          ? void response.writeHead(503, { 'content-type': 'text/plain' }).end(`cannot store: ${SECRET}`)
          : answers(arrived, response),
      ),
    )
    for (let i = 0; i < 3; i++) expect((await fail()).message).toContain(`is not available (HTTP 503: "cannot store`)
    await expect.poll(() => status().state).toBe('down')
    expect(status().reason).toBe('Server "far" is not available (HTTP 503)')
    expect((await fail(bob)).message).not.toContain(SECRET)
  })

  test.each([
    ['an error', 200, 'degraded'],
    ['an outage', 503, 'ready'],
  ] as const)(
    'when it refuses initialize with %s reaches neither other users nor the status',
    async (_, code, state) => {
      const { server, fail, status } = await start(legacy(answers))
      let words = SECRET
      server.become(({ body: { id, method } }, response) => {
        if (method === 'initialize') sendJson(response, failure(code === 200 ? id : null, -32022, words), code)
        else sendJson(response, failure(id, -32601, 'no'), 404)
      })
      expect((await fail()).message).toContain(SECRET)
      words = 'later'
      expect(JSON.stringify(status())).not.toContain(SECRET)
      if (state === 'degraded') expect(status()).toMatchObject({ state, reason: 'Server "far" refused initialize' })
      expect((await fail(bob)).message).not.toContain(SECRET)
    },
  )

  test('is in the status where the gateway itself was refused', async () => {
    const { status } = await start(({ body: { id } }, response) =>
      sendJson(response, failure(id, -32022, 'no clients today')),
    )
    expect(status().reason).toContain('refused initialize: no clients today')
  })
})
