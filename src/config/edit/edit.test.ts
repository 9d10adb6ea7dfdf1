import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { editJson } from './json-edit.ts'
import { fileToEdit, openConfig, previewChange, saveConfig } from './own-file.ts'
import { writeEdited } from './safe-write.ts'
import { editToml } from './toml-edit.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-edit-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('editJson', () => {
  const JSONC = `{
\t// my servers
\t"mcpServers": {
\t\t"a": { "command": "x" }, // keep this
\t},
\t"theme": "dark" /* and this */
}
`
  it('keeps comments, indentation and everything else', () => {
    const added = editJson('f', JSONC, [{ path: ['mcpServers', 'b'], value: { url: 'http://x/' } }])
    expect(added).toContain('\t// my servers\n')
    expect(added).toContain('// keep this')
    expect(added).toContain('"theme": "dark" /* and this */')
    expect(added).toMatch(/\n\t\t"b": \{\n\t\t\t"url": "http:\/\/x\/"\n\t\t\}/)
    const removed = editJson('f', added, [{ path: ['mcpServers', 'b'], value: undefined }])
    expect(removed).not.toContain('http://x/')
    expect(removed).toContain('// my servers')
  })

  it('starts a file, and keeps its line ends', () => {
    expect(editJson('f', undefined, [{ path: ['mcpServers', 'a'], value: {} }])).toBe(
      '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n',
    )
    expect(editJson('f', '{\r\n  "x": 1\r\n}', [{ path: ['y'], value: 2 }])).toBe('{\r\n  "x": 1,\r\n  "y": 2\r\n}')
  })

  it.each([
    ['{ "a": ', 'f is not JSON: line 1, column 8: expected a value'],
    ['[]', 'f does not hold an object'],
  ])('refuses %s', (text, message) => {
    expect(() => editJson('f', text, [{ path: ['a'], value: 1 }])).toThrow(message)
  })
})

describe('editToml', () => {
  const TOML = `# my settings
model = "x"

[mcp_servers.docs] # keep
command = "npx"
[mcp_servers.docs.env]
KEY = "k"

[profiles.fast] # and this
model = "y"
`
  const at = ['mcp_servers', 'dragoman'] as const
  const url = { url: 'http://127.0.0.1:8765/mcp' }

  it('adds a table at the end, replaces it and removes it again', () => {
    const added = editToml('f', TOML, at, { ...url, http_headers: { Authorization: 'Bearer x' } })
    expect(added.startsWith(TOML.trimEnd())).toBe(true)
    expect(added).toContain('\n\n[mcp_servers.dragoman]\nurl = "http://127.0.0.1:8765/mcp"\n')
    const replaced = editToml('f', added, at, { command: 'dragoman', args: ['stdio'] })
    expect(replaced).not.toContain('Bearer')
    expect(editToml('f', replaced, at, undefined).trimEnd()).toBe(TOML.trimEnd())
  })

  it('removes a table with the tables inside it, and no other', () => {
    const removed = editToml('f', TOML, ['mcp_servers', 'docs'], undefined)
    expect(removed).toBe('# my settings\nmodel = "x"\n\n[profiles.fast] # and this\nmodel = "y"\n')
  })

  it('starts a file, and quotes names', () => {
    expect(editToml('f', undefined, at, url)).toBe('[mcp_servers.dragoman]\nurl = "http://127.0.0.1:8765/mcp"\n')
    const quoted = editToml('f', TOML, ['mcp_servers', 'a b.c'], url)
    expect(quoted).toContain('[mcp_servers."a b.c"]')
    expect(editToml('f', quoted, ['mcp_servers', 'a b.c'], undefined).trimEnd()).toBe(TOML.trimEnd())
  })

  it.each([
    ['mcp_servers = { docs = { command = "x" } }', 'edit it by hand'], // no table can be added to it
    ['[mcp_servers]\ndragoman = { command = "x" }', 'edit it by hand'],
    ['x = """\n[mcp_servers.dragoman]\n"""\n', 'edit it by hand'], // a header inside a text
    ['model = ', 'f is not TOML: line 1'],
  ])('refuses %j instead of damaging it', (text, message) => {
    expect(() => editToml('f', text, at, url)).toThrow(message)
  })
})

describe('writeEdited', () => {
  it('keeps a backup, the permissions and a link', async () => {
    const real = join(folder, 'real.json')
    const link = join(folder, 'link.json')
    await writeFile(real, 'old')
    await chmod(real, 0o640)
    await symlink(real, link)
    const backup = await writeEdited(link, 'old', 'new', 'each')
    expect([await readFile(real, 'utf8'), await readFile(backup ?? '', 'utf8')]).toEqual(['new', 'old'])
    expect(backup).toMatch(/link\.json\.\d{8}-\d{6}-\d{3}\.bak$/)
    expect((await stat(real)).mode & 0o777).toBe(0o640)
    expect((await readdir(folder)).filter(name => name.endsWith('.tmp'))).toEqual([])
  })

  it('creates folders, and a new file for its owner only', async () => {
    const file = join(folder, 'a/b/new.json')
    expect(await writeEdited(file, undefined, '{}', 'each')).toBeUndefined()
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  it('leaves a file alone that another program has changed meanwhile', async () => {
    const file = join(folder, 'busy.json')
    await writeFile(file, 'other')
    await expect(writeEdited(file, 'old', 'new', 'last')).rejects.toThrow('was changed by another program')
    expect(await readFile(file, 'utf8')).toBe('other')
  })
})

describe('the own file', () => {
  it('is the named one, dragoman.json here, or the one of the user', async () => {
    const search = { env: {}, folder, home: join(folder, 'home'), platform: 'linux' as const }
    expect(await fileToEdit('/x/y.json', search)).toBe('/x/y.json')
    expect(await fileToEdit(undefined, search)).toBe(join(folder, 'home/.config/dragoman/dragoman.json'))
    await writeFile(join(folder, '.mcp.json'), '{}')
    expect(await fileToEdit(undefined, search)).toBe(join(folder, 'home/.config/dragoman/dragoman.json'))
    await writeFile(join(folder, 'dragoman.json'), '{}')
    expect(await fileToEdit(undefined, search)).toBe(join(folder, 'dragoman.json'))
  })

  it('writes out the built-in servers when another one is added to them', async () => {
    const file = join(folder, 'mcp.json')
    await writeFile(file, '{ "mcpServers": "default" }')
    const config = await openConfig(file)
    const { text } = previewChange(config, [{ path: config.pathOf('a'), value: { url: 'http://x/' } }])
    expect(await saveConfig(config, text)).toBe(`${file}.bak`)
    expect(Object.keys((await openConfig(file)).servers)).toEqual(['memory', 'files', 'a'])
  })

  it('is not changed to one that is invalid', async () => {
    const file = join(folder, 'mcp.json')
    await writeFile(file, '{ "servers": { "a": { "url": "http://x/" } }, "workspaces": { "w": { "servers": ["a"] } } }')
    const config = await openConfig(file)
    expect(config.pathOf('a')).toEqual(['servers', 'a'])
    expect(() => previewChange(config, [{ path: config.pathOf('a'), value: undefined }])).toThrow(
      /after this change .* has a problem:\n.*workspaces\.w\.servers.*no server "a".*\nIt was not changed\./s,
    )
  })
})
