import { linkSync, mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { talk } from '../../../test/support/embedded.ts'
import { createProject, type Project } from '../../../test/support/project.ts'
import type { Frame } from '../../protocol/exchange.ts'
import type { PlainObject } from '../../wire/json/json.ts'
import type { DefinedServer } from '../define/define.ts'
import { files } from './files.ts'

let project: Project
let server: DefinedServer

const CONTENT = {
  'readme.md': 'needle',
  'state/daemon.json': 'needle token',
  'state/memory/a.db': 'needle',
  'statement.md': 'needle',
  'mcp.json': 'needle key',
  'keys/upstream.txt': 'needle secret',
  '.env': 'needle',
  '.git/config': 'needle',
  'src/.ssh/id_rsa': 'needle',
  'src/a.ts': 'needle',
}

const start = (settings: { showHidden?: boolean; root?: string } = {}): void => {
  project = createProject(CONTENT)
  const secrets = ['state', 'mcp.json', 'keys/upstream.txt'].map(path => join(project.root, path))
  const { root = '.', showHidden } = settings
  server = files({
    root: join(project.root, root),
    showHidden,
    protectedPaths: () => [...secrets, join(project.root, 'not-there-yet')],
    version: '1',
  })
}
afterEach(async () => {
  await server.close()
  project.remove()
})

interface Result {
  readonly content: readonly { readonly text: string }[]
  readonly structuredContent: { files: unknown[]; dirs: string[] }
  readonly isError?: boolean
}
const call = async (name: string, args: PlainObject): Promise<Result> =>
  (await (await talk(server, 'tools/call', { name, arguments: args })).result()) as Result
const refusalOf = async (name: string, path: string): Promise<string> => {
  const more = { find_file: { file_mask: '*' }, search_for_pattern: { substring_pattern: '.' } }[name] ?? {}
  const { isError, content } = await call(name, { relative_path: path, ...more })
  return isError ? (content[0]?.text ?? '') : `not refused: ${content[0]?.text}`
}
const searchedFiles = async (): Promise<unknown> =>
  (
    await call('search_for_pattern', { substring_pattern: 'needle', include_ignored: true })
  ).structuredContent.files.map(file => (file as { path: string }).path)

const isNotice = (frame: Frame): frame is Frame & { kind: 'notice' } => frame.kind === 'notice'

const SHOWN = ['readme.md', 'statement.md', 'src/a.ts']

describe("the gateway's own files", () => {
  test.each(['state', 'state/daemon.json', 'state/memory/a.db', 'mcp.json', 'keys/upstream.txt'])(
    '%s is refused by every tool and as a resource, also where dot files are shown',
    async path => {
      start({ showHidden: true })
      for (const name of ['read_file', 'list_dir', 'find_file', 'search_for_pattern'])
        expect(await refusalOf(name, path)).toContain('belongs to the gateway')
      const { message } = await (await talk(server, 'resources/read', { uri: `file:///${path}` })).failure()
      expect(message).toContain('belongs to the gateway')
    },
  )

  test('are in no list, no search and no completion', async () => {
    start()
    const { dirs, files: listed } = (await call('list_dir', { relative_path: '.', recursive: true })).structuredContent
    expect([dirs, listed]).toEqual([['keys', 'src'], SHOWN])
    expect((await call('find_file', { file_mask: '*' })).structuredContent.files).toEqual(SHOWN)
    expect(await searchedFiles()).toEqual(SHOWN)
    const { resources } = (await (await talk(server, 'resources/list')).result()) as { resources: { name: string }[] }
    expect(resources.map(({ name }) => name)).toEqual(SHOWN)
    const completion = await talk(server, 'completion/complete', {
      ref: { type: 'ref/resource', uri: 'file:///{+path}' },
      argument: { name: 'path', value: 's' },
    })
    expect(await completion.result()).toMatchObject({ completion: { values: ['src/', 'statement.md'] } })
  })

  test('are refused through symbolic links and hard links', async () => {
    start()
    project.link('state', 'link')
    project.link('link', 'chain')
    project.link('state/daemon.json', 'file-link')
    linkSync(join(project.root, 'mcp.json'), join(project.root, 'hard.json'))
    for (const path of ['link/daemon.json', 'chain/daemon.json', 'file-link', 'hard.json'])
      expect(await refusalOf('read_file', path)).toContain('belongs to the gateway')
    expect(await refusalOf('list_dir', 'chain/memory')).toContain('belongs to the gateway')
    expect(await searchedFiles()).toEqual(SHOWN)
  })

  test('are refused when they came after the server started', async () => {
    start()
    expect(await refusalOf('read_file', 'not-there-yet')).toContain('there is no such file')
    mkdirSync(join(project.root, 'not-there-yet'))
    writeFileSync(join(project.root, 'not-there-yet/x'), 'needle')
    expect(await refusalOf('read_file', 'not-there-yet/x')).toContain('belongs to the gateway')
    expect(await searchedFiles()).toEqual(SHOWN)
  })

  test('cannot be the root of a server', async () => {
    start({ root: 'state/memory' })
    await expect(talk(server, 'tools/list')).rejects.toThrow('check "root" in the configuration')
  })

  test.runIf(process.platform === 'linux')('a root that contains /proc does not show the environment', async () => {
    project = createProject()
    server = files({ root: '/', version: '1' })
    for (const path of ['proc/self/environ', `proc/${process.pid}/environ`, 'proc/thread-self/environ', 'proc'])
      expect(await refusalOf(path === 'proc' ? 'list_dir' : 'read_file', path)).toContain('is refused')
  })
})

describe('dot files and folders', () => {
  test.each(['.env', '.git', '.git/config', 'src/.ssh/id_rsa', './/.env', '.nowhere'])(
    '%s is refused, with a hint that tells nothing of what there is',
    async path => {
      start()
      for (const name of ['read_file', 'list_dir', 'find_file', 'search_for_pattern'])
        expect(await refusalOf(name, path)).toContain('"showHidden": true')
      const { message } = await (await talk(server, 'resources/read', { uri: `file:///${path}` })).failure()
      expect(message).toContain('"showHidden": true')
    },
  )

  test('are refused through links with an innocent name', async () => {
    start()
    project.link('.env', 'env')
    project.link('.git', 'git')
    for (const path of ['env', 'git/config']) expect(await refusalOf('read_file', path)).toContain('"showHidden": true')
    const { dirs, files: listed } = (await call('list_dir', { relative_path: '.' })).structuredContent
    expect([dirs, listed]).toEqual([
      ['keys', 'src'],
      ['readme.md', 'statement.md'],
    ])
  })

  test('are shown if the entry allows it', async () => {
    start({ showHidden: true })
    expect((await call('read_file', { relative_path: '.env' })).content[0]?.text).toBe('needle')
    expect((await call('list_dir', { relative_path: '.' })).structuredContent).toMatchObject({
      dirs: ['.git', 'keys', 'src'],
      files: ['.env', 'readme.md', 'statement.md'],
    })
  })

  test('cause no change notifications, nor do the files of the gateway', async () => {
    start()
    const listening = await talk(server, 'subscriptions/listen', {
      notifications: {
        resourceSubscriptions: ['.env', 'mcp.json', 'state', 'readme.md'].map(path => `file:///${path}`),
      },
    })
    await listening.frame(isNotice)
    project.write('.env', 'changed')
    project.write('mcp.json', 'changed')
    project.write('state/daemon.json', 'changed')
    project.write('readme.md', 'changed') // the last one: what came before it has been heard by then
    const uriOf = (frame: Frame) => (isNotice(frame) ? frame.params.get('uri')?.asString() : undefined)
    await listening.frame((frame): frame is Frame => uriOf(frame) === 'file:///readme.md')
    const uris = listening.frames.flatMap(frame => uriOf(frame) ?? [])
    expect(new Set(uris)).toEqual(new Set(['file:///readme.md']))
  })
})

const MINE = /mine/
const REFUSED = /leads outside|changed while/

// Elsewhere a folder cannot be read through its handle, and a narrow race remains.
describe.runIf(process.platform === 'linux')('a folder that is swapped for a link all the time', () => {
  test.each([
    ['list_dir', { relative_path: 'swapped' }, 100],
    ['list_dir', { relative_path: 'swapped/inner' }, 100],
    ['read_file', { relative_path: 'swapped/inner/same.txt' }, 100],
    ['find_file', { relative_path: 'swapped', file_mask: '*' }, 100],
    ['search_for_pattern', { relative_path: 'swapped', substring_pattern: '.' }, 10], // each starts a thread
  ])('%s %j shows no name and no text from outside', async (tool, args, wanted) => {
    start()
    for (const folder of ['swapped', 'swapped/inner']) project.write(`${folder}/mine.txt`, 'mine')
    project.write('swapped/inner/same.txt', 'mine')
    mkdirSync(join(project.outside, 'inner'), { recursive: true })
    for (const name of ['secret.txt', 'same.txt']) writeFileSync(join(project.outside, 'inner', name), 'secret')
    const [place, aside] = [join(project.root, 'swapped'), join(project.root, 'aside')]
    let isSwapping = true
    const swapping = (async () => {
      while (isSwapping) {
        renameSync(place, aside)
        symlinkSync(project.outside, place)
        await new Promise(setImmediate)
        unlinkSync(place)
        renameSync(aside, place)
        await new Promise(resolve => setTimeout(resolve, 1))
      }
    })()
    const answers: string[] = []
    const count = (pattern: RegExp): number => answers.filter(text => pattern.test(text)).length
    while (answers.length < 20 * wanted && (count(MINE) < wanted || count(REFUSED) < wanted))
      answers.push(JSON.stringify(await call(tool, args)))
    isSwapping = false
    await swapping
    expect(answers.filter(text => text.includes('secret'))).toEqual([])
    expect(count(MINE)).toBeGreaterThan(0)
    expect(count(REFUSED)).toBeGreaterThan(0)
  })
})
