import { afterEach, describe, expect, test } from 'vitest'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { type ScriptedServer, scriptedServer } from '../../support/scripted-server.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { openChannel, startGuarded } from '../auth/guarded.ts'
import { type Configured, startConfigured } from './configured.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
const start = async (mcpServers: object): Promise<Configured> => {
  const gateway = await startConfigured({ mcpServers })
  closing.push(gateway.close)
  return gateway
}
const startSilent = async (): Promise<ScriptedServer> => {
  const server = await scriptedServer(() => {})
  closing.push(() => server.close())
  return server
}
const get = async (gateway: Configured, path: string, headers: Record<string, string> = {}) =>
  send(gateway.origin + path, { method: 'GET', headers })

describe('/readyz', () => {
  test('is 503 until every server has been tried, then 200 with their states', async () => {
    const silent = await startSilent()
    const gateway = await start({
      demo: { builtin: 'demo' },
      slow: { url: silent.url, era: 'modern' },
      gone: { url: 'http://127.0.0.1:1/mcp' },
      off: { builtin: 'demo', disabled: true },
    })
    await silent.arrived('POST')
    const before = await get(gateway, '/readyz')
    expect([before.status, JSON.parse(before.text).status]).toEqual([503, 'starting'])
    expect(JSON.parse(before.text).servers).toContainEqual({
      name: 'slow',
      state: 'connecting',
      since: expect.stringMatching(/^2\d{3}-.*Z$/),
    })
    for (const { response } of silent.arrivals) response.destroy()
    silent.become((_arrived, response) => void response.destroy())
    await gateway.gateway.ready
    const after = await get(gateway, '/readyz')
    expect(after.status).toBe(200)
    const { text } = await get(gateway, '/metrics')
    expect(text).toMatch(/^dragoman_server_tool_tokens\{server="demo"\} [1-9]\d+$/m)
    expect(text).toMatch(/^dragoman_tool_tokens\{server="demo",tool="[\w-]+"\} [1-9]\d+$/m)
    expect(text.match(/^dragoman_tool_bytes\{/gm)).toHaveLength(10)
    expect(text).toMatch(/^dragoman_workspace_tool_tokens\{workspace="default",scope="listed"\} [1-9]\d+$/m)
    expect(JSON.parse(after.text)).toMatchObject({
      status: 'ready',
      servers: [
        {
          name: 'demo',
          state: 'ready',
          revision: '2026-07-28',
          tools: expect.any(Number),
          toolSize: { tokens: expect.any(Number) },
          largestTools: expect.arrayContaining([
            { name: expect.any(String), bytes: expect.any(Number), tokens: expect.any(Number) },
          ]),
        },
        { name: 'slow', state: 'down', reason: expect.any(String) },
        { name: 'gone', state: 'down', reason: expect.any(String), retryAt: expect.stringMatching(/^2\d{3}-.*Z$/) },
        { name: 'off', state: 'disabled' },
      ],
      workspaces: expect.arrayContaining([
        expect.objectContaining({ name: 'default', listed: expect.any(Object), unknown: ['slow', 'gone'] }),
      ]),
    })
  })

  test('takes only GET and HEAD', async () => {
    const gateway = await start({ demo: { builtin: 'demo' } })
    for (const path of ['/readyz', '/healthz', '/metrics', '/']) {
      expect((await send(gateway.origin + path, { method: 'HEAD' })).text).toBe('')
      expect((await send(gateway.origin + path, { method: 'DELETE' })).status).toBe(405)
    }
  })
})

describe('/metrics', () => {
  test('counts what came in by every door, and comes back to zero', async () => {
    const gateway = await start({ demo: { builtin: 'demo' }, gone: { url: 'http://127.0.0.1:1/mcp', era: 'modern' } })
    const url = `${gateway.origin}/mcp`
    const { headers } = await openSession(url)
    const call = (id: number, name: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: {} },
    })
    await send(url, { headers, body: call(1, 'example-ping') })
    await send(url, { headers, body: { jsonrpc: '2.0', id: 2, method: 'made/up' } })
    await send(url, modern(1, 'tools/list'))
    await send(url, modern(1, 'tools/call', { name: 'nope' }))
    await send(`${gateway.origin}/actions/example-ping`, { body: {} })
    await send(`${gateway.origin}/actions/gone/x`, { body: {} })
    const channel = await openChannel(gateway.origin, { authorization: '' })
    const inbox = await openStream(url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
    const { status, headers: sent, text } = await get(gateway, '/metrics')
    expect([status, sent['content-type']]).toEqual([200, expect.stringContaining('text/plain')])
    expect(text.split('\n')).toEqual(
      expect.arrayContaining([
        'dragoman_requests_total{dialect="streamable",method="tools/call",outcome="ok"} 1',
        'dragoman_requests_total{dialect="streamable",method="other",outcome="error"} 1',
        'dragoman_requests_total{dialect="stateless",method="tools/list",outcome="ok"} 1',
        'dragoman_requests_total{dialect="stateless",method="tools/call",outcome="error"} 1',
        'dragoman_requests_total{dialect="rest",method="tools/call",outcome="ok"} 1',
        'dragoman_requests_total{dialect="rest",method="tools/call",outcome="error"} 1',
        'dragoman_upstream_failures_total{server="gone",reason="upstream_unreachable"} 1',
        'dragoman_sessions 1',
        'dragoman_channels 1',
        'dragoman_streams 1',
        'dragoman_server_up{server="demo"} 1',
        'dragoman_server_up{server="gone"} 0',
        'dragoman_info{version="1.2.3"} 1',
      ]),
    )
    channel.destroy()
    inbox.close()
    await send(url, { method: 'DELETE', headers })
    const gauges = async () =>
      (await get(gateway, '/metrics')).text.match(
        /^dragoman_(sessions|channels|streams|calls_in_flight|log_bytes) .*/gm,
      )
    await expect
      .poll(gauges)
      .toEqual(['sessions', 'channels', 'streams', 'calls_in_flight', 'log_bytes'].map(name => `dragoman_${name} 0`))
  })

  test('counts the calls of every server and of every listed tool, invented names as other', async () => {
    const peer = await startV1()
    closing.push(() => peer.close())
    const gateway = await start({ demo: { builtin: 'demo' }, far: { url: peer.url } })
    await gateway.gateway.ready
    const call = (workspace: string, name: string) =>
      send(`${gateway.origin}/mcp/${workspace}`, modern(1, 'tools/call', { name, arguments: {} }))
    for (const name of ['example-ping', 'example-ping', 'invented-1', 'invented-2']) await call('demo', name)
    await call('default', 'far__test_simple_text') // among others, and of the other era
    await call('far', 'test_simple_text')
    const text = (await get(gateway, '/metrics')).text
    expect(text.split('\n')).toEqual(
      expect.arrayContaining([
        'dragoman_tool_calls_total{server="demo",tool="example-ping",outcome="ok"} 2',
        'dragoman_tool_calls_total{server="demo",tool="other",outcome="error"} 2',
        'dragoman_tool_calls_total{server="far",tool="test_simple_text",outcome="ok"} 2',
        '# TYPE dragoman_tool_call_seconds_total counter',
      ]),
    )
    expect(text).not.toContain('invented')
    const [, calls = '0'] = /^dragoman_server_calls_total\{server="far",outcome="ok"\} (\d+)$/m.exec(text) ?? []
    expect(Number(calls)).toBeGreaterThanOrEqual(2)
    expect(text).toMatch(/^dragoman_server_call_seconds_total\{server="far"\} 0\.\d+$/m)
  })

  test('a call whose client leaves counts as cancelled', async () => {
    const silent = await startSilent()
    const gateway = await start({ silent: { url: silent.url, era: 'modern' } })
    const calling = fetch(`${gateway.origin}/actions/x`, { method: 'POST', signal: AbortSignal.timeout(200) })
    await expect(calling).rejects.toThrow()
    await expect
      .poll(async () => (await get(gateway, '/metrics')).text)
      .toContain('dragoman_requests_total{dialect="rest",method="tools/call",outcome="cancelled"} 1')
  })

  const DOWN = {
    kind: 'remote',
    url: 'http://127.0.0.1:1/mcp',
    type: 'auto',
    headers: {},
    era: 'auto',
    timeoutMs: 1000,
  }
  const PROXIED = { 'x-forwarded-for': '192.0.2.1' }
  const look = async ({ origin }: { origin: string }, headers: Record<string, string> = {}) => {
    const metrics = await send(`${origin}/metrics`, { method: 'GET', headers })
    const { status, servers } = JSON.parse((await send(`${origin}/readyz`, { method: 'GET', headers })).text)
    return {
      metrics: metrics.status,
      status,
      servers: servers && (servers[0].reason === undefined ? 'names' : 'reasons'),
    }
  }
  const guard = async (options: Parameters<typeof startGuarded>[0]) => {
    const gateway = await startGuarded({ ...options, server: DOWN as never })
    closing.push(gateway.close)
    await gateway.gateway.ready
    return gateway
  }
  const ALL = { metrics: 200, status: 'ready', servers: 'reasons' }

  test.each(['127.0.0.1', '0.0.0.0'])('on %s is shown to a local caller, and not to one behind a proxy', async host => {
    const gateway = await guard({ insecure: true, listen: { host, allowedHosts: ['mcp.example.com'] } })
    expect(await look(gateway)).toEqual(ALL)
    const hidden = { metrics: 404, status: 'ready', servers: undefined }
    for (const headers of [PROXIED, { forwarded: 'for=192.0.2.1' }, { 'x-real-ip': '192.0.2.1' }, { via: '1.1 proxy' }])
      expect(await look(gateway, headers)).toEqual(hidden)
    expect(await look(gateway, { host: 'mcp.example.com' })).toEqual(hidden)
  })

  test('is shown to everybody where the configuration says so', async () => {
    const gateway = await guard({ insecure: true, listen: { host: '0.0.0.0', exposeMetrics: true } })
    expect(await look(gateway, PROXIED)).toEqual(ALL)
  })

  test.each(['127.0.0.1', '0.0.0.0'])('on %s needs a token that nothing limits once tokens are on', async host => {
    const gateway = await guard({ auth: { required: true }, listen: { host } })
    const { headers } = await gateway.create()
    for (const more of [{}, PROXIED])
      expect(await look(gateway, more)).toEqual({ metrics: 401, status: 'ready', servers: undefined })
    const wrong = { authorization: `Bearer drg_${'A'.repeat(43)}` }
    expect(await look(gateway, wrong)).toEqual({ metrics: 401, status: 'ready', servers: undefined })
    for (const limit of [{ workspaces: ['other'] }, { policy: 'reading' }]) {
      const limited = await gateway.create(limit)
      expect(await look(gateway, limited.headers)).toEqual({ metrics: 403, status: 'ready', servers: undefined })
    }
    expect(await look(gateway, headers)).toEqual(ALL)
    expect(await look(gateway, { ...headers, ...PROXIED })).toEqual(ALL)
  })

  test('shows no reason without a token once tokens are on, also where it is open: a reason quotes the server', async () => {
    const gateway = await guard({ auth: { required: true }, listen: { exposeMetrics: true } })
    expect(await look(gateway)).toEqual({ metrics: 200, status: 'ready', servers: 'names' })
    const { headers } = await gateway.create()
    expect(await look(gateway, headers)).toEqual(ALL)
  })
})

describe('/', () => {
  test('lists workspaces and doors, and each of them is there', async () => {
    const gateway = await start({ demo: { builtin: 'demo' }, 'my files': { builtin: 'files' } })
    await gateway.gateway.ready
    const { workspaces, ...rest } = JSON.parse((await get(gateway, '/')).text)
    expect(workspaces).toEqual([
      {
        name: 'default',
        servers: ['demo', 'my files'],
        mcp: 'mcp',
        sse: 'sse',
        actions: 'actions/default/openapi.json',
      },
      { name: 'demo', servers: ['demo'], mcp: 'mcp/demo', sse: 'mcp/demo/sse', actions: 'actions/demo/openapi.json' },
      {
        name: 'my-files',
        servers: ['my files'],
        mcp: 'mcp/my-files',
        sse: 'mcp/my-files/sse',
        actions: 'actions/my-files/openapi.json',
      },
    ])
    expect(rest).toMatchObject({ name: 'dragoman', version: '1.2.3' })
    for (const path of [rest.healthy, rest.ready, rest.metrics, rest.actions, workspaces[2].actions])
      expect((await get(gateway, `/${path}`)).status).toBe(200)
    for (const { mcp } of workspaces)
      expect((await send(`${gateway.origin}/${mcp}`, modern(1, 'tools/list'))).status).toBe(200)
  })

  test('is JSON for programs, whatever else they accept, and the console for browsers', async () => {
    const gateway = await start({ demo: { builtin: 'demo' } })
    for (const accept of ['*/*', 'application/json'])
      expect(JSON.parse((await get(gateway, '/', { accept })).text)).toMatchObject({ name: 'dragoman' })
    const { headers, text } = await get(gateway, '/', { accept: 'text/html,*/*' })
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(headers.vary).toContain('accept')
    expect(text).toMatch(/<noscript>[\s\S]*<code>\/mcp<\/code>/)
  })
})
