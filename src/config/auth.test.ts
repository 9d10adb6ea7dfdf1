import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { compareConfigs } from './difference.ts'
import { loadConfig } from './load.ts'

const env = { CORP_SECRET: 'corp-secret', PUBLIC: 'https://mcp.example.com', HOME: '/' }
const REST = { mcpServers: { notes: { url: 'https://notes.test/mcp' } }, policies: { reading: { readOnly: true } } }
const load = (value: object, flags?: { host: string }) =>
  loadConfig({ value: { ...REST, ...value }, env, ...(flags && { flags }) })
const loadAuth = async (auth: unknown) => (await load({ auth })).auth

const CORP = { url: 'https://login.example.com/realms/corp', grants: [{ workspaces: ['*'] }] }

describe('auth', () => {
  it('is read as a whole, with its variables', async () => {
    const { auth } = await load({
      auth: {
        issuers: {
          corp: {
            ...CORP,
            principal: 'email',
            audience: 'api://gw',
            grants: [
              { where: { groups: ['engineering', 'ops'], admin: true }, workspaces: ['notes'] },
              { where: { scope: 'read' }, workspaces: ['*'], policy: 'reading' },
            ],
            introspection: { clientId: 'rs', clientSecret: '${CORP_SECRET}' },
            clientId: 'dragoman',
            clientSecret: '${CORP_SECRET}',
          },
          github: {
            url: 'https://github.com',
            grants: [{ workspaces: ['notes'] }],
            clientId: 'Iv1',
            endpoints: {
              authorization: 'https://github.com/login/oauth/authorize',
              token: 'https://github.com/login/oauth/access_token',
              userinfo: 'https://api.github.com/user',
            },
          },
        },
        scopes: { mcp: {}, 'mcp:write': { tools: ['*/create_*', 'notes/*'] } },
        server: {
          signIn: ['token', 'corp'],
          registration: 'listed',
          clients: {
            app: { name: 'App', redirectUris: ['https://app.test/cb', 'cursor://x/y', 'http://localhost/cb'] },
          },
        },
      },
    })
    expect(auth?.issuers?.get('corp')).toEqual({
      name: 'corp',
      url: CORP.url,
      principal: 'email',
      reservedNames: ['github'],
      audience: ['api://gw'],
      grants: [
        { where: { groups: ['engineering', 'ops'], admin: [true] }, workspaces: ['notes'] },
        { where: { scope: ['read'] }, workspaces: ['*'], policy: 'reading' },
      ],
      introspection: { clientId: 'rs', clientSecret: 'corp-secret' },
      clientId: 'dragoman',
      clientSecret: 'corp-secret',
    })
    expect(auth?.issuers?.get('github')?.endpoints?.userinfo).toBe('https://api.github.com/user')
    expect([...(auth?.scopes ?? [])]).toEqual([
      ['mcp', {}],
      ['mcp:write', { tools: ['*/create_*', 'notes/*'] }],
    ])
    expect(auth?.server).toMatchObject({ signIn: ['token', 'corp'], registration: 'listed' })
    expect(auth?.server?.clients.get('app')?.redirectUris).toHaveLength(3)
  })

  it('has defaults', async () => {
    expect(await loadAuth(undefined)).toEqual({})
    expect((await loadAuth({ issuers: { corp: CORP } }))?.issuers?.get('corp')).toEqual({
      name: 'corp',
      url: CORP.url,
      grants: [{ where: {}, workspaces: ['*'] }],
    })
    expect((await loadAuth({ server: {} }))?.server).toEqual({
      signIn: ['token'],
      registration: 'open',
      clients: new Map(),
    })
  })

  const issuer = (more: object) => ({ issuers: { corp: { ...CORP, ...more } } })
  it.each<[unknown, string]>([
    [null, 'auth: expected an object'],
    [{ issuer: {} }, 'auth.issuer: unknown key; did you mean "issuers"?'],
    [{ required: false, issuers: { corp: CORP } }, 'auth.required: false contradicts "issuers" and "server"'],
    [{ required: false, server: {} }, 'auth.required: false contradicts'],
    [{ issuers: [] }, 'auth.issuers: expected an object'],
    [{ issuers: { 'a:b': CORP } }, 'auth.issuers["a:b"]: the name of an issuer has letters, digits'],
    [{ issuers: { token: CORP } }, 'and is not "token"'],
    [{ issuers: { corp: {} } }, 'auth.issuers.corp.url: expected a string'],
    [{ issuers: { corp: { url: CORP.url } } }, 'auth.issuers.corp.grants: expected a list of at least one grant'],
    [issuer({ grants: [] }), 'auth.issuers.corp.grants: expected a list of at least one grant'],
    [issuer({ grants: [{}] }), 'auth.issuers.corp.grants[0].workspaces: expected an array of strings'],
    [issuer({ grants: [{ workspaces: [] }] }), 'auth.issuers.corp.grants[0].workspaces: expected names of workspaces'],
    [
      issuer({ grants: [{ workspaces: ['nots'] }] }),
      'auth.issuers.corp.grants[0].workspaces[0]: no workspace "nots"; did you mean "notes"?',
    ],
    [
      issuer({ grants: [{ workspaces: ['*'], policy: 'read' }] }),
      'auth.issuers.corp.grants[0].policy: no policy "read"; expected one of "reading"',
    ],
    [
      issuer({ grants: [{ workspaces: ['*'], where: { a: { b: 1 } } }] }),
      'auth.issuers.corp.grants[0].where.a: expected a string, a number, true or false, or a list of them',
    ],
    [
      issuer({ grants: [{ workspaces: ['*'], were: {} }] }),
      'auth.issuers.corp.grants[0].were: unknown key; did you mean "where"?',
    ],
    [issuer({ url: 'login.example.com' }), 'auth.issuers.corp.url: expected a URL with https://, or http:// on this'],
    [issuer({ url: 'http://login.example.com' }), 'auth.issuers.corp.url: expected a URL with https://'],
    [issuer({ url: 'https://login.example.com/?a=b' }), 'auth.issuers.corp.url: expected a URL with https://'],
    [issuer({ url: 'https://me:pw@login.example.com' }), 'auth.issuers.corp.url: expected a URL with https://'],
    [issuer({ jwks: 'http://keys.example.com' }), 'auth.issuers.corp.jwks: expected a URL with https://'],
    [issuer({ audience: [] }), 'auth.issuers.corp.audience'],
    [issuer({ audience: 7 }), 'auth.issuers.corp.audience: expected an audience, or a list of them'],
    [issuer({ principal: '' }), 'auth.issuers.corp.principal: expected the name of a claim'],
    [issuer({ clientSecret: 's' }), 'auth.issuers.corp.clientSecret: goes with "clientId"'],
    [issuer({ clientId: 'a', clientSecret: '${NOT_SET}' }), 'corp.clientSecret: the variable NOT_SET is not set'],
    [issuer({ introspection: { clientId: 'x' } }), 'auth.issuers.corp.introspection.clientSecret: expected a string'],
    [
      issuer({ endpoints: { token: 'https://login.example.com/t' } }),
      'auth.issuers.corp.endpoints: needs "authorization" and "token" together',
    ],
    [issuer({ endpoints: { authorize: 'x' } }), 'auth.issuers.corp.endpoints.authorize: unknown key'],
    [
      { issuers: { corp: CORP, other: CORP } },
      'auth.issuers.other.url: is that of "corp", too; "iss" says whose token it is',
    ],
    [
      {
        issuers: {
          corp: { ...CORP, introspection: { clientId: 'a', clientSecret: 'b' } },
          other: { ...CORP, url: 'https://b.test', introspection: { clientId: 'a', clientSecret: 'b' } },
        },
      },
      'auth.issuers.other.introspection: "corp" has it already',
    ],
    [{ scopes: { 'a b': {} }, server: {} }, 'auth.scopes["a b"]: a scope has no spaces'],
    [{ scopes: { offline_access: {} }, server: {} }, 'auth.scopes.offline_access: is for clients'],
    [{ scopes: { mcp: [] } }, 'auth.scopes.mcp: expected an object'],
    [{ scopes: { mcp: { tools: [] } } }, 'auth.scopes.mcp.tools: expected patterns like "github/create_*"'],
    [{ scopes: { mcp: { tools: ['create'] } } }, 'auth.scopes.mcp.tools[0]: expected "<server>/<tool>"'],
    [{ server: true }, 'auth.server: expected an object'],
    [{ server: { signIn: [] } }, 'auth.server.signIn: expected a list with "token" or names of issuers'],
    [{ server: { signIn: ['tokn'] } }, 'auth.server.signIn[0]: no issuer "tokn"; did you mean "token"?'],
    [
      { server: { signIn: ['corp'] }, issuers: { corp: CORP } },
      'auth.server.signIn[0]: auth.issuers.corp has no "clientId"',
    ],
    [{ server: { registration: 'closed' } }, 'auth.server.registration: expected one of "open", "listed"'],
    [{ server: { registration: 'listed' } }, 'auth.server.registration: "listed" needs "clients"'],
    [{ server: { clients: { a: {} } } }, 'auth.server.clients.a.redirectUris: expected a list of at least one'],
    ...['http://app.test/cb', 'javascript:alert(1)', 'https://a.test/#x', 'cb'].map((uri): [unknown, string] => [
      { server: { clients: { a: { redirectUris: [uri] } } } },
      'auth.server.clients.a.redirectUris[0]: expected a redirect URI',
    ]),
  ])('%j is rejected', async (auth, message) => {
    await expect(load({ auth })).rejects.toThrow(message)
  })

  it('warns of scopes that no token can lack', async () => {
    expect((await load({ auth: { scopes: { mcp: {} } } })).warnings).toEqual([
      expect.stringContaining('auth.scopes: no effect without "issuers" or "server"'),
    ])
  })

  it('changes need a restart and are shown without secrets', async () => {
    const before = await load({ auth: { issuers: { corp: { ...CORP, clientId: 'a', clientSecret: 'one' } } } })
    const after = await load({ auth: { issuers: { corp: { ...CORP, clientId: 'b', clientSecret: 'two' } } } })
    expect(compareConfigs(before, after).settings).toEqual([
      {
        name: 'auth',
        kind: 'changed',
        details: [{ at: 'issuers.corp.clientId', from: 'a', to: 'b' }, { at: 'issuers.corp.clientSecret' }],
      },
    ])
  })

  it('can take a secret from a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-auth-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'secret'), 'from-a-file\n')
    const issuers = { corp: { ...CORP, clientId: 'a', clientSecret: '${file:secret}' } }
    await writeFile(join(folder, 'dragoman.json'), JSON.stringify({ ...REST, auth: { issuers } }))
    const { auth } = await loadConfig({ file: join(folder, 'dragoman.json'), env })
    expect(auth?.issuers?.get('corp')?.clientSecret).toBe('from-a-file')
  })
})

describe('listen.publicUrl', () => {
  it.each([
    ['${PUBLIC}', 'https://mcp.example.com'],
    ['https://MCP.example.com:8443/', 'https://mcp.example.com:8443'],
    ['http://localhost:8765', 'http://localhost:8765'],
  ])('%s is an origin', async (publicUrl, origin) => {
    expect((await load({ listen: { publicUrl } })).listen.publicUrl).toBe(origin)
  })

  it.each([
    'mcp.example.com',
    'http://mcp.example.com',
    'https://mcp.example.com/dragoman',
    'https://mcp.example.com?a',
    'https://me@mcp.example.com',
    'ftp://mcp.example.com',
  ])('%s is rejected', async publicUrl => {
    await expect(load({ listen: { publicUrl } })).rejects.toThrow('listen.publicUrl: expected an origin without a path')
  })

  it('may refer to variables only if they are set', async () => {
    await expect(load({ listen: { publicUrl: '${NOPE}' } })).rejects.toThrow(
      'listen.publicUrl: the variable NOPE is not',
    )
  })

  it('is needed where other machines reach the gateway, and OAuth tokens are accepted', async () => {
    const needed = /needs "listen": \{ "publicUrl": "https:.*can be reached from other machines/
    const auth = { issuers: { corp: CORP } }
    await expect(load({ auth, listen: { host: '0.0.0.0' } })).rejects.toThrow(needed)
    await expect(load({ auth }, { host: '::' })).rejects.toThrow(needed)
    await expect(load({ auth: { server: {} }, listen: { allowedHosts: ['mcp.test'] } })).rejects.toThrow(needed)
    await load({ auth, listen: { host: '0.0.0.0', publicUrl: '${PUBLIC}' } })
    await load({ auth, listen: { host: '0.0.0.0' } }, { host: '127.0.0.1' })
    await load({ listen: { host: '0.0.0.0' } })
  })
})
