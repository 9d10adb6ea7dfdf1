import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CallerSeal } from '../../../src/fronts/cluster/caller-seal.ts'
import { createServerCallProtocol } from '../../../src/fronts/cluster/server-calls.ts'
import type { Caller } from '../../../src/protocol/exchange.ts'
import { META } from '../../../src/protocol/meta.ts'
import { MODERN } from '../../../src/protocol/revisions.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { Json } from '../../../src/wire/json/json.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'

const caller: Caller = {
  ...{ workspace: 'default', principal: 'ana', revision: MODERN, capabilities: Json.empty, headers: new Map() },
}
const body = {
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: {
    ...{ name: 'example-echo', arguments: { message: 'hello' } },
    _meta: { [META.protocolVersion]: MODERN, [META.clientCapabilities]: {} },
  },
}
const MCP = {
  ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  ...{ 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'example-echo' },
}

describe('the cluster port, for calls to one server', () => {
  let cluster: Awaited<ReturnType<typeof startReplicas>>
  let home: TestReplica
  beforeAll(async () => {
    cluster = await startReplicas({ size: 2 })
    home = cluster.replicas[0] as TestReplica
  })
  afterAll(() => cluster.close())

  interface Call {
    readonly server?: string
    readonly to?: string
    readonly now?: number
    readonly keys?: typeof cluster.keys
    readonly path?: string
    readonly more?: Record<string, string>
    readonly text?: string
  }
  const send = async ({ server = 'demo', to, now = Date.now(), keys, path, more, text }: Call = {}) => {
    const protocol = createServerCallProtocol(new CallerSeal((keys ?? cluster.keys).callers))
    const sealed = protocol.callerHeaders(server, caller, to ?? home.store.members.self, now)
    const address = home.store.members.at(home.store.members.self)?.address
    const response = await fetch(`${address}${path ?? protocol.pathOf('demo', caller)}`, {
      method: 'POST',
      headers: { ...MCP, [sealed[0] as string]: sealed[1] as string, ...more },
      body: text ?? JSON.stringify(body),
    })
    return { status: response.status, replica: response.headers.get('dragoman-replica'), text: await response.text() }
  }

  test('a caller that was sealed for this server and replica is served, without the rules of a workspace', async () => {
    const answer = await send()
    expect([answer.status, answer.replica]).toEqual([200, home.store.members.self])
    expect(answer.text).toContain('hello')
  })

  test.each<[string, () => Call, number]>([
    ['of another cluster', () => ({ keys: randomKeys() }), 403],
    ['of another server', () => ({ server: 'other' }), 403],
    ['that has expired', () => ({ now: Date.now() - 11_000 }), 403],
    ['from the future', () => ({ now: Date.now() + 60_000 }), 403],
    ['for another replica', () => ({ to: 'another' }), 421],
    ['of another workspace', () => ({ path: '/.servers/demo?workspace=other' }), 403],
    ['with a batch', () => ({ text: `[${JSON.stringify(body)}]` }), 400],
    ['with no JSON', () => ({ text: '{' }), 400],
    [
      'of a server that is not configured here',
      () => ({ server: 'gone', path: '/.servers/gone?workspace=default' }),
      421,
    ],
    ['with a path that cannot be decoded', () => ({ server: '', path: '/.servers/%E0%A4%A?workspace=default' }), 421],
  ])('a caller %s is rejected', async (_, call, status) => {
    const answer = await send(call())
    expect([answer.status, answer.text.includes('hello')]).toEqual([status, false])
  })

  test('a caller that was sealed for a forwarded request reaches no server, and the reverse', async () => {
    const seal = new CallerSeal(cluster.keys.callers)
    const to = home.store.members.self
    const about = { workspace: 'default', principal: 'ana', policyName: undefined, address: undefined }
    const forwarded = await send({ more: { 'dragoman-caller': seal.seal(about, to, Date.now()) } })
    expect([forwarded.status, forwarded.text.includes('hello')]).toEqual([403, false])
    const reverse = await send({ path: '/mcp' })
    expect(reverse.text).not.toContain('hello')
  })

  test('a session that another replica holds is not served here, and one that is free is', async () => {
    const [, other] = cluster.replicas
    if (!other) throw new Error('two replicas')
    await other.store.create('pool', 'held elsewhere', Buffer.alloc(0), { expires: Date.now() + 60_000 })
    const held = await send({ more: { 'dragoman-pool': 'held elsewhere' } })
    expect([held.status, held.replica]).toEqual([421, home.store.members.self])
    expect((await send({ more: { 'dragoman-pool': 'free' } })).status).toBe(200)
  })

  test('the port for clients does not know these paths', async () => {
    const { origin } = new URL(home.url)
    expect((await fetch(`${origin}/.servers/demo?workspace=default`, { method: 'POST', body: '{}' })).status).toBe(404)
  })
})
