import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MCP_CLIENTS, type UserPlace } from './client-files.ts'
import { convertEntry } from './convert-entry.ts'
import { clientFile } from './edit-client.ts'
import { readClients } from './read-clients.ts'

let folder: string
let place: UserPlace
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-clients-'))
  place = { env: {}, home: join(folder, 'home'), platform: 'linux', folder: join(folder, 'project') }
})
afterEach(() => rm(folder, { recursive: true }))

const write = async (name: string, content: unknown): Promise<void> => {
  const file = join(folder, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
}

describe('the files of clients', () => {
  it.each<[NodeJS.Platform, string, string]>([
    ['darwin', 'claude-desktop', '/h/Library/Application Support/Claude/claude_desktop_config.json'],
    ['linux', 'claude-desktop', '/h/.config/Claude/claude_desktop_config.json'],
    ['linux', 'claude-code', '/h/.claude.json'],
    ['linux', 'cursor', '/h/.cursor/mcp.json'],
    ['linux', 'vscode', '/h/.config/Code/User/mcp.json'],
    ['darwin', 'vscode', '/h/Library/Application Support/Code/User/mcp.json'],
    ['linux', 'windsurf', '/h/.codeium/windsurf/mcp_config.json'],
    ['linux', 'gemini', '/h/.gemini/settings.json'],
    ['linux', 'codex', '/h/.codex/config.toml'],
    ['linux', 'zed', '/h/.config/zed/settings.json'],
  ])('on %s, that of %s is %s', (platform, client, file) => {
    expect(MCP_CLIENTS[client]?.userFiles({ env: {}, home: '/h', platform, folder: '/' })[0]).toBe(file)
  })

  it('follow the variables of the clients', () => {
    const env = { CODEX_HOME: '/c', CLAUDE_CONFIG_DIR: '/d', CLINE_MCP_SETTINGS_PATH: '/e.json', APPDATA: '/a' }
    const first = (client: string) =>
      MCP_CLIENTS[client]?.userFiles({ env, home: '/h', platform: 'win32', folder: '/' })[0]
    expect(['codex', 'claude-code', 'cline', 'claude-desktop'].map(first)).toEqual([
      '/c/config.toml',
      '/d/.claude.json',
      '/e.json',
      '/a/Claude/claude_desktop_config.json',
    ])
  })

  it('of a project are those in its folder; a client without any says so', async () => {
    const { cursor, windsurf } = MCP_CLIENTS
    expect(cursor && (await clientFile(cursor, place, true))).toBe(join(place.folder, '.cursor/mcp.json'))
    await expect(windsurf && clientFile(windsurf, place, true)).rejects.toThrow('Windsurf has no file for a project')
  })
})

describe('convertEntry', () => {
  it.each<[string, object, object]>([
    [
      'codex',
      {
        url: 'https://x/',
        bearer_token_env_var: 'TOK',
        env_http_headers: { 'X-A': 'A' },
        http_headers: { b: 'c' },
        tool_timeout_sec: 90,
      },
      { url: 'https://x/', headers: { b: 'c', 'X-A': '${A}', Authorization: 'Bearer ${TOK}' }, timeout: 90_000 },
    ],
    [
      'codex',
      { command: 'x', args: ['y'], env: { A: 'b' }, env_vars: ['C'], enabled: false, startup_timeout_sec: 5 },
      { command: 'x', args: ['y'], env: { C: '${C}', A: 'b' }, disabled: true },
    ],
    [
      'gemini',
      { command: 'x', env: { A: '$FOO', B: '${BAR}' }, includeTools: ['t'], trust: false, cwd: './s' },
      { command: 'x', env: { A: '${FOO}', B: '${BAR}' }, enabledTools: ['t'], cwd: './s' },
    ],
    ['cline', { command: 'x', timeout: 60, disabled: false, autoApprove: [] }, { command: 'x', timeout: 60_000 }],
    ['windsurf', { serverUrl: 'https://x/', disabledTools: ['t'] }, { url: 'https://x/', disabledTools: ['t'] }],
    [
      'zed',
      { source: 'custom', command: { path: 'x', args: ['y'], env: {} }, enabled: true },
      { command: 'x', args: ['y'] },
    ],
    [
      'vscode',
      { type: 'http', url: 'https://x/', headers: { a: '${input:k}' } },
      { type: 'http', url: 'https://x/', headers: { a: '${input:k}' } },
    ],
  ])('of %s: %j', (client, raw, entry) => {
    expect(convertEntry(raw, { client })).toEqual({ entry, lost: [] })
  })

  it('says what is lost, and resolves the folder of a project', () => {
    const raw = { command: '${workspaceFolder}/x', alwaysAllow: ['t'], gallery: 'y' }
    expect(convertEntry(raw, { client: 'vscode', folder: '/p' })).toEqual({
      entry: { command: '/p/x' },
      lost: [expect.stringContaining('"alwaysAllow" is ignored'), 'not taken over: gallery'],
    })
  })
})

describe('readClients', () => {
  it('finds servers in all files, without those that lead to the gateway, and names files it cannot read', async () => {
    await write('home/.claude.json', {
      mcpServers: { user: { command: 'u' } },
      projects: {
        [place.folder]: { mcpServers: { local: { command: 'l' } } },
        '/other': { mcpServers: { no: { command: 'n' } } },
      },
    })
    await write('home/.codex/config.toml', '[mcp_servers.toml]\ncommand = "t"\n')
    await write('home/.config/Code/User/mcp.json', '{ "servers": { "code": { "command": "c" }, } } // comment')
    await write('home/.cursor/mcp.json', {
      mcpServers: { self: { command: 'dragoman', args: ['stdio'] }, web: { url: 'http://localhost:1/mcp' } },
    })
    await write('home/.gemini/settings.json', '{ "mcpServers": ')
    await write('project/.mcp.json', { mcpServers: { team: { command: 'm' } } })
    const names = async (includeProject: boolean) =>
      (await readClients(Object.keys(MCP_CLIENTS), place, { includeProject, port: 1 })).servers.map(({ name }) => name)
    expect(await names(false)).toEqual(['user', 'local', 'code', 'toml'])
    expect(await names(true)).toEqual(['user', 'local', 'team', 'code', 'toml'])
    const { files, problems } = await readClients(['gemini', 'codex'], place, { includeProject: false, port: 1 })
    expect(files.length).toBe(2)
    expect(problems).toEqual([expect.stringContaining('.gemini/settings.json is not JSON: line 1')])
  })
})
