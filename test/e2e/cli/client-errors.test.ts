import { createServer as createTlsServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startCli, startTestDaemon } from '../../support/cli.ts'
import { modern, type Script, scriptedServer } from '../../support/scripted-server.ts'

/** Self-signed, for 127.0.0.1 and this test only. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHSrQDD+GlnCPlRsq
Nn/9A2eVkgLC//s7JGxJwtmwuqyhRANCAATDKQ0InCPhI02Zun3kxBRmFuVjJzyo
PHPC84rPFkQCr6rgHetyd3t/eQY8uNeH3ji8IJgKSc0x0Aonq4+Nh+Dm
-----END PRIVATE KEY-----
`
const CERT = `-----BEGIN CERTIFICATE-----
MIIBkDCCATagAwIBAgIUJdO6a3BL6XwCu6xjLUuVx3Zw/jowCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTExNjExMzQwOFoYDzIxMjYxMDIz
MTEzNDA4WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATDKQ0InCPhI02Zun3kxBRmFuVjJzyoPHPC84rPFkQCr6rgHetyd3t/
eQY8uNeH3ji8IJgKSc0x0Aonq4+Nh+Dmo2QwYjAdBgNVHQ4EFgQUWToZw8aTBYUX
WkviQMgwWDF2dtwwHwYDVR0jBBgwFoAUWToZw8aTBYUXWkviQMgwWDF2dtwwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUC
IQD8s+Bihv/ovzXtRAnpvwWgXS8qh9vkYAO+LwljpUi01AIgbT9QZdO9jZ9MiEOj
uPVowzu+VP5CWtBGJbH0zRZajmk=
-----END CERTIFICATE-----
`

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A server that does as told; its URL. */
const scripted = async (script: Script): Promise<string> => {
  const server = await scriptedServer(script)
  closing.push(server.close)
  return server.url
}

const json = (value: object): string => JSON.stringify({ jsonrpc: '2.0', ...value })

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: 'x', version: '1' },
  },
  'tools/list': { tools: [{ name: 'run', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'done' }] },
}

/** A legacy server that never answers one method. */
const hangsIn =
  (silent: string): Script =>
  ({ method: verb, body: { id, method = '' } }, response) => {
    if (verb !== 'POST') return void response.writeHead(405).end()
    if (method === silent) return
    if (id === undefined) return void response.writeHead(202).end()
    response.setHeader('content-type', 'application/json')
    const result = RESULTS[method]
    response.end(json(result ? { id, result } : { id, error: { code: -32601, message: 'no such method' } }))
  }

/** Accepts connections and says nothing. */
const silentSocket = async (connected = () => {}): Promise<string> => {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
    connected()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/mcp`
}

const answer =
  (status: number, body: string, headers: Record<string, string> = {}): Script =>
  (_, response) =>
    void response.writeHead(status, headers).end(body)

const PAGE = answer(200, '<html><title>Welcome to nginx!</title></html>', { 'content-type': 'text/html' })

describe('a server that cannot be used', () => {
  it.each<[string, () => Promise<string> | string, number, string]>([
    [
      'an unknown host',
      () => 'http://no-such-host.invalid/mcp',
      4,
      'ENOTFOUND no-such-host.invalid (is the name right?) (while connecting)',
    ],
    [
      'a port that no program listens on',
      () => 'http://127.0.0.1:1/mcp',
      4,
      'ECONNREFUSED 127.0.0.1:1 (is it running?) (while connecting)',
    ],
    [
      'a page',
      () => scripted(PAGE),
      3,
      'answered something that is not JSON (text/html) (in the handshake)\nIs this the URL of an MCP server?',
    ],
    [
      '401',
      () => scripted(answer(401, '{"error":"who?"}', { 'www-authenticate': 'Bearer' })),
      5,
      'refused our credentials (HTTP 401: "who?"): check its "headers" (in the handshake)\nPass credentials with --token TOKEN or --header "Name: value".',
    ],
    [
      '404',
      () => scripted(answer(404, 'nothing here')),
      3,
      'answered HTTP 404: "nothing here" (is the URL right?) (in the handshake)',
    ],
    [
      'a silent port',
      silentSocket,
      4,
      'did not answer in time (in the handshake)\nWait longer with --timeout SECONDS.',
    ],
    [
      'silence after server/discover',
      () => scripted(hangsIn('server/discover')),
      4,
      'did not answer in time (in the handshake)',
    ],
    ['silence after initialize', () => scripted(hangsIn('initialize')), 4, 'did not answer in time (in the handshake)'],
    [
      'silence after tools/list',
      () => scripted(hangsIn('tools/list')),
      4,
      'did not answer tools/list within 1 s (while listing)',
    ],
    [
      'silence after tools/call',
      () => scripted(hangsIn('tools/call')),
      4,
      'did not answer tools/call within 1 s (while calling)',
    ],
  ])('%s', async (_, url, code, message) => {
    // Only for silence: what a resolver of names or a connection takes is not known.
    const timeout = /in time|within 1 s/.test(message) ? ['--timeout', '1'] : []
    const result = await runCli(['call', await url(), 'run', ...timeout])
    expect([result.code, result.stdout, result.stderr]).toEqual([code, '', expect.stringContaining(message)])
  })

  it('https without TLS, and a certificate that is not trusted', async () => {
    const plain = await scripted(PAGE)
    const wrong = await runCli(['tools', plain.replace('http:', 'https:')])
    expect([wrong.code, wrong.stderr]).toEqual([4, expect.stringContaining('is "http:" meant instead of "https:"?')])

    const server = createTlsServer({ key: KEY, cert: CERT }, (_, response) => response.end())
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => server.close())
    const { port } = server.address() as { port: number }
    const untrusted = await runCli(['tools', `https://127.0.0.1:${port}/mcp`])
    expect([untrusted.code, untrusted.stderr]).toEqual([4, expect.stringContaining('NODE_EXTRA_CA_CERTS')])
  })

  it.each<[string, string[], number, string]>([
    ['a program that does not exist', ['no-such-program'], 4, 'could not be started: "no-such-program" was not found'],
    [
      'a program that ends',
      [process.execPath, '-e', 'console.error("no key set"); process.exit(3)'],
      4,
      'exited with code 3 before it answered; it last wrote: no key set (while connecting)',
    ],
    [
      'a program that is silent',
      [process.execPath, '-e', 'setInterval(() => {}, 1000)'],
      4,
      'did not answer initialize within 0.5 s (in the handshake)',
    ],
  ])('%s', async (_, command, code, message) => {
    const timeout = message.includes('0.5 s') ? ['--timeout', '0.5'] : []
    const result = await runCli(['tools', ...timeout, '--', ...command])
    expect([result.code, result.stdout, result.stderr]).toEqual([code, '', expect.stringContaining(message)])
  })

  it.each<[string, Script, string, string]>([
    ['a legacy server', hangsIn(''), '2026-07-28', '2025-06-18'],
    ['a server of another legacy revision', hangsIn(''), '2024-11-05', '2025-06-18'],
    [
      'a modern server',
      modern(answer(400, json({ error: { code: -32022, message: 'no' } }))),
      '2025-03-26',
      '2026-07-28',
    ],
  ])('in a revision that it does not speak: %s', async (_, script, revision, spoken) => {
    const url = await scripted(script)
    const { code, stderr } = await runCli(['call', url, 'run', '--revision', revision])
    const text = `dragoman: ${url} does not speak ${revision}: it speaks ${spoken}\nLeave out --revision`
    expect([code, stderr]).toEqual([3, expect.stringContaining(text)])
  })

  it('--json prints the bytes of the result', async () => {
    const raw = '{"content":[],"big":12345678901234567890,"one":1.0,"escape":"\\u00e9"}'
    const url = await scripted((arrived, response) => {
      if (arrived.body.method !== 'tools/call') return hangsIn('')(arrived, response)
      response.setHeader('content-type', 'application/json')
      response.end(`{"jsonrpc":"2.0","id":${arrived.body.id},"result":${raw}}`)
    })
    expect(await runCli(['call', url, 'run', '--json'])).toEqual({ code: 0, stdout: `${raw}\n`, stderr: '' })
  })

  it('a JSON-RPC error is a protocol error, and --json prints it', async () => {
    const url = await scripted((arrived, response) => {
      if (arrived.body.method !== 'tools/call') return hangsIn('')(arrived, response)
      response.setHeader('content-type', 'application/json')
      response.end(json({ id: arrived.body.id, error: { code: -32000, message: 'out of paper', data: { tray: 2 } } }))
    })
    const result = await runCli(['call', url, 'run', '--json'])
    expect([result.code, JSON.parse(result.stdout), result.stderr]).toEqual([
      3,
      { error: { code: -32000, message: 'out of paper', data: { tray: 2 } } },
      'dragoman: out of paper (error -32000 while calling)\n',
    ])
  })
})

describe('Ctrl-C', () => {
  it.each<[string, (seen: () => void) => Promise<string>, string]>([
    ['connecting', seen => silentSocket(seen), 'cancelled while connecting'],
    [
      'listing',
      seen =>
        scripted((arrived, response) => {
          if (arrived.body.method === 'tools/list') seen()
          hangsIn('tools/list')(arrived, response)
        }),
      'cancelled while listing',
    ],
    [
      'calling',
      seen =>
        scripted((arrived, response) => {
          if (arrived.body.method === 'tools/call') seen()
          hangsIn('tools/call')(arrived, response)
        }),
      'cancelled while calling',
    ],
  ])('while %s ends with code 130', async (_, start, message) => {
    let cli: ReturnType<typeof startCli> | undefined
    const url = await start(() => cli?.interrupt())
    cli = startCli(['call', url, 'run'])
    expect(await cli.ended).toEqual({ code: 130, stdout: '', stderr: `dragoman: ${message}\n` })
  })
})

describe('an invalid command line', () => {
  let daemon: Awaited<ReturnType<typeof startTestDaemon>>
  beforeAll(async () => {
    daemon = await startTestDaemon({ mcpServers: { demo: { builtin: 'demo' } } })
  })
  afterAll(() => daemon.close())

  it.each<[string[], string]>([
    [['call'], 'expected dragoman call SERVER/TOOL [KEY=VALUE…]'],
    [['tools', 'a', 'b'], "Unexpected argument 'b'"],
    [['tools', '--'], 'expected the command of a server after --'],
    [['tools', 'http://user:pass@127.0.0.1/'], 'credentials do not belong in a URL; use --token or --header'],
    [['tools', 'http://['], '"http://[" is not a valid URL'],
    [['tools', '--revision', '2025-01-01'], '--revision: expected one of 2024-11-05'],
    [['tools', '--transport', 'udp'], '--transport: expected one of http, sse, stdio'],
    [['tools', 'http://127.0.0.1/', '--transport', 'stdio'], '--transport stdio needs a command after --'],
    [['tools', '--transport', 'sse', '--', 'node'], '--transport sse needs a URL; a command is used over stdio'],
    [['tools', '--timeout', 'soon'], '--timeout: expected seconds from 0 to 86400'],
    [['tools', '--header', 'nonsense'], '--header: expected "Name: value", got "nonsense"'],
    [['tools', 'dmeo'], 'there is no server "dmeo"; did you mean "demo"?'],
    [['tools', '--workspace', 'dmeo'], 'there is no workspace "dmeo"; did you mean "demo"?'],
    [['call', 'demo/example-ping', '--log-level', 'loud'], '--log-level: expected one of debug'],
    [['call', 'demo/example-ping', '--accept', '--decline'], '--accept and --decline do not go together'],
    [['call', 'demo/test_elicitation', 'message=x', '--answer', 'x'], '"x": expected key=value'],
    [['read', 'test://nowhere/else'], 'test://nowhere/else'],
    [
      ['prompt', 'demo/test_prompt_with_arguments'],
      'missing arg1, arg2\nUsage: demo/test_prompt_with_arguments(arg1, arg2)',
    ],
    [['prompt', 'demo/test_prompt_with_arguments', 'agr1=x'], 'there is no argument agr1; did you mean arg1?'],
    [
      ['complete', 'nothing://{x}', 'x=1'],
      'no server has the template nothing://{x}; there are test://template/{id}/data',
    ],
    [['watch', 'nothing'], 'expected the URI of a resource, or "lists", got "nothing"'],
    [['watch', 'test://nowhere'], 'test://nowhere'],
    [
      ['call', 'demo/example-eco', 'message=x'],
      'demo has no tool "example-eco"; did you mean demo/example-echo?\nUsage: demo/example-echo(message: string)',
    ],
    [
      ['call', 'demo/test_sampling', 'prompt=x'],
      'This needs a client that declares sampling (error -32021 while calling)\nPass --sampling-command COMMAND',
    ],
    [
      ['call', 'demo/test_input_required_result_list_roots'],
      'This needs a client that declares roots (error -32021 while calling)\nPass --root DIR',
    ],
    [['tols'], '"tols" is not a command; did you mean "tools"?'],
  ])('%j', async (args, message) => {
    const at = args.indexOf('--')
    const data = ['--data', daemon.data]
    const line = at < 0 ? [...args, ...data] : [...args.slice(0, at), ...data, ...args.slice(at)]
    const result = await runCli(args[0] === 'tols' ? args : line)
    expect([result.code > 1, result.stdout, result.stderr]).toEqual([true, '', expect.stringContaining(message)])
  })
})
