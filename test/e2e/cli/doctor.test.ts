import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Programs } from '../../../src/cli/command.ts'
import { run } from '../../../src/cli/run.ts'
import { type DoctorTarget, examine } from '../../../src/doctor/doctor.ts'
import type { DoctorReport } from '../../../src/doctor/report.ts'
import { RULES, type RuleName } from '../../../src/doctor/rules.ts'
import { type ProxiedRequest, type ResponseChange, startChangingProxy } from '../../support/changing-proxy.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { graphiti } from '../../support/servers/seeds/graphiti.ts'
import { hub } from '../../support/servers/seeds/hub.ts'
import { kulturarv, TOKEN } from '../../support/servers/seeds/kulturarv.ts'
import { serena } from '../../support/servers/seeds/serena.ts'

let gateway: Awaited<ReturnType<typeof startTestGateway>>

beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(() => gateway.close())

const OPTIONS = { timeoutMs: 2000, version: '1.2.3' }

const examineUrl = (url: string): Promise<DoctorReport> =>
  examine({ kind: 'remote', url: new URL(url), headers: {} }, OPTIONS)

const examineChanged = async (
  change: (request: ProxiedRequest) => ResponseChange | undefined,
): Promise<DoctorReport> => {
  const proxy = await startChangingProxy(gateway.url, change)
  try {
    return await examineUrl(proxy.url)
  } finally {
    await proxy.close()
  }
}

const rulesIn = ({ deviations }: DoctorReport): RuleName[] => [...new Set(deviations.map(({ rule }) => rule))]

const listen = async (answer: Parameters<typeof createServer>[1]) => {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close }
}

test('a server of all revisions conforms', async () => {
  const report = await examineUrl(gateway.url)
  expect(report.deviations).toEqual([])
  expect(report.verdict).toBe('conforms')
  expect(report.transports).toEqual([
    {
      transport: 'Streamable HTTP',
      revisions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
      reason: undefined,
    },
    { transport: 'HTTP+SSE', revisions: ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'], reason: undefined },
  ])
  expect(report.server).toMatchObject({
    revision: '2026-07-28',
    name: 'demo',
    capabilities: expect.arrayContaining(['tools']),
  })
  expect(report.server?.counts.tools).toBeGreaterThan(10)
})

/** A modern request with that method. */
const asks = ({ body }: ProxiedRequest, method: string): boolean => body.includes(`"method":"${method}"`)

const edit = (from: string | RegExp, to: string): ResponseChange => ({ body: text => text.replace(from, to) })

const MODERN_FLAWS: readonly [RuleName, (request: ProxiedRequest) => ResponseChange | false][] = [
  ['unsupported-version', ({ headers }) => headers['mcp-protocol-version'] === '1999-01-01' && { status: 200 }],
  ['unknown-method-status', request => asks(request, 'dragoman/no-such-method') && { status: 200 }],
  [
    'header-required',
    ({ method, headers }) => method === 'POST' && headers['mcp-method'] === undefined && { status: 500 },
  ],
  [
    'header-mismatch',
    request => request.headers['mcp-method'] === 'tools/list' && asks(request, 'server/discover') && { status: 500 },
  ],
  ['unknown-method', request => asks(request, 'dragoman/no-such-method') && edit('-32601', '-32000')],
  ['discover-result', request => asks(request, 'server/discover') && edit('"capabilities"', '"features"')],
  ['output-schema', request => asks(request, 'tools/list') && edit('"outputSchema":{', '"outputSchema":["x"],"x":{')],
  ['param-headers', request => asks(request, 'tools/list') && edit('"x-mcp-header":"', '"x-mcp-header":"not a token ')],
  [
    'unknown-resource',
    request => asks(request, 'resources/read') && edit(/"error":.*\}\}/, '"result":{"contents":[]}}'),
  ],
  ['meta-required', ({ body }) => body.includes('"_meta":{}') && { status: 200 }],
  ['origin', ({ headers }) => headers.origin !== undefined && { status: 200 }],
  ['result-type', request => asks(request, 'prompts/list') && edit('"resultType"', '"kind"')],
  ['cache-hints', request => asks(request, 'prompts/list') && edit('"cacheScope"', '"scope"')],
  [
    'server-info',
    request => asks(request, 'server/discover') && edit('modelcontextprotocol/serverInfo', 'modelcontextprotocol/who'),
  ],
  ['json-rpc', request => asks(request, 'prompts/list') && edit('"jsonrpc":"2.0"', '"jsonrpc":"1.0"')],
  ['error-code', request => asks(request, 'prompts/get') && edit(/"code":-\d+/, '"code":"bad"')],
  ['content-type', request => asks(request, 'prompts/list') && { headers: { 'content-type': 'text/plain' } }],
  [
    'list-answered',
    request => asks(request, 'prompts/list') && edit(/"result":.*\}/, '"error":{"code":-32603,"message":"broken"}}'),
  ],
  ['list-items', request => asks(request, 'prompts/list') && edit('"prompts":[', '"items":[')],
  [
    'cursor-repeats',
    request =>
      asks(request, 'prompts/list') && edit(/"(result|error)":.*\}/, '"result":{"nextCursor":"again","prompts":[]}}'),
  ],
  [
    'cursor-invalid',
    request => asks(request, 'tools/list') && request.body.includes('no-such-name') && { body: () => '{}' },
  ],
  ['tool-name', request => asks(request, 'tools/list') && edit('"name":"', '"name":"a b ')],
  ['input-schema', request => asks(request, 'tools/list') && edit(/"inputSchema":\{/, '"schema":{')],
  [
    'unique-names',
    request =>
      asks(request, 'prompts/list') && { body: text => text.replace(/"prompts":\[(\{.*?\}),\{/, '"prompts":[$1,$1,{') },
  ],
  ['item-name', request => asks(request, 'resources/list') && edit('"name":"', '"label":"')],
  ['resource-uri', request => asks(request, 'resources/list') && edit('"uri":"', '"uri":"/')],
  [
    'unknown-tool',
    request =>
      asks(request, 'tools/call') && edit(/"error":.*\}\}/, '"result":{"resultType":"complete","content":[]}}'),
  ],
  ['unknown-prompt', request => asks(request, 'prompts/get') && edit('-32602', '-32603')],
]

test.each(MODERN_FLAWS)('a modern server that breaks the rule %s is found out', async (rule, flaw) => {
  const report = await examineChanged(request => flaw(request) || undefined)
  expect(report.verdict).toBe('deviates')
  expect(rulesIn(report)).toContain(rule)
})

const isModernRequest = ({ headers }: ProxiedRequest): boolean => headers['mcp-protocol-version'] === '2026-07-28'

const LEGACY_ONLY: ResponseChange = {
  status: 400,
  headers: { 'content-type': 'application/json' },
  body: () => '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unsupported protocol version"}}',
}

const LEGACY_FLAWS: readonly [RuleName, (request: ProxiedRequest) => ResponseChange | false][] = [
  ['initialize-result', request => asks(request, 'initialize') && edit('"serverInfo"', '"info"')],
  [
    'version-offer',
    ({ body }) => body.includes('1999-01-01') && edit(/"result":.*\}/, '"error":{"code":-32602,"message":"no"}}'),
  ],
  ['notification-accepted', request => asks(request, 'notifications/initialized') && { status: 200 }],
  ['parse-error', ({ body }) => body === '{"jsonrpc":' && { status: 500 }],
  [
    'get-stream',
    ({ method, headers }) => method === 'GET' && headers['mcp-session-id'] !== undefined && { status: 404 },
  ],
  ['session-id', request => asks(request, 'initialize') && { headers: { 'mcp-session-id': 'caf\u00e9' } }],
  [
    'session-required',
    request => asks(request, 'ping') && request.headers['mcp-session-id'] === undefined && { status: 500 },
  ],
  ['version-header', ({ headers }) => headers['mcp-protocol-version'] === '1999-01-01' && { status: 200 }],
  ['origin', ({ headers }) => headers.origin !== undefined && { status: 200 }],
  [
    'ping',
    request => asks(request, 'ping') && edit(/"result":\{[^}]*\}/, '"error":{"code":-32601,"message":"no ping"}'),
  ],
  ['response-id', request => asks(request, 'prompts/list') && edit(/"id":(\d+)/, '"id":"$1"')],
]

test.each(LEGACY_FLAWS)('a legacy server that breaks the rule %s is found out', async (rule, flaw) => {
  const report = await examineChanged(request => (isModernRequest(request) ? LEGACY_ONLY : flaw(request) || undefined))
  expect(report.server?.revision).toBe('2025-11-25')
  expect(rulesIn(report)).toContain(rule)
})

test('a session that works after DELETE is found out', async () => {
  const ended = new Set<string>()
  const report = await examineChanged(request => {
    if (isModernRequest(request)) return LEGACY_ONLY
    const id = String(request.headers['mcp-session-id'])
    if (request.method === 'DELETE') ended.add(id)
    return request.method === 'POST' && ended.has(id)
      ? { status: 200, body: () => '{"jsonrpc":"2.0","id":1,"result":{}}' }
      : undefined
  })
  expect(rulesIn(report)).toContain('session-unknown')
})

describe('no server', () => {
  test('a web page is no MCP server', async () => {
    const page = await listen((_, response) => {
      response.writeHead(404, { 'content-type': 'text/html' })
      response.end('<html><head><title>404 Not Found</title></head><body><hr>nginx</body></html>')
    })
    const report = await examineUrl(page.url)
    page.close()
    expect(report).toMatchObject({ verdict: 'not-mcp', deviations: [] })
    expect(report.failure).toContain('a web page "404 Not Found"')
  })

  test('a server at another path is named', async () => {
    const report = await examineUrl(new URL('/', gateway.url).href)
    expect(report).toMatchObject({
      verdict: 'not-mcp',
      hint: `an MCP server answers at ${new URL('/mcp', gateway.url)}`,
    })
  })

  test.each([
    ['http://127.0.0.1:9/', /nothing listens on port 9 of 127.0.0.1/],
    ['http://no-such-host.invalid/', /no host no-such-host.invalid|could not be looked up/],
  ])('%s is unreachable', async (url, failure) => {
    const report = await examineUrl(url)
    expect(report.verdict).toBe('unreachable')
    expect(report.failure).toMatch(failure)
  })

  test('http behind https:// is said', async () => {
    const report = await examineUrl(gateway.url.replace('http:', 'https:'))
    expect(report).toMatchObject({ verdict: 'unreachable', failure: expect.stringContaining('try http://') })
  })

  test('a server that does not answer is given up', async () => {
    const silent = await listen(() => {})
    const target = { kind: 'remote', url: new URL(silent.url), headers: {} } as const
    const report = await examine(target, { ...OPTIONS, timeoutMs: 100 })
    silent.close()
    expect(report).toMatchObject({ verdict: 'unreachable', failure: 'did not answer within 0.1 s' })
  })

  test('metadata that a challenge names and that is absent is a deviation', async () => {
    const guarded = await listen((_, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="/nothing"' })
      response.end()
    })
    const report = await examineUrl(guarded.url)
    guarded.close()
    expect(rulesIn(report)).toEqual(['resource-metadata'])
  })

  test('a server that wants a login is described', async () => {
    const guarded = await listen((request, response) => {
      if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
        response.writeHead(200, { 'content-type': 'application/json' })
        return void response.end(
          '{"resource":"http://x/","authorization_servers":["https://login.example"],"scopes_supported":["mcp"]}',
        )
      }
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="mcp"' })
      response.end()
    })
    const report = await examineUrl(guarded.url)
    guarded.close()
    expect(report).toMatchObject({
      verdict: 'login-required',
      authentication: {
        status: 401,
        challenge: 'Bearer realm="mcp"',
        authorizationServers: ['https://login.example'],
        scopes: ['mcp'],
      },
    })
  })
})

describe('the servers of the seeds', () => {
  const examineAt = async (server: { origin: string; close(): Promise<unknown> }, path: string, headers = {}) => {
    const url = new URL(path, server.origin)
    const report = await examine({ kind: 'remote', url, headers }, OPTIONS).finally(() => server.close())
    return { ...report, rules: rulesIn(report) }
  }

  test('000 speaks Streamable HTTP 2024-11-05 and lacks the lists it declares', async () => {
    const report = await examineAt(await scriptedServer(graphiti().script), '/mcp/')
    expect(report.transports).toMatchObject([{ revisions: ['2024-11-05'] }, { revisions: [] }])
    expect(report.server).toMatchObject({ name: 'Graphiti Agent Memory', sessions: true, counts: { tools: 9 } })
    expect(report.rules).toEqual(expect.arrayContaining(['list-answered', 'origin']))
  })

  test('002 opens its channel without an endpoint event', async () => {
    const report = await examineAt(await serena(), '/sse')
    expect(report.transports).toMatchObject([{ revisions: [] }, { transport: 'HTTP+SSE', revisions: ['2024-11-05'] }])
    expect(report.rules).toContain('endpoint-event')
  })

  test('003 wants a token and names no challenge', async () => {
    const report = await examineAt(await kulturarv(), '/sse')
    expect(report).toMatchObject({ verdict: 'login-required', rules: ['challenge'] })
  })

  test('003 is examined with its token', async () => {
    const report = await examineAt(await kulturarv(), '/sse', { authorization: `Bearer ${TOKEN}` })
    expect(report.server).toMatchObject({ transport: 'HTTP+SSE', name: 'kulturarv-mcp-server', counts: { tools: 2 } })
  })

  test('004 answers on its stream without a handshake', async () => {
    const report = await examineAt(await hub(), '/mcp/workspace')
    expect(report.server).toMatchObject({ transport: 'HTTP+SSE', counts: { tools: 1 } })
    expect(report.rules).toEqual(expect.arrayContaining(['handshake', 'endpoint-event', 'input-schema', 'tool-name']))
  })
})

describe('a program', () => {
  const program = (script: string): DoctorTarget => ({
    kind: 'process',
    name: 'program',
    command: process.execPath,
    args: ['-e', script],
    env: {},
    cwd: undefined,
    era: 'auto',
    timeoutMs: 0,
  })

  const ANSWERS = `
    require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
      const { id, method } = JSON.parse(line)
      if (id === undefined) return
      const result = method === 'initialize'
        ? { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'small', version: '1' } }
        : method === 'ping' ? {} : undefined
      const error = result ? undefined : { code: -32601, message: 'Method not found' }
      console.log(JSON.stringify({ jsonrpc: '2.0', id, result, error }))
    })`

  test('that writes a banner to stdout is found out', async () => {
    const report = await examine(program(`console.log('Server is running');${ANSWERS}`), OPTIONS)
    expect(report.transports).toMatchObject([{ transport: 'stdio', revisions: ['2025-06-18'] }])
    expect(rulesIn(report)).toEqual(['stdout-only-messages'])
  })

  test('that leaves a request without an answer is found out', async () => {
    const silent = ANSWERS.replace(
      'if (id === undefined) return',
      'if (id === undefined || /no-such/.test(method)) return',
    )
    const report = await examine(program(silent), { ...OPTIONS, timeoutMs: 500 })
    expect(rulesIn(report)).toContain('answers-requests')
  })

  test('that goes on after its stdin was closed is found out', async () => {
    const report = await examine(program(`${ANSWERS}; setInterval(() => {}, 1000)`), OPTIONS)
    expect(rulesIn(report)).toEqual(['exits-with-stdin'])
  })

  test('that ends without an answer shows what it printed', async () => {
    const report = await examine(program(`console.error('API_KEY is missing'); process.exit(3)`), OPTIONS)
    expect(report).toMatchObject({
      verdict: 'not-mcp',
      failure: 'the process exited with code 3',
      stderr: 'API_KEY is missing',
    })
  })

  test('that does not exist is unreachable', async () => {
    const report = await examine({ ...program(''), command: 'no-such-program' } as DoctorTarget, OPTIONS)
    expect(report).toMatchObject({
      verdict: 'unreachable',
      failure: expect.stringContaining('"no-such-program" was not found'),
    })
  })
})

describe('the command', () => {
  const printed: string[] = []
  const runDoctor = async (...args: string[]): Promise<number> => {
    printed.length = 0
    const write = vi.spyOn(process.stdout, 'write').mockImplementation(text => {
      printed.push(String(text))
      return true
    })
    try {
      return await run(['doctor', ...args], {} as Programs)
    } finally {
      write.mockRestore()
    }
  }

  test('prints what was found and exits with 0', async () => {
    expect(await runDoctor(gateway.url, '--timeout', '2')).toBe(0)
    expect(printed.join('')).toContain('  Streamable HTTP   2026-07-28, 2025-11-25')
    expect(printed.join('')).toContain('It works, and no deviation from the specification was found.')
  })

  test('exits with 1 if the server breaks a MUST', async () => {
    const proxy = await startChangingProxy(gateway.url, ({ headers }) => (headers.origin ? { status: 200 } : undefined))
    expect(await runDoctor(proxy.url, '--json')).toBe(1)
    await proxy.close()
    const report = JSON.parse(printed.join('')) as DoctorReport
    expect(report.deviations).toContainEqual(expect.objectContaining({ rule: 'origin', level: 'must' }))
  })

  test('exits with 4 if there is no server', async () => {
    expect(await runDoctor('http://127.0.0.1:9/')).toBe(4)
  })

  test.each([
    [[], /expected a URL, the name of a server/],
    [['http://127.0.0.1:9/', '--timeout', 'soon'], /--timeout: expected a number of seconds/],
    [['http://127.0.0.1:9/', '--header', 'x'], /--header/],
    [['--'], /expected a command after --/],
    [['nothing'], /the configuration has no server "nothing"; it has memory, files/],
  ])('%j is invalid', async (args, message) => {
    const errors = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    expect(await runDoctor(...args)).toBe(2)
    expect(String(errors.mock.calls[0]?.[0])).toMatch(message)
    errors.mockRestore()
  })
})

test('every rule has a server that breaks it', () => {
  const here = readFileSync(import.meta.filename, 'utf8')
  expect(Object.keys(RULES).filter(rule => !here.includes(`'${rule}'`))).toEqual([])
})
