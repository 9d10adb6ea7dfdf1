import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ClientApplied, ClientList, ClientPreview } from '../../../src/admin/api/clients.ts'
import type { CreatedToken, TokenList } from '../../../src/admin/api/tokens.ts'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'

let home: string
let data: string
let gateway: Gateway
const control = { reload: () => Promise.reject(new Error('none')), restart: async () => {}, stop: () => {} }

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'dragoman-connect-'))
  data = join(home, 'data')
  await mkdir(data)
  vi.stubEnv('HOME', home)
  vi.stubEnv('XDG_CONFIG_HOME', join(home, '.config'))
  vi.spyOn(process, 'argv', 'get').mockReturnValue([process.execPath, '/opt/dragoman/dist/main.js'])
  await start({})
})
afterEach(async () => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
  await gateway.close()
  await rm(home, { recursive: true })
})

const start = async (more: object, options: object = {}): Promise<void> => {
  const value = { mcpServers: { demo: { builtin: 'demo' } }, policies: { reading: { readOnly: true } }, ...more }
  const snapshot = await loadConfig({ value, env: {}, flags: { port: 0 } })
  gateway = await startGateway(snapshot, { log: SILENT, data, control, ...options })
  await gateway.ready
}

interface Answer<T> {
  readonly status: number
  readonly body: T & { readonly error: { readonly message: string; readonly details?: Record<string, unknown> } }
}

const ask = async <T = unknown>(
  method: string,
  path: string,
  body?: object,
  secret: string | undefined = gateway.localSecret,
): Promise<Answer<T>> => {
  const response = await fetch(`${gateway.origin}/admin/${path}`, {
    method,
    headers: {
      ...(secret && { authorization: `Bearer ${secret}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

const write = async (name: string, text: string): Promise<string> => {
  const file = join(home, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  return file
}

const CURSOR = '.cursor/mcp.json'

describe('/admin/clients', () => {
  const preview = (client: string, body: object) => ask<ClientPreview>('POST', `clients/${client}/preview`, body)
  const apply = (client: string, body: object) => ask<ClientApplied>('POST', `clients/${client}/apply`, body)

  test('lists the known clients with their snippets, and to the owner what is in their files', async () => {
    await write(CURSOR, '{ "mcpServers": { "other": { "command": "x", "env": { "KEY": "s3cret" } } } }')
    const { body } = await ask<ClientList>('GET', 'clients?workspace=demo')
    expect(body).toMatchObject({ workspace: 'demo', workspaces: ['default', 'demo'], needsToken: false, isHere: true })
    const cursor = body.clients.find(({ id }) => id === 'cursor')
    expect(JSON.parse(cursor?.snippets.http ?? '')).toEqual({
      mcpServers: { 'dragoman-demo': { url: `${gateway.origin}/mcp/demo` } },
    })
    expect(cursor?.state).toMatchObject({ file: join(home, CURSOR), exists: true, links: [], others: ['other'] })
    expect(JSON.stringify(body)).not.toContain('s3cret')
    const viewer = await ask<ClientList>('GET', 'clients', undefined, '')
    expect(viewer.status).toBe(200)
    expect(viewer.body.clients.every(({ state }) => state === undefined)).toBe(true)
  })

  test('links as previewed with a backup, and unlinks again', async () => {
    const before = '{\n  // mine: s3cret\n  "mcpServers": {\n    "other": { "command": "s3cret" }\n  }\n}\n'
    const file = await write(CURSOR, before)
    const wish = { action: 'link', transport: 'http', workspace: 'demo' }
    const { body: shown } = await preview('cursor', wish)
    expect(shown).toMatchObject({ file, name: 'dragoman-demo', kind: 'new', exists: true })
    expect(JSON.stringify(shown)).not.toContain('s3cret')
    expect(shown.lines).toContainEqual({ kind: 'added', text: expect.stringContaining(`${gateway.origin}/mcp/demo`) })
    expect(await readFile(file, 'utf8')).toBe(before)
    const { status, body: done } = await apply('cursor', { ...wish, stamp: shown.stamp })
    expect([status, done.name]).toEqual([200, 'dragoman-demo'])
    expect(await readFile(done.backup ?? '', 'utf8')).toBe(before)
    expect(await readFile(file, 'utf8')).toContain('// mine: s3cret')
    const listed = await ask<ClientList>('GET', 'clients')
    expect(listed.body.clients.find(({ id }) => id === 'cursor')?.state?.links).toEqual([
      { name: 'dragoman-demo', transport: 'http', workspace: 'demo', hasToken: false },
    ])
    expect((await preview('cursor', wish)).body.kind).toBe('same')
    const undo = { action: 'unlink', workspace: 'demo' }
    const { body: removal } = await preview('cursor', undo)
    expect(removal.kind).toBe('replaces')
    expect((await apply('cursor', { ...undo, stamp: removal.stamp })).status).toBe(200)
    expect(JSON.parse((await readFile(file, 'utf8')).replace(/\/\/.*/, ''))).toEqual({
      mcpServers: { other: { command: 's3cret' } },
    })
    expect((await apply('cursor', { ...undo, stamp: removal.stamp })).body.error.message).toContain('has no entry')
  })

  test('writes a new file, readable by its user only, with a token that the preview hides', async () => {
    const { body: shown } = await preview('codex', { action: 'link', transport: 'http', token: 'drg_s3cret' })
    expect(JSON.stringify(shown)).not.toContain('s3cret')
    const wish = { action: 'link', transport: 'http', token: 'drg_s3cret', stamp: shown.stamp }
    expect((await apply('codex', wish)).body).toEqual({ file: join(home, '.codex/config.toml'), name: 'dragoman' })
    expect(await readFile(join(home, '.codex/config.toml'), 'utf8')).toContain('Authorization = "Bearer drg_s3cret"')
  })

  test('replaces another server only if it is told to', async () => {
    const file = await write(CURSOR, '{ "mcpServers": { "dragoman": { "command": "s3cret" } } }')
    const refused = await preview('cursor', { action: 'link' })
    expect([refused.status, refused.body.error.details]).toEqual([409, { kind: 'other' }])
    expect(refused.body.error.message).toContain(`${file} has another server "dragoman"`)
    const { body: shown } = await preview('cursor', { action: 'link', isForced: true })
    expect(shown.kind).toBe('other')
    expect(JSON.stringify(shown)).not.toContain('s3cret')
    expect((await preview('cursor', { action: 'link', name: 'mine' })).body).toMatchObject({
      kind: 'new',
      name: 'mine',
    })
  })

  test.each([
    ['emacs', { action: 'link' }, 404, '"emacs" is not a known client'],
    ['x'.repeat(10_000), { action: 'link' }, 404, 'is not a known client'],
    ['cursor', {}, 400, 'action'],
    ['cursor', { action: 'delete' }, 400, 'action'],
    ['cursor', { action: 'link', file: '/etc/passwd' }, 400, 'file'],
    ['cursor', { action: 'link', workspace: 'x'.repeat(10_000) }, 404, 'There is no workspace'],
    ['cursor', { action: 'link', workspace: 'dmeo' }, 404, 'did you mean "demo"?'],
    ['cursor', { action: 'link', name: '../x' }, 422, 'The name of the entry'],
    ['cursor', { action: 'link', name: '__proto__' }, 422, 'The name of the entry'],
    ['cursor', { action: 'link', name: 'x'.repeat(10_000) }, 422, 'The name of the entry'],
    ['cursor', { action: 'link', transport: 'http', token: 'a"b' }, 422, 'The token: expected letters'],
    ['cursor', { action: 'link', transport: 'http', token: 'a\nb' }, 422, 'The token: expected letters'],
    ['claude-desktop', { action: 'link', transport: 'http' }, 422, 'Claude Desktop supports only stdio'],
  ])('%s %o is refused', async (client, body, status, message) => {
    const answer = await preview(client, body)
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(message)])
  })

  test('leaves files alone that are broken, read-only, linked elsewhere, or changed since the preview', async () => {
    await write('.gemini/settings.json', '{ "mcpServers": ')
    expect((await preview('gemini', { action: 'link' })).body.error.message).toContain('is not JSON: line 1')
    await write('.codex/config.toml', 'model = ')
    expect((await preview('codex', { action: 'link' })).body.error.message).toContain('is not TOML: line 1')

    const file = await write(CURSOR, '{}')
    const { stamp } = (await preview('cursor', { action: 'link' })).body
    await chmod(file, 0o444)
    const readOnly = await apply('cursor', { action: 'link', stamp })
    expect([readOnly.status, readOnly.body.error.message]).toEqual([422, expect.stringContaining('is read-only')])
    await chmod(file, 0o644)
    await writeFile(file, '{ }')
    const changed = await apply('cursor', { action: 'link', stamp })
    expect([changed.status, changed.body.error.details]).toEqual([409, { kind: 'changed' }])

    await rm(file)
    const elsewhere = await write('elsewhere.json', '{}')
    await symlink(elsewhere, file)
    const linked = await apply('cursor', { action: 'link', stamp })
    expect([linked.status, linked.body.error.message]).toEqual([422, expect.stringContaining('is a symbolic link to')])
    expect(await readFile(elsewhere, 'utf8')).toBe('{}')
    expect((await readdir(join(home, '.cursor'))).filter(name => name.endsWith('.bak'))).toEqual([])
  })

  test('changes files for a caller on another machine only if it names this one', async () => {
    const { stamp } = (await preview('cursor', { action: 'link' })).body
    const send = (body: object) =>
      new Promise<{ status: number; text: string }>((resolve, reject) => {
        const sent = httpRequest(
          `${gateway.origin}/admin/clients/cursor/apply`,
          {
            method: 'POST',
            headers: {
              authorization: `Bearer ${gateway.localSecret}`,
              'content-type': 'application/json',
              'x-forwarded-for': '203.0.113.5', // a proxy has forwarded it
            },
          },
          async response => {
            let text = ''
            for await (const chunk of response) text += String(chunk)
            resolve({ status: response.statusCode ?? 0, text })
          },
        )
        sent.on('error', reject).end(JSON.stringify(body))
      })
    const refused = await send({ action: 'link', stamp })
    expect([refused.status, refused.text]).toEqual([
      409,
      expect.stringContaining(JSON.stringify(hostname()).slice(1, -1)),
    ])
    await expect(readFile(join(home, CURSOR))).rejects.toThrow('ENOENT')
    expect((await send({ action: 'link', stamp, machine: hostname() })).status).toBe(200)
  })

  test('is for the owner, apart from the list', async () => {
    for (const path of ['preview', 'apply'])
      expect((await ask('POST', `clients/cursor/${path}`, { action: 'link', stamp: '' }, '')).status).toBe(403)
  })
})

describe('/admin/tokens', () => {
  const list = async () => (await ask<TokenList>('GET', 'tokens')).body
  const create = (body: object) => ask<CreatedToken>('POST', 'tokens', body)
  const callMcp = (secret: string, workspace = '') =>
    fetch(`${gateway.origin}/actions/${workspace}openapi.json`, { headers: { authorization: `Bearer ${secret}` } })

  test('the first token turns authentication on, works at once, and is listed without its secret', async () => {
    expect(await list()).toMatchObject({ tokens: [], isFirst: true, isRequired: false, policies: ['reading'] })
    const { status, body } = await create({ name: 'laptop', workspaces: ['demo'], policy: 'reading', expires: '30d' })
    expect(status).toBe(200)
    expect(body.secret).toMatch(/^drg_/)
    expect((await callMcp(body.secret, 'demo/')).status).toBe(200)
    expect((await callMcp('', 'demo/')).status).toBe(401)
    const after = await list()
    expect(after).toMatchObject({ isFirst: false, isRequired: true })
    expect(after.tokens).toMatchObject([
      { name: 'laptop', workspaces: ['demo'], policy: 'reading', role: 'none', isExpired: false },
    ])
    expect(after.tokens[0]?.lastUsed).toBeDefined()
    expect(JSON.stringify(after)).not.toContain(body.secret)
    expect(JSON.stringify(after)).not.toContain('hash')
    expect(await readFile(join(data, 'tokens.json'), 'utf8')).not.toContain(body.secret)
  })

  test('a revoked token is refused at once, and nothing turns authentication off', async () => {
    const { body } = await create({ name: 'laptop' })
    expect((await callMcp(body.secret)).status).toBe(200)
    expect((await ask('DELETE', `tokens/${body.token.id}`)).status).toBe(200)
    expect((await callMcp(body.secret)).status).toBe(401)
    expect(await list()).toMatchObject({ tokens: [], isFirst: false, isRequired: true })
    const again = await ask('DELETE', `tokens/${body.token.id}`)
    expect([again.status, again.body.error.message]).toEqual([404, expect.stringContaining('There is no token')])
  })

  test('a stream that was opened with a token ends when it is revoked', async () => {
    const { body } = await create({ name: 'streaming' })
    const { body: stream } = await fetch(`${gateway.origin}/sse`, {
      headers: { authorization: `Bearer ${body.secret}`, accept: 'text/event-stream' },
    })
    const reader = stream?.getReader()
    expect((await reader?.read())?.done).toBe(false)
    await ask('DELETE', `tokens/${body.token.id}`)
    const ended = async (): Promise<true> => {
      for (;;) if ((await reader?.read())?.done) return true
    }
    expect(await ended().catch(() => true)).toBe(true)
  })

  test.each([
    [{}, 400, 'name'],
    [{ name: 5 }, 400, 'name'],
    [{ name: '' }, 422, 'The name: expected 1 to 100 printable characters'],
    [{ name: 'x'.repeat(10_000) }, 422, 'The name: expected 1 to 100 printable characters'],
    [{ name: 'x', workspaces: ['nowhere'] }, 422, 'The workspaces: the gateway has no workspace "nowhere"'],
    [{ name: 'x', workspaces: 'demo' }, 400, 'workspaces'],
    [{ name: 'x', policy: 'raeding' }, 422, 'did you mean "reading"?'],
    [{ name: 'x', expires: '0s' }, 422, 'The lifetime: expected a time like'],
    [{ name: 'x', expires: '2020-01-01' }, 422, 'The lifetime: expected a time like'],
    [{ name: 'x', hash: 'x' }, 400, 'hash'],
  ])('%o is refused, and stores nothing', async (body, status, message) => {
    const answer = await create(body)
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(message)])
    expect(await list()).toMatchObject({ isFirst: true })
  })

  test('two tokens of one name cannot be created, not even at the same time', async () => {
    const answers = await Promise.all([create({ name: 'x' }), create({ name: 'x' })])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 422])
    expect((await list()).tokens).toHaveLength(1)
  })

  test('a lifetime ends, and the list says so', async () => {
    await create({ name: 'short', expires: '1s' })
    expect((await list()).tokens).toMatchObject([{ isExpired: false }])
    await vi.waitFor(async () => expect((await list()).tokens).toMatchObject([{ isExpired: true }]), 3000)
  })

  test('a gateway that admits all callers says that a token would have no effect', async () => {
    await gateway.close()
    await start({}, { insecure: true })
    expect((await list()).unusable).toContain('--insecure')
    const refused = await create({ name: 'x' })
    expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining('no effect')])
    await gateway.close()
    await start({}, { data: undefined })
    expect((await create({ name: 'x' })).body.error.message).toContain('no data directory')
  })

  test('is for the owner only', async () => {
    const { body } = await create({ name: 'viewer' })
    for (const secret of ['', body.secret]) {
      const status = secret === '' ? 401 : 403
      expect((await ask('GET', 'tokens', undefined, secret)).status).toBe(status)
      expect((await ask('POST', 'tokens', { name: 'x' }, secret)).status).toBe(status)
      expect((await ask('DELETE', `tokens/${body.token.id}`, undefined, secret)).status).toBe(status)
      expect((await ask('GET', 'oauth-clients', undefined, secret)).status).toBe(status)
      expect((await ask('GET', 'logins/servers', undefined, secret)).status).toBe(status)
    }
  })
})

test('/admin/oauth-clients is empty without an authorization server, and /admin/logins/servers without servers', async () => {
  expect((await ask('GET', 'oauth-clients')).body).toEqual({ isOn: false, clients: [] })
  expect((await ask('DELETE', 'oauth-clients/grant-x')).status).toBe(404)
  expect((await ask('GET', 'logins/servers')).body).toEqual({
    servers: [],
    principals: [{ principal: 'local', name: 'local' }],
  })
})
