import { describe, expect, it } from 'vitest'
import type { ClientInfo, ClientList } from '../../../admin/api/clients.ts'
import { clientRows, fillSnippet, linkCommand, verdictOf } from './client-rows.ts'
import { type LoginRow, loginRows, loginVerdict, ownerOf } from './login-rows.ts'
import { OTHER_CLIENTS } from './other-clients.ts'
import { type SnippetContext, shellWord } from './snippets.ts'

const CONTEXT: SnippetContext = {
  base: 'https://gate.example',
  workspace: "it's mine",
  token: 'drg_x',
  stdio: ['/opt/my apps/node', '/opt/main.js', 'stdio'],
}

describe('snippets of other clients', () => {
  it.each(OTHER_CLIENTS.map(client => [client.id, client] as const))(
    '%s names the workspace and the token',
    (_, client) => {
      const texts = client.snippets(CONTEXT).map(({ text }) => text)
      const all = texts.join('\n')
      if (client.id !== 'stdio')
        expect(all).toMatch(/https:\/\/gate\.example\/(mcp|actions)\/it's%20mine|it'\\''s%20mine/)
      expect(all.includes('drg_x')).toBe(client.usesToken)
      const open = client.snippets({ ...CONTEXT, token: undefined }).map(({ text }) => text)
      expect(open.join('\n')).not.toMatch(/Authorization|Bearer|undefined/)
    },
  )

  it('the default workspace has the short addresses', () => {
    const urls = ['http', 'sse'].map(id =>
      OTHER_CLIENTS.find(client => client.id === id)?.snippets({ ...CONTEXT, workspace: 'default', token: undefined }),
    )
    expect(urls).toEqual([
      [{ title: 'URL', text: 'https://gate.example/mcp' }],
      [{ title: 'URL', text: 'https://gate.example/sse' }],
    ])
  })

  it('words of a shell are quoted where they must be', () => {
    expect(['a-b/c', "it's", '$(x)', ''].map(shellWord)).toEqual(['a-b/c', "'it'\\''s'", "'$(x)'", "''"])
  })

  it('the JSON of stdio parses', () => {
    const text = OTHER_CLIENTS.find(({ id }) => id === 'stdio')?.snippets(CONTEXT)[1]?.text ?? ''
    expect(JSON.parse(text).mcpServers.dragoman).toEqual({
      command: '/opt/my apps/node',
      args: ['/opt/main.js', 'stdio'],
    })
  })
})

const client = (state: Partial<NonNullable<ClientInfo['state']>>): ClientInfo => ({
  ...{ id: 'cursor', title: 'Cursor', format: 'json', entry: 'dragoman', transport: 'http', snippets: {} },
  state: { file: '/f', exists: true, links: [], others: [], ...state },
})

const PLACE = { workspace: 'default', needsToken: false, hasAuthServer: false }

describe('rows of clients', () => {
  it.each([
    [{ problem: 'broken' }, 'Cannot be changed'],
    [{ exists: false }, 'No file'],
    [{}, 'Not linked'],
    [{ others: ['dragoman'] }, 'Other server of this name'],
    [{ links: [{ name: 'a', transport: 'http', workspace: 'default', hasToken: false }] }, 'Linked'],
    [{ links: [{ name: 'a', transport: 'http', workspace: 'x', hasToken: false }] }, 'Linked to x'],
  ] as const)('%o is %s', (state, label) => {
    expect(verdictOf(client(state), PLACE)?.label).toBe(label)
  })

  it('an entry without a token is a warning where one is needed, unless the client can log in', () => {
    const linked = (transport: 'http' | 'stdio', hasToken: boolean) =>
      client({ links: [{ name: 'a', transport, workspace: 'default', hasToken }] })
    const guarded = { ...PLACE, needsToken: true }
    expect(verdictOf(linked('http', false), guarded)).toEqual({ state: 'warn', label: 'Linked without a token' })
    expect(verdictOf(linked('http', false), { ...guarded, hasAuthServer: true })?.state).toBe('ok')
    expect(verdictOf(linked('http', true), guarded)?.state).toBe('ok')
    expect(verdictOf(linked('stdio', false), guarded)?.state).toBe('ok')
  })

  it('are found by their names, and viewers are told no state', () => {
    const list = { clients: [client({})] } as unknown as ClientList
    expect(clientRows(list, ' CURS ').map(({ id }) => id)).toEqual(['cursor'])
    expect(clientRows(list, '').length).toBe(1 + OTHER_CLIENTS.length)
    expect(verdictOf({ ...client({}), state: undefined }, PLACE)).toBeUndefined()
  })

  it('have the command that does the same, and the address of the reader', () => {
    expect(linkCommand('unlink', 'cursor', 'demo', 'mine')).toBe('dragoman unlink cursor --workspace demo --name mine')
    const place = { origin: 'http://127.0.0.1:1', placeholder: 'YOUR_TOKEN' }
    expect(fillSnippet('http://127.0.0.1:1/mcp YOUR_TOKEN', place, 'https://g', 'drg_$&')).toBe('https://g/mcp drg_$&')
  })
})

describe('rows of logins', () => {
  const server = { name: 'far', url: 'https://x', isShared: false, isDemanded: true, logins: [] }
  const login = { principal: 'id1', issuer: 'https://i', scopes: [], since: 1, expires: 10, canRefresh: false }
  const principals = [
    { principal: 'local', name: 'local' },
    { principal: 'id1', name: 'laptop' },
  ]

  it('are one for each login, and one for a server without any', () => {
    const list = {
      servers: [server, { ...server, name: 'b', logins: [login, { ...login, principal: 'local' }] }],
      principals,
    }
    expect(loginRows(list, '').map(({ key }) => key)).toEqual(['far', 'b id1', 'b local'])
    expect(loginRows(list, 'id1')).toHaveLength(1)
  })

  it.each<[Partial<LoginRow>, string, string | undefined]>([
    [{}, 'Needs a login', undefined],
    [{ server: { ...server, isDemanded: false } }, 'Has not asked for one', undefined],
    [{ login }, 'Expired', 'laptop (id1)'],
    [{ login: { ...login, canRefresh: true } }, 'Logged in', 'laptop (id1)'],
    [{ login: { ...login, expires: 30, principal: 'local' } }, 'Logged in', 'User of this machine'],
    [{ server: { ...server, isShared: true }, login: { ...login, expires: undefined } }, 'Logged in', 'All callers'],
  ])('%o', (more, label, owner) => {
    const row = { key: 'k', server, ...more }
    expect(loginVerdict(row, 20).label).toBe(label)
    expect(ownerOf(row, { principals })).toBe(owner)
  })
})
