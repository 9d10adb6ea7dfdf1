import { afterEach, describe, expect, it } from 'vitest'
import { checkConfig } from '../../../src/config/check.ts'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { modern, send } from '../../support/raw.ts'
import {
  type Arrived,
  DISCOVERED,
  legacy,
  modern as modernServer,
  openStream,
  result,
  type Script,
  scriptedServer,
  sendJson,
} from '../../support/scripted-server.ts'
import { type Created, startGuarded } from './guarded.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const TOOLS = { tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] }
const answerTo = ({ body, headers }: Arrived): unknown => {
  const text = `${headers.authorization} ${headers['x-user']}`
  if (body.method === 'tools/call') return { content: [{ type: 'text', text }] }
  // What it lists tells whom it takes the caller for, and it thinks that everybody may know.
  const tools = TOOLS.tools.map(tool => ({ ...tool, description: text }))
  return body.method === 'tools/list' ? { tools, ttlMs: 60_000, cacheScope: 'public' } : {}
}

const statelessScript = (): Script =>
  modernServer((arrived, response) => {
    if (arrived.body.id === undefined) return void response.writeHead(202).end()
    const complete = { resultType: 'complete', ...(answerTo(arrived) as object) }
    sendJson(response, result(arrived.body.id, complete))
  })

const streamableScript = (): Script =>
  legacy(
    (arrived, response) => {
      if (arrived.body.id === undefined) return void response.writeHead(202).end()
      sendJson(response, result(arrived.body.id, answerTo(arrived)))
    },
    { sessions: Array.from({ length: 20 }, (_, i) => `s${i}`) },
  )

/** One channel is one session; the address for messages names it. */
const channelScript = (): Script => {
  const channels: ReturnType<typeof openStream>[] = []
  return (arrived, response) => {
    if (arrived.method === 'GET') {
      const channel = openStream(response)
      return void channel.raw(`event: endpoint\ndata: /messages?session=${channels.push(channel) - 1}\n\n`)
    }
    const channel = channels[Number(new URL(arrived.url, 'http://x').searchParams.get('session') ?? -1)]
    if (!channel) return void response.writeHead(405).end()
    const { id, method } = arrived.body
    response.writeHead(202).end()
    if (id === undefined || !method) return
    const serverInfo = { name: 'channelled', version: '1' }
    const introduction = { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo }
    channel.event(result(id, method === 'initialize' ? introduction : answerTo(arrived)), 'event: message\n')
  }
}

const DIALECTS: [string, () => Script, (arrived: Arrived) => string | undefined][] = [
  ['stateless', statelessScript, () => undefined],
  ['streamable', streamableScript, ({ headers }) => headers['mcp-session-id'] as string | undefined],
  ['http-sse', channelScript, ({ url }) => (url.includes('session=') ? url : undefined)],
]

const ENV = { ALICE_TOKEN: 'token-of-alice', BOB_TOKEN: 'token-of-bob' }
const CREDENTIALS = {
  alice: { headers: { Authorization: 'Bearer ${ALICE_TOKEN}' } },
  bob: { headers: { Authorization: 'Bearer ${BOB_TOKEN}' } },
}

/** A server of that dialect, a gateway before it that is configured by these words, and a token for each caller. */
const start = async (script: Script, entry: object = {}) => {
  const server = await scriptedServer(script)
  const words = { url: server.url, headers: { 'X-User': 'user ${caller.name}' }, credentials: CREDENTIALS, ...entry }
  const read = checkConfig(
    { value: { mcpServers: { server: words } }, placeOf: () => undefined, repeated: [] },
    { env: ENV },
  )
  expect(read.problems).toEqual([])
  const config = read.snapshot.servers.get('server') as ServerConfig
  const gateway = await startGuarded({ auth: { required: true }, server: config })
  closing.push(server.close, gateway.close)
  const create = (principal: string): Promise<Created> => gateway.create({ principal })
  return {
    server,
    gateway,
    alice: await create('alice'),
    bob: await create('bob'),
    carol: await create('carol'),
    create,
  }
}

let id = 0
const call = async (url: string, { headers }: Created, method = 'tools/call') => {
  const request = modern(++id, method, method === 'tools/call' ? { name: 'whoami' } : {})
  return (await send(url, { ...request, headers: { ...request.headers, ...headers } })).json
}
const textOf = (reply: Awaited<ReturnType<typeof call>>) =>
  (reply.result?.content as { text: string }[] | undefined)?.[0]?.text

const OF = { alice: 'Bearer token-of-alice user alice', bob: 'Bearer token-of-bob user bob' }
const toldBy = ({ headers }: Arrived): string => `${headers.authorization} ${headers['x-user']}`

describe.each(DIALECTS)('a %s server with credentials for two', (_dialect, script, sessionOf) => {
  it('is told by every request who calls, and never more than that', async () => {
    const { server, gateway, alice, bob, carol } = await start(script())
    const replies = await Promise.all([alice, bob, alice, bob].map(who => call(gateway.url, who)))
    expect(replies.map(textOf)).toEqual([OF.alice, OF.bob, OF.alice, OF.bob])
    const before = server.arrivals.length
    expect((await call(gateway.url, carol)).error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/Server "server" has no credentials for "carol"/),
      data: { reason: 'no_credentials', upstream: 'server', principal: 'carol' },
    })
    expect(server.arrivals).toHaveLength(before) // nothing was sent
    expect(new Set(server.arrivals.map(toldBy))).toEqual(new Set(Object.values(OF)))
    const secrets = [alice, bob, carol].map(({ headers }) => headers.authorization.slice('Bearer '.length))
    for (const { headers, text, url } of server.arrivals)
      for (const secret of secrets) expect(JSON.stringify([headers, text, url])).not.toContain(secret)
  })

  it('has no session that two of them share, even where sessions are said to be nobody’s', async () => {
    const { server, gateway, alice, bob } = await start(script(), { pool: 'stateless' })
    for (const who of [alice, bob, alice, bob]) await call(gateway.url, who)
    const owners = new Map<string, Set<string>>()
    for (const arrived of server.arrivals) {
      const session = sessionOf(arrived)
      if (session !== undefined) owners.set(session, (owners.get(session) ?? new Set()).add(toldBy(arrived)))
    }
    expect([...owners.values()].every(of => of.size === 1)).toBe(true)
    expect(owners.size).toBe(sessionOf === DIALECTS[0]?.[2] ? 0 : 2)
  })

  it('shows each what it shows him, though it says that everybody may see it', async () => {
    const { gateway, alice, bob } = await start(script())
    const seen = async (who: Created) => {
      const tools = (await call(gateway.url, who, 'tools/list')).result?.tools as { description: string }[]
      return tools[0]?.description
    }
    expect([await seen(alice), await seen(bob), await seen(alice)]).toEqual([OF.alice, OF.bob, OF.alice])
  })

  it('is told the same by legacy clients, and refuses the third at the handshake or at the call', async () => {
    const { server, gateway, alice, bob, carol } = await start(script())
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    for (const [who, expected] of [
      [alice, OF.alice],
      [bob, OF.bob],
    ] as const) {
      const opened = await send(gateway.url, {
        headers: who.headers,
        body: { jsonrpc: '2.0', id: 0, method: 'initialize', params: initialize },
      })
      const headers = { ...who.headers, 'mcp-session-id': String(opened.headers['mcp-session-id']) }
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } }
      expect(textOf((await send(gateway.url, { headers, body })).json)).toBe(expected)
    }
    const before = server.arrivals.length
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params: initialize }
    const opened = await send(gateway.url, { headers: carol.headers, body })
    const headers = { ...carol.headers, 'mcp-session-id': String(opened.headers['mcp-session-id']) }
    const refused = opened.json.error
      ? opened
      : await send(gateway.url, { headers, body: { ...body, id: 1, method: 'tools/call', params: { name: 'whoami' } } })
    expect(refused.json.error?.message).toContain('has no credentials for "carol"')
    expect(server.arrivals.slice(before).filter(arrived => toldBy(arrived).includes('carol'))).toEqual([])
  })
})

describe('a server with credentials', () => {
  it('takes everybody else by those for "*", each still apart', async () => {
    const credentials = { ...CREDENTIALS, '*': { headers: { Authorization: 'Bearer shared' } } }
    const { server, gateway, alice, carol, create } = await start(streamableScript(), {
      credentials,
      pool: 'stateless',
    })
    const dave = await create('dave')
    const texts = [textOf(await call(gateway.url, carol)), textOf(await call(gateway.url, dave))]
    expect(texts).toEqual(['Bearer shared user carol', 'Bearer shared user dave'])
    expect(textOf(await call(gateway.url, alice))).toBe(OF.alice)
    const sessions = server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])
    expect(new Set(sessions).size).toBe(3)
  })

  it('counts as untried until somebody calls it, and keeps nobody from being ready', async () => {
    const { server, gateway, alice } = await start(streamableScript())
    await gateway.gateway.ready
    const ready = async () => {
      const headers = { authorization: `Bearer ${gateway.gateway.localSecret}` }
      const response = await fetch(`${gateway.origin}/readyz`, { headers })
      const { servers } = (await response.json()) as { servers: object[] }
      return { status: response.status, server: servers[0] }
    }
    const reason = 'credentials are per caller'
    expect(await ready()).toMatchObject({ status: 200, server: { state: 'untried', reason } })
    expect(server.arrivals).toEqual([]) // nothing was sent in nobody's name
    expect(textOf(await call(gateway.url, alice))).toBe(OF.alice)
    expect(await ready()).toMatchObject({ status: 200, server: { state: 'ready' } })
  })

  it('has one bad token cost its owner alone', async () => {
    const { gateway, alice, bob } = await start((arrived, response) => {
      if (arrived.headers.authorization === 'Bearer token-of-bob') return void response.writeHead(401).end()
      statelessScript()(arrived, response)
    })
    for (let i = 0; i < 5; i++)
      expect((await call(gateway.url, bob)).error).toMatchObject({ data: { reason: 'upstream_auth' } })
    expect(textOf(await call(gateway.url, alice))).toBe(OF.alice)
    expect(gateway.gateway.status()[0]?.servers[0]?.state).toBe('ready')
  })

  it('may be of another era for each of them', async () => {
    const old = streamableScript()
    const { gateway, alice, bob } = await start((arrived, response) => {
      if (arrived.headers.authorization === 'Bearer token-of-bob') return old(arrived, response)
      if (arrived.body.method === 'server/discover') return sendJson(response, result(arrived.body.id, DISCOVERED))
      statelessScript()(arrived, response)
    })
    expect([textOf(await call(gateway.url, alice)), textOf(await call(gateway.url, bob))]).toEqual([OF.alice, OF.bob])
  })

  it('is not called in a name that would be more than a name', async () => {
    const { server, gateway, create } = await start(statelessScript(), { credentials: { '*': { headers: {} } } })
    const mallory = await create('mallory\r\nX-User: admin')
    const before = server.arrivals.length
    expect((await call(gateway.url, mallory)).error).toMatchObject({ data: { reason: 'no_credentials' } })
    expect(server.arrivals).toHaveLength(before)
  })

  it('is told the workspace, where that is wanted', async () => {
    const { gateway, alice } = await start(streamableScript(), { headers: { 'X-User': '${caller.workspace}' } })
    const texts = [textOf(await call(gateway.url, alice)), textOf(await call(gateway.other, alice))]
    expect(texts).toEqual(['Bearer token-of-alice default', 'Bearer token-of-alice other'])
  })
})

it('a caller nobody knows gets no credentials but those for everybody else, and a session of its own', async () => {
  const server = await scriptedServer(streamableScript())
  const words = { url: server.url, credentials: { '*': { headers: { Authorization: 'Bearer shared' } } } }
  const read = checkConfig(
    { value: { mcpServers: { server: words } }, placeOf: () => undefined, repeated: [] },
    { env: {} },
  )
  const gateway = await startGuarded({ insecure: true, server: read.snapshot.servers.get('server') as ServerConfig })
  closing.push(server.close, gateway.close)
  const nobody: Created = { id: '', headers: { authorization: '' } }
  const texts = [textOf(await call(gateway.url, nobody)), textOf(await call(gateway.url, nobody))]
  expect(texts).toEqual(['Bearer shared undefined', 'Bearer shared undefined'])
  const sessions = server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])
  expect(new Set(sessions).size).toBe(2)
})
