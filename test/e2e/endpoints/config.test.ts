import { chmod, lstat, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type {
  ConfigCheck,
  ConfigConflict,
  ConfigDocument,
  ConfigSaved,
  PastedServers,
  TriedServer,
} from '../../../src/admin/api/config.ts'
import { embedGateway } from '../../../src/app/embed.ts'
import type { Gateway } from '../../../src/app/gateway.ts'
import { startWithFile } from '../../support/file-gateway.ts'

const SERVER = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))

const DUAL = fileURLToPath(new URL('../../support/servers/dual-era.mjs', import.meta.url))

/** Comments, a trailing comma, CRLF and a byte order mark: all of it stays. */
const TEXT = [
  '\ufeff{',
  '  // the team',
  '  "limits": { "shutdownMs": 200 },',
  '  "mcpServers": {',
  '    "demo": { "builtin": "demo" }, // examples',
  '    // remote',
  '    "docs": {',
  '      "url": "https://docs.example.com/mcp",',
  '      "disabled": true,',
  '      "headers": { "Authorization": "Bearer literal-secret", "X-Ref": "${DOCS_KEY}" },',
  '    },',
  '  },',
  '}',
  '',
].join('\r\n')

let folder: string
let file: string
let gateway: Gateway

const request = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(`${gateway.origin}${path}`, {
    method,
    headers: {
      ...(headers.as !== 'viewer' && { authorization: `Bearer ${gateway.localSecret}` }),
      'content-type': 'application/json',
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as T }
}
type Refusal = { error: { message: string; details?: ConfigConflict & { issues?: ConfigCheck['issues'] } } }
const read = async () => (await request<ConfigDocument>('GET', '/admin/config')).body
const check = async (draft: object) => (await request<ConfigCheck>('POST', '/admin/config/check', draft)).body
const save = async <T = ConfigSaved>(draft: object, etag?: string) =>
  request<T>('PUT', '/admin/config', draft, { 'if-match': `"${etag ?? (await read()).etag}"` })
const set = (path: string[], value: unknown, before?: unknown) => ({ kind: 'set', path, value, before })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-config-'))
  file = join(folder, 'dragoman.json')
  await writeFile(file, TEXT, { mode: 0o640 })
  gateway = await startWithFile(file, folder)
})
afterAll(async () => {
  await gateway.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => writeFile(file, TEXT))
afterEach(async () => {
  await rm(file, { force: true })
  await writeFile(file, TEXT, { mode: 0o640 })
  await request('POST', '/admin/reload', {})
})

describe('GET /admin/config', () => {
  test('shows the file with its secrets hidden and its references as written', async () => {
    const { body, text, headers } = await request<ConfigDocument>('GET', '/admin/config')
    expect(body).toMatchObject({ file, issues: [], isBuiltIn: false, edit: { isAllowed: true } })
    expect(headers.get('etag')).toBe(`"${body.etag}"`)
    expect(text).not.toContain('literal-secret')
    expect(body.text).toContain('"X-Ref": "${DOCS_KEY}"')
    expect(body.text).toMatch(/"Authorization": "Bearer \$\{hidden:[0-9a-f]{10}\}"/)
  })

  test('shows viewers neither the text nor what could be a secret', async () => {
    const { status, body, text } = await request<ConfigDocument>('GET', '/admin/config', undefined, { as: 'viewer' })
    expect(status).toBe(200)
    expect(body.text).toBeUndefined()
    expect(text).not.toMatch(/literal-secret|DOCS_KEY/)
    expect(body.value).toMatchObject({ mcpServers: { docs: { url: 'https://docs.example.com/mcp' } } })
  })

  test.each([
    ['a broken file', '{\n  "mcpServers": {,}\n}', { line: 2, column: 18, message: /expected a key in double quotes/ }],
    [
      'an unknown key',
      '{"mcpServers":{"a":{"builtin":"demo"}},"limits":{"bodyByte":1}}',
      { message: /did you mean "bodyBytes"/ },
    ],
  ])('says what is wrong with %s, and keeps the configuration in use', async (_, text, issue) => {
    await writeFile(file, text)
    const { issues } = await read()
    expect(issues[0]).toMatchObject({ ...issue, message: expect.stringMatching(issue.message) })
    const reloaded = await request<Refusal>('POST', '/admin/reload', {})
    expect(reloaded.status).toBe(422)
    expect((await read()).rejected?.reason).toMatch(issue.message)
    expect(gateway.status()[0]?.servers.map(({ name }) => name)).toContain('demo')
  })

  test('says that the file was removed', async () => {
    await rm(file)
    expect((await read()).issues[0]?.message).toContain('does not exist any more')
    const { status } = await save({ edits: [set(['mcpServers', 'demo'], { builtin: 'demo' })] }, 'none')
    expect([status, await readFile(file, 'utf8')]).toEqual([200, expect.stringContaining('"builtin": "demo"')])
  })
})

describe('POST /admin/config/check', () => {
  test('names each problem with its place, and suggests what was meant', async () => {
    const edits = [
      set(['mcpServers', 'x'], { comand: 'node' }),
      set(['mcpServers', 'y'], { url: 'ftp://x' }),
      set(['workspaces', 'a b'], { servers: ['dmeo'], name: 'plain' }),
    ]
    const { issues, plan, etag } = await check({ edits })
    expect(plan).toBeUndefined()
    expect(etag).toBe((await read()).etag)
    expect(issues).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          path: ['mcpServers', 'x'],
          line: 12,
          column: 5,
          message: expect.stringContaining('did you mean "command"?'),
        }),
        expect.objectContaining({ path: ['mcpServers', 'y', 'url'], message: expect.stringContaining('http://') }),
        expect.objectContaining({
          path: ['workspaces', 'a b', 'name'],
          message: expect.stringContaining('did you mean "names"?'),
        }),
      ]),
    )
  })

  test('of text that is not JSON: the line and column', async () => {
    const { issues, value } = await check({ text: '{\n  "mcpServers": { "a" 1 }\n}' })
    expect(value).toBeUndefined()
    expect(issues).toEqual([{ path: [], line: 2, column: 23, message: 'expected ":", found "1"' }])
  })

  test('shows the plan, what it needs and whom it affects', async () => {
    const edits = [
      set(['mcpServers', 'new'], { command: 'node', env: { KEY: '${NOT_SET_ANYWHERE}' } }),
      { kind: 'remove', path: ['mcpServers', 'demo'] },
      set(['mcpServers', 'docs', 'disabled'], false),
      set(['limits', 'batchSize'], 7),
    ]
    const { plan, affected, warnings } = await check({ edits })
    expect(plan?.servers.map(({ name, kind }) => [name, kind])).toEqual([
      ['demo', 'removed'],
      ['docs', 'changed'],
      ['new', 'added'],
    ])
    expect(plan?.settings).toMatchObject([{ name: 'limits', details: [{ at: 'batchSize', to: '7' }] }])
    expect(affected).toContainEqual({ name: 'demo', effect: 'ends', sessions: 0 })
    expect(affected).toContainEqual({ name: 'default', effect: 'lists_change', sessions: 0 })
    expect(warnings.join()).toContain('new cannot be served: env.KEY: the variable NOT_SET_ANYWHERE is not set')
  })

  test('keeps a secret that the author typed as it was typed', async () => {
    const { text } = await check({ edits: [set(['mcpServers', 'docs', 'headers', 'Authorization'], 'Bearer typed')] })
    expect(text).toContain('Bearer typed')
  })

  test.each([
    ['a text of 5 MB', { text: 'x'.repeat(5_000_000) }, 413, /larger than 1048576 bytes/],
    ['no JSON', '{"text": ', 400, /not valid JSON/],
    ['an unknown member', { txt: '{}' }, 400, /"txt" is unknown/],
    ['an edit without a value', { edits: [{ kind: 'set', path: ['a'] }] }, 400, /needs "value"/],
    [
      'an edit of another kind',
      { edits: [{ kind: 'move', path: ['a'] }] },
      400,
      /must be one of "set", "remove", "rename"/,
    ],
    ['a rename without a name', { edits: [{ kind: 'rename', path: ['a'] }] }, 400, /needs "to"/],
  ])('refuses %s', async (_, body, status, message) => {
    const refused = await request<Refusal>('POST', '/admin/config/check', body)
    expect([refused.status, refused.body.error.message]).toEqual([status, expect.stringMatching(message)])
  })

  test.each([
    [{ kind: 'rename', path: ['mcpServers', 'none'], to: 'x' }, /does not exist/],
    [{ kind: 'rename', path: ['mcpServers', 'demo'], to: 'docs' }, /exists already/],
    [{ kind: 'set', path: [], value: 1 }, /needs the path/],
    [{ kind: 'set', path: ['mcpServers', '__proto__'], value: { builtin: 'demo' } }, /__proto__/],
    [{ kind: 'set', path: ['mcpServers', 'docs', 'headers', 'A'], value: '${hidden:0000000000}' }, /write it again/],
  ])('reports an edit that does not fit: %j', async (edit, message) => {
    expect((await check({ edits: [edit] })).issues[0]?.message).toMatch(message)
  })
})

describe('PUT /admin/config', () => {
  test('changes nothing beside the edit, keeps the permissions and a backup, and applies it', async () => {
    const edits = [set(['mcpServers', 'a/b'], { command: process.execPath, args: [SERVER, '{}'] })]
    const { status, body } = await save({ edits })
    expect([status, body]).toMatchObject([200, { outcome: 'applied', file, backup: `${file}.bak` }])
    expect(body.plan?.servers).toMatchObject([{ name: 'a/b', kind: 'added' }])
    const added = `    },\r\n    "a/b": {\r\n      "command": ${JSON.stringify(process.execPath)},\r\n      "args": [${JSON.stringify(SERVER)}, "{}"]\r\n    },\r\n  },\r\n}`
    expect(await readFile(file, 'utf8')).toBe(TEXT.replace('    },\r\n  },\r\n}', added))
    expect(await readFile(`${file}.bak`, 'utf8')).toBe(TEXT)
    expect((await stat(file)).mode & 0o777).toBe(0o640)
    expect((await read()).etag).toBe(body.etag)
    expect(gateway.status().flatMap(({ servers }) => servers.map(({ name }) => name))).toContain('a/b')
  })

  test('keeps hidden secrets, whether the text or a value was edited', async () => {
    const { text = '' } = await read()
    await save({ text: text.replace('"the team', 'x').replace('examples', 'many examples') })
    expect(await readFile(file, 'utf8')).toBe(TEXT.replace('examples', 'many examples'))
    const { value } = await read()
    const { docs } = value.mcpServers as Record<string, { headers: Record<string, string> }>
    const headers = { 'X-Auth': docs?.headers.Authorization, 'X-New': '1' }
    await save({ edits: [set(['mcpServers', 'docs', 'headers'], headers)] })
    expect(await readFile(file, 'utf8')).toContain('"X-Auth": "Bearer literal-secret"')
  })

  test('renames in place, and removes a server with the comment above it', async () => {
    await save({ edits: [{ kind: 'rename', path: ['mcpServers', 'docs'], to: 'manual' }] })
    expect(await readFile(file, 'utf8')).toBe(TEXT.replace('"docs"', '"manual"'))
    await save({ edits: [{ kind: 'remove', path: ['mcpServers', 'manual'] }] })
    const start = TEXT.indexOf('    // remote')
    expect(await readFile(file, 'utf8')).toBe(TEXT.slice(0, start) + TEXT.slice(TEXT.indexOf('  },\r\n}')))
  })

  test('the second of two authors is told what is in the way', async () => {
    const { etag } = await read()
    await save({ edits: [set(['mcpServers', 'demo', 'concurrency'], 5)] }, etag)
    const mine = set(['mcpServers', 'docs', 'disabled'], false, true)
    const clash = set(['mcpServers', 'demo', 'concurrency'], 9)
    const refused = await save<Refusal>({ edits: [mine, clash] }, etag)
    expect(refused.status).toBe(412)
    expect(refused.body.error.message).toContain('has changed since you read it')
    expect(refused.body.error.details).toEqual({
      etag: (await read()).etag,
      conflicts: [{ path: ['mcpServers', 'demo', 'concurrency'], now: 5, wanted: 9 }],
    })
    const merged = await save({ edits: [mine] }, refused.body.error.details?.etag)
    expect([merged.status, await readFile(file, 'utf8')]).toEqual([200, expect.stringContaining('"concurrency": 5')])
  })

  test('of two saves at the same moment only one is written', async () => {
    const { etag } = await read()
    const all = await Promise.all(
      [1, 2, 3].map(n => save({ edits: [set(['mcpServers', 'demo', 'concurrency'], n)] }, etag)),
    )
    expect(all.map(({ status }) => status).sort()).toEqual([200, 412, 412])
  })

  test('follows a link to the file', async () => {
    const real = join(folder, 'real.json')
    await writeFile(real, TEXT)
    await rm(file)
    await symlink(real, file)
    expect((await save({ edits: [set(['mcpServers', 'docs', 'timeout'], 5000)] })).status).toBe(200)
    expect(await readFile(real, 'utf8')).toContain('"timeout": 5000')
    expect((await lstat(file)).isSymbolicLink()).toBe(true)
  })

  test.runIf(process.getuid?.() !== 0)('refuses to write a file that is read-only', async () => {
    await chmod(file, 0o440)
    expect((await read()).edit).toMatchObject({ isAllowed: false, reason: expect.stringContaining('read-only') })
    const { status } = await save({ edits: [set(['mcpServers', 'docs', 'timeout'], 5000)] })
    expect(status).toBe(409)
  })

  test('says why a file cannot be written, and leaves it as it was', async () => {
    await rm(`${file}.bak`, { force: true })
    await mkdir(`${file}.bak`) // no backup can be kept
    const { status, body } = await save<Refusal>({ edits: [set(['mcpServers', 'docs', 'timeout'], 5000)] })
    await rm(`${file}.bak`, { recursive: true })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining(`${file} was not written: `)])
    expect(await readFile(file, 'utf8')).toBe(TEXT)
  })

  test('refuses what has problems, what has no If-Match, and viewers', async () => {
    const edits = [set(['mcpServers', 'x'], {})]
    const refused = await save<Refusal>({ edits })
    expect([refused.status, refused.body.error.details?.issues?.[0]?.path]).toEqual([422, ['mcpServers', 'x']])
    expect((await request('PUT', '/admin/config', { edits })).status).toBe(428)
    expect((await request('PUT', '/admin/config', { edits }, { as: 'viewer', 'if-match': '"x"' })).status).toBe(403)
    expect(await readFile(file, 'utf8')).toBe(TEXT)
  })
})

describe('POST /admin/config/try', () => {
  const tryServer = (name: string, entry: object, others: object[] = []) =>
    request<TriedServer & Refusal>('POST', '/admin/config/try', {
      name,
      edits: [set(['mcpServers', name], entry), ...others],
    })
  const program = (habits: object) => ({ command: process.execPath, args: [SERVER, JSON.stringify(habits)] })

  test('connects once, and shows what the server printed', async () => {
    const args = ['--import', 'data:text/javascript,console.error("hello from stderr")', DUAL, 'stdio']
    const { body } = await tryServer('new', { command: process.execPath, args, disabled: true })
    expect(body).toMatchObject({ state: 'ready', transport: 'stdio', tools: 2, stderr: ['hello from stderr'] })
    expect(body.revision).toMatch(/^20\d\d-/)
  })

  test('says why a server fails; mistakes elsewhere do not matter', async () => {
    const { body } = await tryServer('new', program({ stderr: 'no key', exit: 3 }), [set(['limits', 'nonsense'], 1)])
    expect(body).toMatchObject({ state: 'down', stderr: expect.arrayContaining(['no key']) })
    expect((await tryServer('new', { url: 'http://127.0.0.1:1/mcp' })).body).toMatchObject({ state: 'down' })
  })

  test('refuses an entry with problems, and a name that is not there', async () => {
    expect((await tryServer('new', { url: 'nonsense' })).body.error.message).toContain('not a valid URL')
    expect((await request('POST', '/admin/config/try', { name: 'nope' })).status).toBe(404)
  })
})

test('POST /admin/config/paste reads a text, and suggests a free name', async () => {
  const { body } = await request<PastedServers>('POST', '/admin/config/paste', {
    text: '{"mcpServers": {"demo": {"command": "npx", "args": ["x"]}}}',
  })
  expect(body).toMatchObject({ kind: 'json', servers: [{ name: 'demo-2', entry: { command: 'npx', args: ['x'] } }] })
})

test('a gateway inside another program is not changed', async () => {
  const embedded = await embedGateway({ config: file, port: 0 })
  const { origin } = new URL(embedded.url)
  const body = (await (await fetch(`${origin}/admin/config`)).json()) as ConfigDocument
  await embedded.close()
  expect(body.edit).toEqual({
    isAllowed: false,
    reason: 'The program that embeds this gateway controls its configuration.',
  })
})
