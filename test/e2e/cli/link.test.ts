import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { announceDaemon } from '../../../src/config/daemon-file.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { runCommand } from './in-process.ts'

let home: string
let gateway: Gateway | undefined
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'dragoman-home-'))
  vi.spyOn(process, 'cwd').mockReturnValue(home)
  vi.spyOn(process, 'argv', 'get').mockReturnValue([process.execPath, '/opt/dragoman/dist/main.js'])
})
afterEach(async () => {
  vi.restoreAllMocks()
  await gateway?.close()
  gateway = undefined
  await rm(home, { recursive: true })
})
afterAll(() => vi.restoreAllMocks())

const at = (name: string) => join(home, name)
const write = async (name: string, text: string) => {
  await mkdir(dirname(at(name)), { recursive: true })
  await writeFile(at(name), text)
}
const read = (name: string) => readFile(at(name), 'utf8')
const readJson = async (name: string) => JSON.parse(await read(name)) as Record<string, Record<string, unknown>>
const dragoman = (...args: string[]) =>
  runCommand(args, { env: { HOME: home, XDG_CONFIG_HOME: at('.config'), DRAGOMAN_DATA: at('data') } })

const OWN = '.config/dragoman/dragoman.json'

describe('add and remove', () => {
  it('change the file of the user, and keep its comments', async () => {
    const added = await dragoman('add', 'web', 'https://example.com/mcp', '--header', 'Authorization: Bearer ${KEY}')
    expect([added.code, added.stdout]).toEqual([0, expect.stringContaining(`Added "web" in ${at(OWN)}.\n`)])
    await write(OWN, `// mine\n${await read(OWN)}`)
    await dragoman('add', 'local', '--env', 'A=b=c', '--cwd', '/tmp', '--', 'npx', '-y', 'x', '--flag')
    expect((await read(OWN)).startsWith('// mine\n')).toBe(true)
    const { servers } = await loadConfig({ file: at(OWN), env: { KEY: 'k' } })
    expect(servers.get('web')).toMatchObject({ headers: { authorization: 'Bearer k' } })
    expect(servers.get('local')).toMatchObject({
      command: 'npx',
      args: ['-y', 'x', '--flag'],
      env: { A: 'b=c' },
      cwd: '/tmp',
    })
    expect((await dragoman('remove', 'local')).stdout).toContain(
      `Removed "local" from ${at(OWN)} (backup: ${at(OWN)}.bak)`,
    )
    expect(await read(OWN)).not.toContain('npx')
  })

  it('change nothing with --dry-run, and say which file is used here', async () => {
    const dry = await dragoman('add', 'web', 'https://example.com/mcp', '--dry-run')
    expect(dry.stdout).toBe(`Added "web" in ${at(OWN)}: not done, because of --dry-run.\n`)
    await expect(read(OWN)).rejects.toThrow('ENOENT')
    await write('.mcp.json', '{ "mcpServers": { "a": { "builtin": "demo" } } }')
    expect((await dragoman('add', 'web', 'https://example.com/mcp')).stdout).toContain(
      `In this directory "dragoman serve" uses ${at('.mcp.json')}; give --config ${at(OWN)}\n`,
    )
  })

  it.each([
    [['add'], 2, 'expected a name for the server'],
    [['add', 'https://x/mcp'], 2, 'expected a name before the URL: dragoman add NAME https://x/mcp'],
    [['add', 'a'], 2, 'expected a URL, or "--" and a command'],
    [['add', 'a', 'x'], 2, "Unexpected argument 'x'; expected a URL"],
    [['add', 'a', 'https://x/', '--type', 'ws'], 2, '--type: expected http or sse'],
    [['add', 'a', 'https://x/', '--env', 'A=b'], 2, '--env and --cwd go with a command'],
    [['add', 'a', '--env', 'A', '--', 'x'], 2, '--env: expected NAME=VALUE, found "A"'],
    [['add', 'a', '--type', 'sse', '--', 'x'], 2, '--type goes with a URL'],
    [['add', 'there', 'https://x/'], 1, 'has a server "there" already; choose another name, or give --force'],
    [['remove'], 2, 'expected the name of a server'],
    [['remove', 'thre'], 1, 'has no server "thre"; did you mean "there"?'],
  ])('%j is wrong', async (args, code, message) => {
    await write(OWN, '{ "mcpServers": { "there": { "builtin": "demo" } } }')
    const outcome = await dragoman(...args)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
    expect(await read(OWN)).toBe('{ "mcpServers": { "there": { "builtin": "demo" } } }')
  })

  it('leave a file alone that is not JSON', async () => {
    await write(OWN, '{ "mcpServers": ')
    const { code, stderr } = await dragoman('add', 'a', 'https://x/')
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${at(OWN)} is not JSON: line 1`)])
  })
})

describe('import', () => {
  it('adds the servers of clients once, under free names, and prints no secrets', async () => {
    await write('.cursor/mcp.json', '{ "mcpServers": { "docs": { "command": "x", "env": { "KEY": "s3cret" } } } }')
    await write(
      '.codex/config.toml',
      '[mcp_servers.docs]\nurl = "https://example.com/mcp"\nbearer_token_env_var = "T"\n',
    )
    await write('.gemini/settings.json', '{ "mcpServers": ')
    const first = await dragoman('import')
    expect(first.code).toBe(0)
    expect(first.stdout).toMatch(/^cursor +docs +added\ncodex +docs +added as "docs-codex"$/m)
    expect(first.stdout).toContain(`Added 2 servers to ${at(OWN)}.`)
    expect(first.stderr).toContain('.gemini/settings.json is not JSON')
    expect(first.stdout + first.stderr).not.toContain('s3cret')
    expect((await readJson(OWN)).mcpServers).toEqual({
      docs: { command: 'x', env: { KEY: 's3cret' } },
      'docs-codex': { url: 'https://example.com/mcp', headers: { Authorization: 'Bearer ${T}' } },
    })
    expect((await dragoman('import', 'cursor')).stdout).toContain('Nothing to add.')
  })

  it('says that there is nothing, or no such client', async () => {
    expect((await dragoman('import')).stderr).toContain('there is nothing to import: no file of a client was found')
    expect((await dragoman('import', 'curser')).stderr).toContain(
      '"curser" is not a known client; did you mean "cursor"?',
    )
  })
})

describe('link and unlink', () => {
  it('write stdio where no daemon runs, keep the rest and a backup', async () => {
    const before = '{\n  // mine\n  "mcpServers": { "other": { "command": "x" } }\n}\n'
    await write('.cursor/mcp.json', before)
    const linked = await dragoman('link', 'cursor')
    expect(linked.code).toBe(0)
    const [, backup = ''] = /^Backup: (.+)$/m.exec(linked.stdout) ?? []
    expect(await readFile(backup, 'utf8')).toBe(before)
    expect(await read('.cursor/mcp.json')).toContain('// mine')
    const { servers } = await loadConfig({ file: at('.cursor/mcp.json'), env: {} })
    expect([...servers.keys()]).toEqual(['other']) // the gateway knows its own entry
    expect(await read('.cursor/mcp.json')).toMatch(/"stdio",\s+"--data",\s+".*data"/)
    expect((await dragoman('link', 'cursor')).stdout).toContain('Cursor is linked already')
    expect((await dragoman('unlink', 'cursor')).stdout).toContain(`Unlinked Cursor: ${at('.cursor/mcp.json')}`)
    expect(await read('.cursor/mcp.json')).not.toContain('stdio')
    expect((await dragoman('unlink', 'cursor')).stderr).toContain('has no entry "dragoman"')
  })

  /** A daemon that runs in this process. */
  const startDaemon = async (): Promise<string> => {
    const snapshot = await loadConfig({
      value: { mcpServers: { demo: { builtin: 'demo' } } },
      env: {},
      flags: { port: 0 },
    })
    await mkdir(at('data'), { recursive: true })
    gateway = await startGateway(snapshot, { log: SILENT, data: at('data') })
    const { origin, localSecret: token } = gateway
    await announceDaemon(at('data'), { origin, token, pid: process.pid, isLasting: true })
    return origin
  }

  it('write the URL of a running daemon in the form of each client, and stdio for Claude Desktop', async () => {
    const origin = await startDaemon()
    const url = `${origin}/mcp`
    const entries = {
      'claude-code': ['.claude.json', 'mcpServers', { type: 'http', url }],
      cursor: ['.cursor/mcp.json', 'mcpServers', { url }],
      vscode: ['.config/Code/User/mcp.json', 'servers', { type: 'http', url }],
      windsurf: ['.codeium/windsurf/mcp_config.json', 'mcpServers', { serverUrl: url }],
      gemini: ['.gemini/settings.json', 'mcpServers', { httpUrl: url }],
      zed: ['.config/zed/settings.json', 'context_servers', { url }],
      'claude-desktop': ['.config/Claude/claude_desktop_config.json', 'mcpServers', { command: process.execPath }],
    } as const
    for (const [client, [file, key, entry]] of Object.entries(entries)) {
      expect((await dragoman('link', client)).code).toBe(0)
      expect((await readJson(file))[key]).toMatchObject({ dragoman: entry })
    }
    const preview = await dragoman('link', 'codex', '--workspace', 'demo', '--dry-run')
    expect(preview.stdout).toContain(`would get:\n\n[mcp_servers.dragoman-demo]\nurl = "${url}/demo"\n`)
    await dragoman('link', 'codex', '--workspace', 'demo')
    expect(await read('.codex/config.toml')).toBe(`[mcp_servers.dragoman-demo]\nurl = "${url}/demo"\n`)
    await dragoman('unlink', 'codex', '--workspace', 'demo')
    expect((await read('.codex/config.toml')).trim()).toBe('')
    const unknown = await dragoman('link', 'cursor', '--workspace', 'dmeo')
    expect(unknown.stderr).toContain('--workspace: the daemon has no workspace "dmeo"; did you mean "demo"?')
  })

  it('need a token, or write stdio, if the gateway needs one', async () => {
    await startDaemon()
    await dragoman('token', 'create', 'x')
    await vi.waitFor(async () => expect((await fetch(`${gateway?.origin}/`)).status).toBe(401))
    expect((await dragoman('link', 'cursor', '--transport', 'http')).stderr).toContain('the gateway needs a token')
    const withToken = await dragoman('link', 'cursor', '--token', 'drg_s3cret')
    expect(withToken.stdout).not.toContain('s3cret')
    expect(await readJson('.cursor/mcp.json')).toMatchObject({
      mcpServers: { dragoman: { headers: { Authorization: 'Bearer drg_s3cret' } } },
    })
    await dragoman('link', 'windsurf')
    expect(await read('.codeium/windsurf/mcp_config.json')).toContain('"stdio"')
  })

  it.each([
    [['link'], 2, 'expected a client: claude-desktop, claude-code'],
    [['link', 'emacs'], 2, '"emacs" is not a known client; expected one of "claude-desktop"'],
    [['link', 'claude-desktop', '--transport', 'http'], 2, '--transport: Claude Desktop supports only stdio'],
    [['link', 'cursor', '--transport', 'ws'], 2, '--transport: expected http or stdio'],
    [['link', 'windsurf', '--project'], 2, 'Windsurf has no file for a project; leave out --project'],
    [['link', 'cursor', '--name', 'other'], 1, 'has another server "other"; choose a --name, or give --force'],
    [['unlink', 'cursor', '--name', 'other'], 1, 'is another server; give --force to remove it'],
  ])('%j is wrong', async (args, code, message) => {
    const text = '{ "mcpServers": { "other": { "command": "x" } } }'
    await write('.cursor/mcp.json', text)
    const outcome = await dragoman(...args)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
    expect(await read('.cursor/mcp.json')).toBe(text)
  })

  it('change nothing with --dry-run, nor a file they cannot parse', async () => {
    expect((await dragoman('link', 'cursor', '--dry-run')).stdout).toContain(`${at('.cursor/mcp.json')} would get:`)
    await expect(read('.cursor/mcp.json')).rejects.toThrow('ENOENT')
    await write('.codex/config.toml', 'model = ')
    const { code, stderr } = await dragoman('link', 'codex')
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${at('.codex/config.toml')} is not TOML: line 1`)])
    expect(await read('.codex/config.toml')).toBe('model = ')
  })
})
