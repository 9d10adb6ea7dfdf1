import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from './load.ts'
import { ConfigError } from './problems.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, type ServerConfig, type Snapshot } from './snapshot.ts'
import type { Environment } from './variables.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-config-'))
})
afterAll(() => rm(folder, { recursive: true }))

const write = async (content: unknown): Promise<string> => {
  const file = join(folder, `${crypto.randomUUID()}.json`)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
  return file
}
const load = async (content: unknown, env: Environment = {}, flags = {}): Promise<Snapshot> =>
  loadConfig({ file: await write(content), env, flags })

const complaint = async (content: unknown, env: Environment = {}): Promise<string> => {
  const outcome = await load(content, env).catch((error: unknown) => error)
  if (outcome instanceof ConfigError) return outcome.message
  throw outcome instanceof Error ? outcome : new Error('accepted')
}
const server = async (entry: object, env: Environment = {}): Promise<ServerConfig | undefined> =>
  (await load({ mcpServers: { it: entry } }, env)).servers.get('it')
const serverComplaint = (entry: unknown): Promise<string> => complaint({ mcpServers: { it: entry } })

const workspaces = (snapshot: Snapshot): Record<string, readonly string[]> =>
  Object.fromEntries([...snapshot.workspaces].map(([name, workspace]) => [name, workspace.servers]))

const REMOTE = { url: 'http://127.0.0.1:1/mcp' }

describe('without a file', () => {
  it('serves a memory and the files of the current directory, under their own names', async () => {
    const snapshot = await loadConfig({ env: {} })
    expect(snapshot.listen).toEqual(DEFAULT_LISTEN)
    expect(snapshot.limits).toEqual(DEFAULT_LIMITS)
    expect([...snapshot.servers.values()]).toEqual([
      { name: 'memory', disabled: false, kind: 'builtin', builtin: 'memory', tenant: 'workspace', group: 'main' },
      { name: 'files', disabled: false, kind: 'builtin', builtin: 'files', root: process.cwd() },
    ])
    expect(workspaces(snapshot)).toEqual({ default: ['memory', 'files'] })
    expect(snapshot.workspaces.get('default')?.names).toBe('plain')
    expect(snapshot.warnings).toEqual([])
  })

  it('serves the demo when asked', async () => {
    const snapshot = await loadConfig({ env: {}, demo: true })
    expect([...snapshot.servers.keys()]).toEqual(['demo'])
    expect(workspaces(snapshot)).toEqual({ default: ['demo'] })
  })

  it('takes host and port from flags', async () => {
    const { listen, warnings } = await loadConfig({ env: {}, flags: { host: '::1', port: 0 } })
    expect(listen).toMatchObject({ host: '::1', port: 0 })
    expect(warnings).toEqual([])
  })
})

describe('a file of another client', () => {
  it('works unchanged, and every server has a workspace', async () => {
    const snapshot = await load(
      {
        theme: 'dark',
        mcpServers: {
          files: { command: 'npx', args: ['-y', 'some-server'], env: { KEY: '${KEY}', DEBUG: 1 }, cwd: '/tmp' },
          github: {
            url: 'https://example.test/mcp',
            headers: { Authorization: 'Bearer ${TOKEN}' },
            alwaysAllow: [],
            icon: 'x',
          },
          gemini: { httpUrl: 'https://example.test/g', timeout: 5000, trust: true },
          old: { type: 'sse', url: 'http://127.0.0.1:9121/sse' },
          off: { type: 'streamable-http', url: 'https://example.test/off', disabled: true },
          demo: { builtin: 'demo' },
        },
      },
      { TOKEN: 's3cret', KEY: 'k3y' },
    )
    expect(snapshot.servers.get('github')).toEqual({
      name: 'github',
      disabled: false,
      kind: 'remote',
      url: 'https://example.test/mcp',
      type: 'auto',
      headers: { authorization: 'Bearer s3cret' },
      oauth: false,
      era: 'auto',
      timeoutMs: 300_000,
    })
    expect(snapshot.servers.get('gemini')).toMatchObject({ type: 'http', timeoutMs: 5000 })
    expect(snapshot.servers.get('off')).toMatchObject({ disabled: true, type: 'http' })
    expect(snapshot.servers.get('demo')).toMatchObject({ kind: 'builtin', builtin: 'demo' })
    expect(snapshot.servers.get('files')).toEqual({
      name: 'files',
      disabled: false,
      kind: 'process',
      command: 'npx',
      args: ['-y', 'some-server'],
      env: { KEY: 'k3y', DEBUG: '1' },
      cwd: '/tmp',
      era: 'auto',
      timeoutMs: 300_000,
    })
    expect(snapshot.servers.get('old')).toEqual({
      name: 'old',
      disabled: false,
      kind: 'remote',
      url: 'http://127.0.0.1:9121/sse',
      type: 'sse',
      headers: {},
      era: 'auto',
      timeoutMs: 300_000,
    })
    expect(workspaces(snapshot).default).toEqual(['files', 'github', 'gemini', 'old', 'demo'])
    expect(snapshot.workspaces.get('default')?.names).toBe('prefix')
    expect(snapshot.workspaces.get('github')?.names).toBe('plain')
    expect(Object.keys(workspaces(snapshot))).toEqual(['default', 'files', 'github', 'gemini', 'old', 'off', 'demo'])
    expect(snapshot.warnings).toEqual([
      'ignored keys that are not ours: "theme"',
      'mcpServers.github: ignored keys that are not ours: "icon"',
      'mcpServers.gemini: "trust" is ignored: the client asks before a tool is called, not the gateway',
    ])
    expect(JSON.stringify(snapshot.warnings)).not.toContain('s3cret')
  })

  it('puts every server that is not disabled into default, independent of the variables that are set', async () => {
    const mcpServers = {
      off: { ...REMOTE, disabled: true },
      first: { url: 'http://${HOST}/' },
      second: REMOTE,
    }
    expect(workspaces(await load({ mcpServers })).default).toEqual(['first', 'second'])
    expect(workspaces(await load({ mcpServers }, { HOST: 'a' })).default).toEqual(['first', 'second'])
    expect(workspaces(await load({ mcpServers: { local: { command: 'x' } } })).default).toEqual(['local'])
    expect(workspaces(await load({ mcpServers: { off: mcpServers.off } })).default).toEqual(['off'])
  })

  it('leaves the name default to a server that is called so', async () => {
    const snapshot = await load({ mcpServers: { a: REMOTE, default: REMOTE } })
    expect(workspaces(snapshot)).toEqual({ default: ['default'], a: ['a'] })
  })

  it('gives names that cannot stand in a URL one that can, each its own', async () => {
    const snapshot = await load({
      mcpServers: {
        'My Server': REMOTE,
        'My-Server': REMOTE,
        'My/Server': REMOTE,
        'é€': REMOTE,
        ' default ': REMOTE,
        ['x'.repeat(80)]: REMOTE,
      },
    })
    expect(workspaces(snapshot)).toEqual({
      default: ['My Server', 'My-Server', 'My/Server', 'é€', ' default ', 'x'.repeat(80)],
      'My-Server': ['My-Server'],
      'My-Server-2': ['My Server'],
      'My-Server-3': ['My/Server'],
      server: ['é€'],
      'default-2': [' default '],
      ['x'.repeat(64)]: ['x'.repeat(80)],
    })
  })

  it.each([
    [{ mcpServers: {} }, 'line 2: mcpServers: names no server: add one with "dragoman add", or write'],
    [{ servers: {}, theme: 'dark' }, 'names no server'],
    [{ listen: { port: 1 } }, 'line 1: names no server'],
  ])('is wrong where it names no server: %j', async (content, message) => {
    expect(await complaint(content)).toContain(message)
  })

  it('serves what is served without a file where it says so', async () => {
    const snapshot = await load({ mcpServers: 'default', limits: { batchSize: 5 } })
    expect(workspaces(snapshot)).toEqual({ default: ['memory', 'files'] })
    expect(snapshot.limits.batchSize).toBe(5)
    expect(snapshot.warnings).toEqual([])
  })

  it('stays short about the many settings of other programs', async () => {
    const settings = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`setting number ${index}`, index]))
    const { warnings } = await load({ ...settings, mcpServers: { it: REMOTE } })
    expect(warnings).toEqual([
      expect.stringMatching(/^ignored keys that are not ours: .*"setting number 7" and 22 more$/),
    ])
  })

  it('asks whether a near miss was meant', async () => {
    const snapshot = await load({
      workspace: {},
      context_servers: {},
      mcpServers: { it: { ...REMOTE, header: {} } },
    })
    expect(snapshot.warnings).toEqual([
      'unknown key "workspace" is ignored; did you mean "workspaces"?',
      'unknown key "context_servers" is ignored; did you mean "mcpServers"?',
      'mcpServers.it: unknown key "header" is ignored; did you mean "headers"?',
    ])
  })

  it('warns of a timeout that was probably meant in seconds, and of a server written twice', async () => {
    const { warnings } = await load(
      '{"mcpServers": {"a": {"url": "http://x/", "timeout": 60}, "a": {"url": "http://y/", "timeout": 60}}}',
    )
    expect(warnings).toEqual([
      'mcpServers.a is written twice; the last one is used',
      expect.stringContaining('were seconds meant?'),
    ])
  })
})

describe('a server entry', () => {
  it.each(['http', 'streamable-http', 'streamableHttp', 'streamable_http'])(
    'of type %s is Streamable HTTP',
    async type => {
      expect(await server({ ...REMOTE, type })).toMatchObject({ kind: 'remote', type: 'http' })
    },
  )

  it('lets the channel of a server name an endpoint elsewhere only where the file says so', async () => {
    expect(await server({ ...REMOTE, type: 'sse' })).not.toHaveProperty('allowCrossOriginEndpoint')
    expect(await server({ ...REMOTE, allowCrossOriginEndpoint: true })).toMatchObject({
      type: 'auto',
      allowCrossOriginEndpoint: true,
    })
  })

  it('with a command is started here, with its variables filled in and its limits completed', async () => {
    const given = {
      type: 'stdio',
      command: '${TOOLS:-/opt}/server',
      args: ['--key', '${KEY}'],
      cwd: '${HOME}',
      limits: { memoryBytes: 1e9 },
    }
    expect(await server(given, { KEY: 'k3y', HOME: '/home/a' })).toMatchObject({
      kind: 'process',
      command: '/opt/server',
      args: ['--key', 'k3y'],
      env: {},
      cwd: '/home/a',
      limits: { idleMs: 300_000, lifetimeMs: 0, memoryBytes: 1e9, processes: 64, exitMs: 2000, termMs: 2000 },
    })
    expect(await server({ ...given, env: { A: '${B}' } })).toMatchObject({
      kind: 'unavailable',
      reason:
        'env.A: the variable B is not set; args[1]: the variable KEY is not set; cwd: the variable HOME is not set',
    })
  })

  it('keeps the era it names', async () => {
    expect(await server({ ...REMOTE, era: 'legacy' })).toMatchObject({ era: 'legacy' })
  })

  it('with a variable that is not set is unavailable, names it, and stops nothing else', async () => {
    const snapshot = await load({
      mcpServers: { a: { url: '${BASE}/mcp', headers: { 'X-Key': 'abc${KEY}' } }, b: REMOTE },
    })
    expect(snapshot.servers.get('a')).toEqual({
      name: 'a',
      disabled: false,
      kind: 'unavailable',
      reason: 'url: the variable BASE is not set; headers.X-Key: the variable KEY is not set',
    })
    expect(snapshot.servers.get('b')).toMatchObject({ kind: 'remote' })
  })

  it('is unavailable where a variable holds something unusable, without showing it', async () => {
    const bad = await server(
      { url: 'http://${HOST}/', headers: { a: '${KEY}' } },
      { HOST: 'se cret', KEY: 'se\u0000cret' },
    )
    expect(bad).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringMatching(/url, .*not a valid URL.*headers\.a, .*cannot be sent/),
    })
    expect(JSON.stringify(bad)).not.toContain('cret')
  })

  it('takes secrets out of files beside the configuration, and says what is wrong with one, never what is in it', async () => {
    await writeFile(join(folder, 'key'), 's3cret\n\n')
    await writeFile(join(folder, 'huge'), 'x'.repeat(70_000))
    expect(await server({ command: 'x', env: { KEY: '${file:key}', ABS: `\${file:${folder}/key}` } })).toMatchObject({
      env: { KEY: 's3cret\n', ABS: 's3cret\n' }, // one line break belongs to the file
    })
    expect(await server({ ...REMOTE, headers: { a: 'Bearer ${file:./key}' } })).toMatchObject({
      headers: { a: 'Bearer s3cret' },
    })
    expect(await server({ command: '${file:missing}', args: ['${file:key}'] })).toEqual({
      name: 'it',
      disabled: false,
      kind: 'unavailable',
      reason: 'command: the file missing cannot be read: there is no such file',
    })
    expect(await server({ command: '${file:.}' })).toMatchObject({ reason: expect.stringContaining('a directory') })
    expect(await server({ command: '${file:huge}' })).toMatchObject({ reason: expect.stringContaining('64 KiB') })
  })

  it('takes a bound on calls at the same time', async () => {
    expect(await server({ ...REMOTE, concurrency: 3 })).toMatchObject({ concurrency: 3 })
    expect(await serverComplaint({ ...REMOTE, concurrency: 0 })).toContain(
      'mcpServers.it.concurrency: expected a whole',
    )
  })

  it('takes the label of the replicas that a server runs on', async () => {
    expect(await server({ ...REMOTE, on: 'gpu' })).toMatchObject({ on: 'gpu' })
    expect(await server({ command: 'x', on: 'eu-1.gpu' })).toMatchObject({ on: 'eu-1.gpu' })
    for (const on of ['', 'a b', 3, ['gpu'], 'x'.repeat(65)])
      expect(await serverComplaint({ ...REMOTE, on })).toContain('mcpServers.it.on: expected')
  })

  it('drops the line break at the end of a secret, and headers the gateway sets itself', async () => {
    const snapshot = await load(
      {
        mcpServers: { it: { ...REMOTE, headers: { 'X-Key': '${KEY}', Accept: '*/*', 'Content-Type': 'text/plain' } } },
      },
      { KEY: 'abc\n' },
    )
    expect(snapshot.servers.get('it')).toMatchObject({ headers: { 'x-key': 'abc' } })
    expect(snapshot.warnings).toEqual([
      'mcpServers.it.headers.Accept: ignored, the gateway sets it itself',
      'mcpServers.it.headers.Content-Type: ignored, the gateway sets it itself',
    ])
  })

  it.each<[unknown, string]>([
    [
      {},
      'mcpServers.it: needs "url" for a remote server, "command" for a local one, "openapi" for a REST API, or "builtin"',
    ],
    [{ serverURI: 'http://x/', commnd: 'x' }, '(it has "commnd": did you mean "command"?)'],
    [{ url: 'http://x/', command: 'x' }, 'mcpServers.it: has "url" and "command"; keep only one of them'],
    [{ url: 'http://x/', builtin: 'demo' }, 'has "url" and "builtin"'],
    [{ command: 'x', env: { 'A=B': 'c' } }, 'mcpServers.it.env["A=B"]: not a valid name of a variable'],
    [{ command: 'x', limits: { idleMS: 1 } }, 'mcpServers.it.limits.idleMS: unknown key; did you mean "idleMs"?'],
    [
      { builtin: 'memory', memory: { tenent: 'x' } },
      'mcpServers.it.memory.tenent: unknown key; did you mean "tenant"?',
    ],
    [{ command: 'x', limits: { processes: 0 } }, 'mcpServers.it.limits.processes: expected a whole number from 1 up'],
    [{ url: '/mcp' }, 'mcpServers.it.url: not a valid URL'],
    [{ httpUrl: 'ftp://x/' }, 'mcpServers.it.httpUrl: expected a URL with http:// or https://'],
    [{ url: 'http://me:pass@x/' }, 'use "headers"'],
    [{ url: 3 }, 'mcpServers.it.url: expected a string'],
    [{ type: 'stdio', url: 'http://x/' }, 'has type "stdio" but "url"'],
    [{ type: 'http', command: 'x' }, 'has type "http" but "command"'],
    [{ ...REMOTE, type: 'carrier pigeon' }, 'mcpServers.it.type: expected one of "http", "streamable-http"'],
    [{ ...REMOTE, era: 'new' }, 'mcpServers.it.era: expected one of "auto", "modern", "legacy"'],
    [{ ...REMOTE, type: 'sse', era: 'modern' }, 'mcpServers.it.era: type "sse" is older than the modern era'],
    [{ builtin: 'dmeo' }, 'mcpServers.it.builtin: expected one of "demo"'],
    [{ ...REMOTE, timeout: '5s' }, 'mcpServers.it.timeout: expected a whole number from 1 to'],
    [{ ...REMOTE, disabled: 'no' }, 'mcpServers.it.disabled: expected true or false'],
    [{ ...REMOTE, headers: { 'a b': 'x' } }, 'mcpServers.it.headers["a b"]: not a valid HTTP header name'],
    [{ ...REMOTE, headers: { a: 'x\u0000' } }, 'mcpServers.it.headers.a: holds a character'],
    [{ ...REMOTE, headers: { a: 1 } }, 'mcpServers.it.headers.a: expected a string'],
    [{ ...REMOTE, headers: [] }, 'mcpServers.it.headers: expected an object of strings'],
    [{ command: 'x', args: 'y' }, 'mcpServers.it.args: expected an array of strings'],
    [null, 'mcpServers.it: expected an object'],
    ['http://x/', 'mcpServers.it: expected an object'],
  ])('like %j is wrong', async (entry, message) => {
    expect(await serverComplaint(entry)).toContain(message)
  })
})

describe('our own sections', () => {
  it('are taken over, flags before file before defaults', async () => {
    const content = {
      $schema: 'x',
      mcpServers: 'default',
      listen: { host: '0.0.0.0', port: 9000, allowedHosts: ['gate.test'], allowedOrigins: ['https://app.test'] },
      limits: { batchSize: 5 },
    }
    const snapshot = await load(content, {}, { port: 0 })
    expect(snapshot.listen).toEqual({ ...DEFAULT_LISTEN, ...content.listen, port: 0 })
    expect(snapshot.limits).toEqual({ ...DEFAULT_LIMITS, batchSize: 5 })
    expect(workspaces(snapshot)).toEqual({ default: ['memory', 'files'] })
  })

  it('say who may come in, and how often', async () => {
    const { auth, limits } = await load({
      mcpServers: 'default',
      auth: { required: true },
      limits: { rate: { perPrincipal: 20, perWorkspace: { perSecond: 100, burst: 0 } } },
    })
    expect(auth).toEqual({ required: true })
    expect(limits.rate).toEqual({
      perPrincipal: { perSecond: 20, burst: 20 },
      perWorkspace: { perSecond: 100, burst: 0 },
    })
    const nothingSaid = await load({ mcpServers: 'default' })
    expect(nothingSaid.auth).toEqual({})
    expect(nothingSaid.limits.rate).toBeUndefined()
  })

  it('say how SSE channels give their address', async () => {
    expect((await load({ mcpServers: 'default', sse: { endpoint: 'absolute' } })).sse).toEqual({ endpoint: 'absolute' })
    expect((await load({ mcpServers: 'default' })).sse).toEqual({ endpoint: 'relative' })
    expect((await load({ mcpServers: 'default', sse: { events: ['ping'] } })).sse).toEqual({
      endpoint: 'relative',
      events: ['ping'],
    })
  })

  it('choose the workspaces, and warn of a server in none', async () => {
    const snapshot = await load({ mcpServers: { a: REMOTE, b: REMOTE }, workspaces: { 'code.v1': { servers: ['b'] } } })
    expect(workspaces(snapshot)).toEqual({ 'code.v1': ['b'] })
    expect(snapshot.warnings).toEqual(['mcpServers.a is in no workspace and cannot be reached'])
    const off = { ...REMOTE, disabled: true } // which its owner wants
    const next = await load({ mcpServers: { a: off, b: REMOTE }, workspaces: { 'code.v1': { servers: ['b'] } } })
    expect(next.warnings).toEqual([])
  })

  it('can put what is served without servers behind another name', async () => {
    const snapshot = await load({ mcpServers: 'default', workspaces: { try: { servers: ['memory'] } } })
    expect(workspaces(snapshot)).toEqual({ try: ['memory'] })
    expect(snapshot.warnings).toEqual(['mcpServers.files is in no workspace and cannot be reached'])
  })

  it('say what a workspace shows of its servers, and how', async () => {
    const { workspaces: found, policies } = await load({
      mcpServers: { a: REMOTE, b: REMOTE, 'b/c': REMOTE, off: { ...REMOTE, disabled: true } },
      policies: { reading: { readOnly: true, deny: { tools: ['a/drop*'] } } },
      workspaces: {
        all: { servers: '*' },
        one: { servers: ['*'], names: 'slash', strict: true, instructions: 'Be brief.', policy: 'reading' },
        own: {
          servers: ['b', 'b', 'b/c'],
          policy: { allow: { servers: ['b'] } },
          tools: {
            'b/c/x': { name: 'z', arguments: { fixed: { repo: 'me/it' }, default: { limit: 5 } } },
            'b/y': { hidden: true },
          },
        },
      },
    })
    expect(found.get('all')).toEqual({
      name: 'all',
      servers: ['a', 'b', 'b/c'],
      names: 'prefix',
      strict: false,
      policy: { allow: {}, deny: {}, readOnly: false },
      overlays: new Map(),
    })
    const reading = { allow: {}, deny: { tools: ['a/drop*'] }, readOnly: true }
    expect(policies?.get('reading')).toEqual(reading)
    expect(found.get('one')).toMatchObject({ names: 'slash', strict: true, instructions: 'Be brief.', policy: reading })
    expect(found.get('own')).toMatchObject({ servers: ['b', 'b/c'], policy: { allow: { servers: ['b'] } } })
    expect(found.get('own')?.overlays).toEqual(
      new Map([
        ['b/c', new Map([['x', { name: 'z', hidden: false, fixed: { repo: 'me/it' }, defaults: { limit: 5 } }]])],
        ['b', new Map([['y', { hidden: true, fixed: {}, defaults: {} }]])],
      ]),
    )
  })

  it.each<[object, string]>([
    [{ listen: { prot: 1 } }, 'listen.prot: unknown key; did you mean "port"?'],
    [{ limits: { speed: 1 } }, 'limits.speed: unknown key; expected one of "bodyBytes"'],
    [{ listen: { port: 65536 } }, 'listen.port: expected a whole number from 0 to 65535'],
    [{ listen: { port: '80' } }, 'listen.port: expected a whole number from 0 to 65535'],
    [{ listen: { host: '' } }, 'listen.host: expected a host name or address'],
    [{ listen: { allowedOrigins: 'x' } }, 'listen.allowedOrigins: expected an array of strings'],
    [{ listen: { allowedOrigins: ['https://a.test/x'] } }, 'listen.allowedOrigins[0]: expected an origin like'],
    [{ listen: { allowedHosts: ['https://a.test'] } }, 'listen.allowedHosts[0]: expected a host name like'],
    [{ listen: null }, 'listen: expected an object'],
    [{ limits: { bodyBytes: 0 } }, 'limits.bodyBytes: expected a whole number from 1 up'],
    [{ auth: { require: true } }, 'auth.require: unknown key; did you mean "required"?'],
    [{ sse: { events: ['pong'] } }, 'sse.events[0]: expected one of "lifecycle", "ping"'],
    [{ sse: { endpoint: 'full' } }, 'sse.endpoint: expected one of "relative", "absolute"'],
    [{ auth: { required: 'yes' } }, 'auth.required: expected true or false'],
    [{ limits: { rate: 5 } }, 'limits.rate: expected an object'],
    [{ limits: { rate: { perUser: 5 } } }, 'limits.rate.perUser: unknown key; expected one of "perPrincipal"'],
    [{ workspaces: { w: { servers: ['missing'], policy: 'nix' } } }, 'workspaces.w.servers[0]: no server "missing"'],
    [{ workspaces: { w: { servers: ['missing'], policy: 'nix' } } }, 'workspaces.w.policy: no policy "nix"'],
    [{ limits: { rate: { perPrincipal: 0 } } }, 'limits.rate.perPrincipal: expected a whole number from 1 to 1000000'],
    [{ limits: { rate: { perPrincipal: '5' } } }, 'limits.rate.perPrincipal: expected a whole number of requests per'],
    [{ limits: { stallMs: 1e12 } }, 'limits.stallMs: expected a whole number from 1 to 2147483647'],
    [{ mcpServers: [] }, 'mcpServers: expected an object'],
    [{ workspaces: [] }, 'workspaces: expected an object'],
    [{ workspaces: {} }, 'workspaces: names no workspace'],
    [{ workspaces: { w: { servers: [] } } }, 'workspaces.w.servers: expected an array of names of servers, or "*"'],
    [{ workspaces: { w: { servers: 'demo' } } }, 'workspaces.w.servers: expected an array of names of servers, or "*"'],
    [{ workspaces: { w: { servers: '*', names: 'dots' } } }, 'workspaces.w.names: expected one of "prefix", "slash"'],
    [{ workspaces: { w: { servers: '*', policy: 'reed' } }, policies: { read: {} } }, 'did you mean "read"?'],
    [{ workspaces: { w: { servers: '*', policy: 'x' } } }, 'workspaces.w.policy: no policy "x"; there are no policies'],
    [{ workspaces: { w: { servers: '*', policy: 3 } } }, 'workspaces.w.policy: expected the name of a policy, or'],
    [{ workspaces: { w: { servers: '*', policy: { alow: {} } } } }, 'workspaces.w.policy.alow: unknown key'],
    [{ policies: { p: { alow: {} } } }, 'policies.p.alow: unknown key; did you mean "allow"?'],
    [{ policies: { p: { allow: { tools: 'x' } } } }, 'policies.p.allow.tools: expected an array of strings'],
    [{ policies: { p: { deny: { tolls: [] } } } }, 'policies.p.deny.tolls: unknown key'],
    [{ policies: [] }, 'policies: expected an object'],
    [{ workspaces: { w: { servers: '*', tools: { 'memry/x': {} } } } }, 'did you mean "memory/x"?'],
    [
      { workspaces: { w: { servers: '*', tools: { x: {} } } } },
      'workspaces.w.tools.x: expected "<server>/<tool>" with a',
    ],
    [{ workspaces: { w: { servers: '*', tools: { 'files/x': { hide: true } } } } }, 'hide: unknown key'],
    [
      { workspaces: { w: { servers: '*', tools: { 'files/x': { name: 'z' }, 'files/y': { name: 'z' } } } } },
      '"z" is the name given to "files/x" already',
    ],
    [{ workspaces: { w: { servers: ['fils'] } } }, 'workspaces.w.servers[0]: no server "fils"; did you mean "files"?'],
    [{ workspaces: { w: { servers: ['other'] } } }, 'no server "other"; expected one of "memory"'],
    [{ workspaces: { w: { server: ['demo'] } } }, 'workspaces.w.server: unknown key; did you mean "servers"?'],
    [{ workspaces: { 'a/b': { servers: ['demo'] } } }, 'workspaces["a/b"]: a workspace name is part of a URL'],
    [[], 'expected an object'],
  ])('like %j are wrong', async (content, message) => {
    expect(await complaint(content)).toContain(message)
  })
})

describe('a wrong file', () => {
  it('says everything that is wrong at once, in order, with lines, and no secrets', async () => {
    const message = await complaint(
      {
        listen: { port: 99999 },
        mcpServers: { a: { url: 'nope', headers: { authorization: 's3cret\u0000' } }, b: { command: 1 } },
        workspaces: { w: { servers: ['a'] }, x: { servers: ['c'] } },
      },
      {},
    )
    const [first, ...lines] = message.split('\n')
    expect(first).toMatch(/\.json has 5 problems:$/)
    expect(lines).toEqual([
      '  line 3: listen.port: expected a whole number from 0 to 65535',
      '  line 7: mcpServers.a.url: not a valid URL; expected something like "https://example.com/mcp"',
      '  line 9: mcpServers.a.headers.authorization: holds a character that cannot be sent in an HTTP header',
      '  line 13: mcpServers.b.command: expected a string',
      '  line 24: workspaces.x.servers[0]: no server "c"; expected one of "a", "b"',
    ])
  })

  it('says line and column where it is not JSON', async () => {
    expect(await complaint('{\n  "mcpServers": {},\n')).toMatch(
      / is not JSON: line 3, column 1: expected a key in double quotes, found the end of the file/,
    )
  })

  it('may have comments and trailing commas, and its problems still have their lines', async () => {
    expect((await load('{ // port\n"listen": { "port": 1, }, "mcpServers": "default", }')).listen.port).toBe(1)
    expect(await complaint('{ // port\n"listen": {\n/* wrong */ "port": "1", }, }')).toContain('line 3: listen.port')
  })

  it('may begin with a byte order mark', async () => {
    expect((await load('\ufeff{"listen":{"port":1},"mcpServers":"default"}')).listen.port).toBe(1)
  })

  it.each([
    ['little endian', Buffer.from('\ufeff{}', 'utf16le')],
    ['big endian', Buffer.from('\ufeff{}', 'utf16le').swap16()],
    ['little endian without a mark', Buffer.from('{ }', 'utf16le')],
  ])('that is UTF-16, %s, is named', async (_order, bytes) => {
    const file = join(folder, 'utf16.json')
    await writeFile(file, bytes)
    await expect(loadConfig({ file, env: {} })).rejects.toThrow(`${file} is UTF-16 text; save it as UTF-8`)
  })

  it('that is not there or is a folder is named', async () => {
    await expect(loadConfig({ file: join(folder, 'no.json'), env: {} })).rejects.toThrow(
      'no.json: there is no such file',
    )
    await expect(loadConfig({ file: folder, env: {} })).rejects.toThrow('it is a directory')
  })
})
