import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MCP_CLIENTS, type UserPlace } from './client-files.ts'
import { readClientState } from './client-state.ts'
import { entryText } from './edit-client.ts'
import { lineDifference } from './line-difference.ts'
import { planChange } from './link-client.ts'
import { findKnownClient, type LinkTarget, linkEntry } from './link-entry.ts'
import { maskValues } from './mask-values.ts'
import { stdioCommand } from './stdio-command.ts'

let home: string
let place: UserPlace
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'dragoman-link-'))
  place = { env: {}, home, platform: 'linux', folder: home }
})
afterEach(() => rm(home, { recursive: true }))

const PORT = 8765
const TARGET: LinkTarget = {
  origin: `http://127.0.0.1:${PORT}`,
  isLasting: true,
  needsToken: false,
  stdio: ['/usr/bin/node', ['/opt/dragoman/dist/main.js', 'stdio']],
}
const write = async (name: string, text: string): Promise<string> => {
  const file = join(home, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  return file
}

describe('linkEntry', () => {
  it.each(Object.keys(MCP_CLIENTS))('%s: every snippet parses, and its state is that of a linked client', async id => {
    const client = findKnownClient(id)
    for (const transport of client.httpEntry ? ['http', 'stdio'] : ['stdio']) {
      const entry = linkEntry(
        client,
        { workspace: 'a b', transport },
        {
          ...TARGET,
          stdio: stdioCommand({ workspace: 'a b' }, ['', '/opt/dragoman/dist/main.js']),
        },
      )
      const text = entryText(client, 'dragoman-x', entry)
      const parsed = client.format === 'toml' ? parseToml(text) : JSON.parse(text)
      expect(Object.keys(parsed[client.key])).toEqual(['dragoman-x'])
      const [file = ''] = client.userFiles(place)
      await write(file.slice(home.length), text)
      expect(await readClientState(client, place, PORT)).toEqual({
        file,
        exists: true,
        links: [{ name: 'dragoman-x', transport, workspace: 'a b', hasToken: false }],
        others: [],
      })
    }
  })

  it.each([
    ['claude-desktop', { transport: 'http' }, {}, 'Claude Desktop supports only stdio'],
    ['cursor', { transport: 'ws' }, {}, 'expected http or stdio'],
    ['cursor', { transport: 'http' }, { needsToken: true }, 'the gateway needs a token; give one, or use stdio'],
    ['cursor', { transport: 'stdio', token: 't' }, {}, 'a token goes with http; stdio needs none'],
  ])('%s %o is refused', (id, wish, target, message) => {
    expect(() => linkEntry(findKnownClient(id), { workspace: 'default', ...wish }, { ...TARGET, ...target })).toThrow(
      message,
    )
  })

  it('an unknown client is named, and cut', () => {
    expect(() => findKnownClient('cursr')).toThrow('"cursr" is not a known client; did you mean "cursor"?')
    expect(() => findKnownClient('x'.repeat(10_000))).toThrow(/^"x{60}…" is not a known client; expected one of/)
    expect(() => findKnownClient('__proto__')).toThrow('is not a known client')
  })
})

describe('planChange', () => {
  const client = findKnownClient('cursor')
  const plan = (file: string, entry: object | undefined, name = 'dragoman') =>
    planChange({ client, file, name, entry, port: PORT })

  it('knows what a change does, writes it, and leaves a file alone that has changed since', async () => {
    const file = join(home, '.cursor/mcp.json')
    const entry = linkEntry(client, { workspace: 'default' }, TARGET)
    const first = await plan(file, entry)
    expect([first.kind, first.before]).toEqual(['new', undefined])
    expect(await first.save()).toBeUndefined()
    expect(await readFile(file, 'utf8')).toBe(first.after)
    expect((await plan(file, entry)).kind).toBe('same')
    expect((await plan(file, { url: 'http://127.0.0.1:8765/mcp/x' })).kind).toBe('replaces')
    await write('.cursor/mcp.json', '{ "mcpServers": { "dragoman": { "url": "https://other.example/mcp" } } }')
    const other = await plan(file, entry)
    expect(other.kind).toBe('other')
    await write('.cursor/mcp.json', '{ }')
    await expect(other.save()).rejects.toThrow('was changed by another program at the same time')
    expect((await plan(file, undefined)).kind).toBe('missing')
    expect((await plan(file, undefined, '__proto__')).kind).toBe('missing')
  })

  it('does not write a file that is read-only', async () => {
    const file = await write('.cursor/mcp.json', '{}')
    await chmod(file, 0o444)
    await expect((await plan(file, { url: 'http://127.0.0.1:8765/mcp' })).save()).rejects.toThrow('is read-only')
    expect(await readFile(file, 'utf8')).toBe('{}')
  })
})

describe('readClientState', () => {
  it('names what leads here, what does not, and what cannot be read', async () => {
    await write(
      '.cursor/mcp.json',
      '{ "mcpServers": { "a": { "url": "http://localhost:8765/mcp/x", "headers": { "authorization": "Bearer t" } }, "b": { "command": "x" } } }',
    )
    expect(await readClientState(findKnownClient('cursor'), place, PORT)).toMatchObject({
      links: [{ name: 'a', transport: 'http', workspace: 'x', hasToken: true }],
      others: ['b'],
    })
    expect(await readClientState(findKnownClient('zed'), place, PORT)).toMatchObject({
      exists: false,
      links: [],
      others: [],
    })
    await write('.gemini/settings.json', '{ "mcpServers": [')
    expect(await readClientState(findKnownClient('gemini'), place, PORT)).toMatchObject({
      exists: true,
      problem: expect.stringContaining('settings.json is not JSON: line 1'),
    })
  })

  it('refuses symbolic links, of the file and of a folder above it', async () => {
    const elsewhere = await write('elsewhere/mcp.json', '{}')
    await mkdir(join(home, '.cursor'))
    await symlink(elsewhere, join(home, '.cursor/mcp.json'))
    await symlink(join(home, 'elsewhere'), join(home, '.gemini'))
    for (const id of ['cursor', 'gemini'])
      expect((await readClientState(findKnownClient(id), place, PORT)).problem).toMatch(
        /is a symbolic link to .*elsewhere/,
      )
  })
})

describe('maskValues', () => {
  it('hides texts of other entries and comments in JSON, also on the same line', () => {
    const text =
      '{ /* k1 */ "mcpServers": { "x": { "env": { "KEY": "s3cret" }, "args": ["--key", "s3cret"] }, // s3cret\n "dragoman": { "url": "u", "headers": { "Authorization": "Bearer s3cret" } } } }'
    const masked = maskValues(findKnownClient('cursor'), text, 'dragoman')
    expect(masked).toBe(
      '{ /* … */ "mcpServers": { "x": { "env": { "KEY": "…" }, "args": ["…", "…"] }, // …\n "dragoman": { "url": "u", "headers": { "Authorization": "Bearer …" } } } }',
    )
    expect(maskValues(findKnownClient('cursor'), text, undefined)).not.toMatch(/s3cret|"u"/)
  })

  it('hides them in TOML, also in texts of several lines', () => {
    const text = [
      'model = "s3cret" # s3cret',
      'notes = """',
      'a=s3cret',
      's3cret==',
      '"""',
      '[mcp_servers.x] # s3cret',
      'args = [',
      '  "s3cret",',
      ']',
      '[mcp_servers.dragoman]',
      'url = "u"',
      '[mcp_servers.dragoman.http_headers]',
      'Authorization = "Bearer s3cret"',
    ].join('\n')
    const masked = maskValues(findKnownClient('codex'), text, 'dragoman')
    expect(masked).not.toContain('s3cret')
    expect(masked).toContain('[mcp_servers.dragoman]\nurl = "u"\n')
    expect(masked).toContain('Authorization = "Bearer …"')
  })
})

describe('lineDifference', () => {
  it('has three lines around each change, and gaps for the rest', () => {
    const before = Array.from({ length: 20 }, (_, at) => `line ${at}`)
    const after = before.toSpliced(10, 1, 'new', 'newer')
    expect(lineDifference(before.join('\n'), `${after.join('\n')}\n`).map(({ kind }) => kind)).toEqual([
      'gap',
      ...['same', 'same', 'same', 'removed', 'added', 'added', 'same', 'same', 'same'],
      'gap',
    ])
    expect(lineDifference('', 'a\nb\n')).toEqual([
      { kind: 'added', text: 'a' },
      { kind: 'added', text: 'b' },
    ])
    expect(lineDifference('a\nb', 'a\nb')).toEqual([{ kind: 'gap', lines: 2 }])
    expect(lineDifference('a\nx\nb\ny', 'b\ny\na\nz').filter(({ kind }) => kind === 'same')).toHaveLength(2)
  })
})
