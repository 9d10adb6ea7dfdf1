import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findConfig, findUserConfig, userConfigFiles } from './find-config.ts'

let folder: string
let home: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-find-'))
  home = join(folder, 'home')
})
afterEach(() => rm(folder, { recursive: true }))

const write = async (name: string, content: unknown): Promise<string> => {
  const file = join(folder, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}
const find = () => findConfig({ env: {}, folder, home, platform: 'linux' })

const DEMO = { demo: { builtin: 'demo' } }

it('finds a file in the current directory before the one of the user, in the documented order', async () => {
  expect(await find()).toBeUndefined()
  const user = await write('home/.config/dragoman/dragoman.json', { mcpServers: DEMO })
  expect(await find()).toBe(user)
  const editor = await write('.vscode/mcp.json', { servers: DEMO })
  expect(await find()).toBe(editor)
  const project = await write('.mcp.json', { mcpServers: DEMO })
  expect(await find()).toBe(project)
  const own = await write('dragoman.json', {})
  expect(await find()).toBe(own)
  expect(await findUserConfig({ env: {}, home, platform: 'linux' })).toBe(user)
})

it('passes over files of other programs that name no server but this gateway', async () => {
  await write('.mcp.json', { mcpServers: { dragoman: { command: 'npx', args: ['-y', 'dragoman', 'stdio'] } } })
  await write('.vscode/mcp.json', '// nothing yet\n{ "servers": {}, "inputs": [] }')
  expect(await find()).toBeUndefined()
})

it('takes a broken file, so that loading it says what is wrong', async () => {
  const broken = await write('.mcp.json', '{ "mcpServers": ')
  expect(await find()).toBe(broken)
})

it('does not take a folder for a file', async () => {
  await mkdir(join(folder, 'dragoman.json'))
  expect(await find()).toBeUndefined()
})

it.each<[NodeJS.Platform, Record<string, string>, string[]]>([
  ['linux', {}, ['/home/a/.config/dragoman/dragoman.json']],
  ['linux', { XDG_CONFIG_HOME: '/etc/a' }, ['/etc/a/dragoman/dragoman.json']],
  ['linux', { XDG_CONFIG_HOME: 'relative' }, ['/home/a/.config/dragoman/dragoman.json']],
  [
    'darwin',
    {},
    ['/home/a/.config/dragoman/dragoman.json', '/home/a/Library/Application Support/dragoman/dragoman.json'],
  ],
  ['win32', { APPDATA: 'C:\\Users\\a\\Roaming' }, ['C:\\Users\\a\\Roaming\\dragoman\\dragoman.json']],
])('on %s with %j looks for the file of the user at %j', (platform, env, files) => {
  expect(userConfigFiles({ env, platform, home: '/home/a' })).toEqual(files)
})
