import { expect, onTestFinished, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { startGatewayBefore } from '../../support/gateway.ts'
import { openSession, send } from '../../support/raw.ts'
import { type Arrived, legacy, openStream, result, scriptedServer, sendJson } from '../../support/scripted-server.ts'

const CLIENTS = 8 // more than the failures that open a circuit
const TOOLS = [{ name: 'echo', inputSchema: { type: 'object' } }]
const DEMO = { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' } as const

test('clients that leave while the gateway lists the tools of a server for them do not make it look down', async () => {
  let isHolding = false
  const held: Arrived[] = []
  const server = await scriptedServer(
    legacy(
      (arrived, response) => {
        const { id, method } = arrived.body
        if (id === undefined) return void response.writeHead(202).end()
        if (method === 'tools/list' && isHolding) return void held.push(arrived)
        if (method === 'tools/call')
          return sendJson(response, result(id, { content: [{ type: 'text', text: 'here' }] }))
        sendJson(response, result(id, { tools: TOOLS }))
      },
      {
        sessions: Array.from({ length: 50 }, (_, at) => `s${at}`),
        listen: (_, response) => void openStream(response),
        capabilities: { tools: {} }, // it announces no change: each session gets a list of its own, soon stale
      },
    ),
  )
  const far: ServerConfig = {
    ...{ name: 'far', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto' },
    timeoutMs: 60_000,
  }
  const gateway = await startGatewayBefore([far, DEMO])
  onTestFinished(async () => {
    await gateway.close()
    await server.close()
  })
  const call = async (headers: Record<string, string>) => {
    const params = { name: 'far__echo', arguments: {} }
    return (await send(gateway.url, { headers, body: { jsonrpc: '2.0', id: 2, method: 'tools/call', params } })).json
  }
  const first = await openSession(gateway.url)
  expect((await call(first.headers)).result).toBeDefined()
  isHolding = true
  for (let n = 0; n < CLIENTS; n++) {
    const { headers } = await openSession(gateway.url, '2025-11-25', { roots: {}, experimental: { n: { n } } })
    const before = held.length
    const listing = send(gateway.url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} } })
    await server.until(() => held.length > before, 'the list') // the client may have an earlier one by then
    const ended = server.of('DELETE').length
    await send(gateway.url, { method: 'DELETE', headers })
    await server.until(() => server.of('DELETE').length > ended, 'the end of the session')
    await listing
  }
  const ready = await fetch(new URL('/readyz', gateway.url))
  const { servers } = (await ready.json()) as { servers: object[] }
  expect(servers[0]).toMatchObject({ name: 'far', state: 'ready' })
  expect(servers[0]).not.toHaveProperty('reason')
  expect((await call(first.headers)).result).toEqual({ content: [{ type: 'text', text: 'here' }] })
})
