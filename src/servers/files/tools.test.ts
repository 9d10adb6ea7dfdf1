import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { noticesOf, talk } from '../../../test/support/embedded.ts'
import { createProject, type Project } from '../../../test/support/project.ts'
import type { PlainObject } from '../../wire/json/json.ts'
import type { DefinedServer } from '../define/define.ts'
import { files } from './files.ts'

let project: Project
let server: DefinedServer
const start = (content: Readonly<Record<string, string | Buffer>> = {}): void => {
  project = createProject(content)
  server = files({ root: project.root, version: '1' })
}
afterEach(async () => {
  await server.close()
  project.remove()
})

interface Result {
  readonly content: readonly { readonly type: string; readonly text: string }[]
  readonly structuredContent: Record<string, unknown>
  readonly isError?: boolean
}

const call = async (name: string, args: PlainObject = {}): Promise<Result> =>
  (await (await talk(server, 'tools/call', { name, arguments: args })).result()) as Result
const found = async (name: string, args: PlainObject = {}) => (await call(name, args)).structuredContent
const refusal = async (name: string, args: PlainObject): Promise<string> => {
  const { isError, content } = await call(name, args)
  expect(isError).toBe(true)
  return content[0]?.text ?? ''
}
const misuse = async (name: string, args: PlainObject) =>
  (await talk(server, 'tools/call', { name, arguments: args })).failure()

const MAKE_PIPE = 'mkfifo'

const SAMPLE = {
  'main.py': 'print("hi")\n',
  'src/a.ts': 'one\ntwo\nthree\n',
  'src/deep/b.ts': 'two',
  'tests/t.py': '',
  '.git/config': 'two',
  'node_modules/x/index.js': 'two',
}

describe('list_dir', () => {
  test('answers as the daemon of old did: folders and files, as structure and as text', async () => {
    start(SAMPLE)
    const result = await call('list_dir', { relative_path: '.', recursive: false })
    expect(result.structuredContent).toEqual({
      dirs: ['node_modules', 'src', 'tests'],
      files: ['main.py'],
    })
    expect(JSON.parse(result.content[0]?.text ?? '')).toEqual(result.structuredContent)
  })

  test('gives paths that can be used in the next call', async () => {
    start(SAMPLE)
    expect(await found('list_dir', { relative_path: 'src' })).toEqual({ dirs: ['src/deep'], files: ['src/a.ts'] })
  })

  test('goes below on request, past node_modules unless it is asked for', async () => {
    start(SAMPLE)
    expect(await found('list_dir', { relative_path: '.', recursive: true })).toEqual({
      dirs: ['src', 'tests', 'src/deep'],
      files: ['main.py', 'src/a.ts', 'tests/t.py', 'src/deep/b.ts'],
    })
    const all = await found('list_dir', { relative_path: '.', recursive: true, include_ignored: true })
    expect(all.files).toContain('node_modules/x/index.js')
    const inside = await found('list_dir', { relative_path: 'node_modules', recursive: true })
    expect(inside.files).toEqual(['node_modules/x/index.js'])
  })

  test('shows links that stay inside, once, and no link that leads outside', async () => {
    start(SAMPLE)
    project.link('src', 'same')
    project.link('.', 'circle')
    project.link('main.py', 'alias.py')
    project.link('../outside', 'out')
    project.link('../outside/secret.txt', 'out.txt')
    project.link('nowhere', 'broken')
    const { dirs, files } = await found('list_dir', { relative_path: '.', recursive: true })
    expect(dirs).toEqual(['circle', 'same', 'src', 'tests', 'src/deep'])
    expect(files).toEqual(['alias.py', 'main.py', 'src/a.ts', 'tests/t.py', 'src/deep/b.ts'])
  })

  test('stops at ten thousand entries and reports it', async () => {
    start(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`d${i}/f`, ''])))
    mkdirSync(join(project.root, 'many'))
    for (let i = 0; i < 10_000; i++) writeFileSync(join(project.root, 'many', String(i)), '')
    const { files, dirs, truncated } = await found('list_dir', { relative_path: '.', recursive: true })
    expect((files as []).length + (dirs as []).length).toBe(10_000)
    expect(truncated).toBe(true)
  })

  test('explains why a folder cannot be listed', async () => {
    start(SAMPLE)
    expect(await refusal('list_dir', { relative_path: 'main.py' })).toContain('is a file; read it with read_file')
    expect(await refusal('list_dir', { relative_path: 'nowhere' })).toContain('there is no such file or folder')
    expect((await misuse('list_dir', {})).message).toContain('"relative_path" is required')
  })
})

describe('read_file', () => {
  test('gives the text and where it stands', async () => {
    start(SAMPLE)
    const { content, structuredContent } = await call('read_file', { relative_path: 'src/a.ts' })
    expect(content).toEqual([{ type: 'text', text: 'one\ntwo\nthree\n' }])
    expect(structuredContent).toEqual({
      path: 'src/a.ts',
      text: 'one\ntwo\nthree\n',
      start_line: 1,
      end_line: 3,
      total_lines: 3,
    })
  })

  test.each([
    [{ start_line: 2 }, 'two\nthree\n', 3],
    [{ end_line: 1 }, 'one', 1],
    [{ start_line: 2, end_line: 2 }, 'two', 2],
    [{ start_line: 3, end_line: 99 }, 'three\n', 3],
  ])('gives the lines of %j', async (range, text, end_line) => {
    start(SAMPLE)
    expect(await found('read_file', { relative_path: 'src/a.ts', ...range })).toMatchObject({ text, end_line })
  })

  test('gives an empty file as one', async () => {
    start(SAMPLE)
    expect(await found('read_file', { relative_path: 'tests/t.py' })).toMatchObject({ text: '', total_lines: 0 })
  })

  test('cuts a long file and says where to go on', async () => {
    start({ long: 'x'.repeat(99).concat('\n').repeat(5000) })
    const first = await found('read_file', { relative_path: 'long' })
    expect(first).toMatchObject({ end_line: 2000, next_line: 2001, total_lines: 5000 })
    const last = await found('read_file', { relative_path: 'long', start_line: 4001 })
    expect(last).toMatchObject({ end_line: 5000 })
    expect(last).not.toHaveProperty('next_line')
  })

  test('cuts a line that is too long for an answer', async () => {
    start({ wide: `${'x'.repeat(300_000)}\nnext` })
    expect(await found('read_file', { relative_path: 'wide' })).toMatchObject({ end_line: 1, next_line: 2 })
  })

  test.each([{ start_line: 0 }, { start_line: 3, end_line: 2 }, { start_line: 1.5 }])('refuses %j', async range => {
    start(SAMPLE)
    expect((await misuse('read_file', { relative_path: 'src/a.ts', ...range })).code).toBe(-32602)
  })

  test('reports that the file has fewer lines', async () => {
    start(SAMPLE)
    expect(await refusal('read_file', { relative_path: 'src/a.ts', start_line: 9 })).toContain('has 3 lines')
  })

  test('sends binary files on to the resource', async () => {
    start({ 'a b.png': Buffer.from([0x89, 0x50, 0, 1]) })
    expect(await refusal('read_file', { relative_path: 'a b.png' })).toContain('resource file:///a%20b.png')
  })

  test('reads old encodings and drops the byte order mark', async () => {
    start({ old: Buffer.from([0x5a, 0xfc, 0x72, 0x69]), marked: '\ufeffhi' })
    expect(await found('read_file', { relative_path: 'old' })).toMatchObject({ text: 'Züri' })
    expect(await found('read_file', { relative_path: 'marked' })).toMatchObject({ text: 'hi' })
  })

  test('rejects a file over the size limit', async () => {
    start({ huge: Buffer.alloc(16 * 1024 * 1024 + 1, 'x') })
    expect(await refusal('read_file', { relative_path: 'huge' })).toContain('larger than the limit of 16777216 bytes')
  })
})

describe('nothing outside the root', () => {
  test.each([
    '../outside/secret.txt',
    '../root/secret.txt',
    '../Root2/secret.txt',
    'src/../../outside/secret.txt',
    '%2e%2e/outside/secret.txt',
    '/etc/passwd',
    '..\\outside',
    'a\0b',
  ])('by the path %j', async path => {
    start(SAMPLE)
    for (const name of ['read_file', 'list_dir'])
      expect(await refusal(name, { relative_path: path })).toContain('is refused')
    expect(await refusal('find_file', { file_mask: '*', relative_path: path })).toContain('is refused')
    expect(await refusal('search_for_pattern', { substring_pattern: '.', relative_path: path })).toContain('is refused')
  })

  test.each([
    ['a link to a file', '../outside/secret.txt', 'link'],
    ['a link to a neighbour that differs by case alone', '../root/secret.txt', 'link'],
    ['a link to a neighbour whose name begins alike', '../Root2/secret.txt', 'link'],
    ['a link to an absolute path', '/etc/passwd', 'link'],
    ['a linked folder', '../outside', 'link/secret.txt'],
    ['the root of the machine', '/', 'link/etc/passwd'],
  ])('by %s', async (_name, target, path) => {
    start(SAMPLE)
    project.link(target, 'link')
    expect(await refusal('read_file', { relative_path: path })).toContain('leads outside the project')
    expect(await found('search_for_pattern', { substring_pattern: 'secret' })).toMatchObject({ matches: 0 })
  })

  test('by a chain of links', async () => {
    start(SAMPLE)
    project.link('two', 'one')
    project.link('../outside/secret.txt', 'two')
    expect(await refusal('read_file', { relative_path: 'one' })).toContain('leads outside the project')
  })

  test('a link in a circle is refused', async () => {
    start()
    project.link('b', 'a')
    project.link('a', 'b')
    expect(await refusal('read_file', { relative_path: 'a' })).toContain('circle')
  })

  test('a path in another case is another path', async () => {
    start(SAMPLE)
    expect(await refusal('read_file', { relative_path: 'SRC/A.TS' })).toContain('there is no such file')
  })

  test.skipIf(process.platform === 'win32')('pipes, sockets and devices are refused and do not hang', async () => {
    start(SAMPLE)
    execFileSync(MAKE_PIPE, [join(project.root, 'pipe')])
    const socket = createServer().listen(join(project.root, 'socket'))
    project.link('/dev/zero', 'zero')
    try {
      for (const path of ['pipe', 'socket'])
        expect(await refusal('read_file', { relative_path: path })).toContain('device, a pipe or a socket')
      expect(await refusal('read_file', { relative_path: 'zero' })).toContain('leads outside')
      expect((await found('list_dir', { relative_path: '.' })).files).toEqual(['main.py'])
      expect(await found('search_for_pattern', { substring_pattern: 'print' })).toMatchObject({ matches: 1 })
    } finally {
      socket.close()
    }
  })

  test('the reason never shows where the root lies', async () => {
    start(SAMPLE)
    for (const path of ['nowhere', '../x', 'main.py/x', 'x'.repeat(300)])
      expect(await refusal('read_file', { relative_path: path })).not.toContain(project.root)
  })

  test('a file that is swapped for a link all the time gives its own text or a refusal, never the other', async () => {
    start({ file: 'mine' })
    const [file, hidden] = [join(project.root, 'file'), join(project.root, 'hidden')]
    let isSwapping = true
    const swapping = (async () => {
      while (isSwapping) {
        renameSync(file, hidden)
        symlinkSync(join(project.outside, 'secret.txt'), file)
        await new Promise(setImmediate)
        unlinkSync(file)
        renameSync(hidden, file)
        await new Promise(resolve => setTimeout(resolve, 1))
      }
    })()
    const seen: string[] = []
    const count = (text: string): number => seen.filter(other => other.includes(text)).length
    while (seen.length < 2000 && (count('mine') < 100 || count('leads outside') < 100))
      seen.push((await call('read_file', { relative_path: 'file' })).content[0]?.text ?? '')
    isSwapping = false
    await swapping
    expect(seen).not.toContain('secret')
    expect(seen.join()).toContain('leads outside')
    expect(seen).toContain('mine')
  })

  test('a root that is not there fails the opening with a hint', async () => {
    start()
    const nowhere = files({ root: join(project.root, 'nowhere'), version: '1' })
    await expect(talk(nowhere, 'tools/list')).rejects.toThrow('check "root" in the configuration')
  })
})

describe('find_file', () => {
  test('finds by name and by path', async () => {
    start(SAMPLE)
    expect(await found('find_file', { file_mask: '*.ts' })).toEqual({ files: ['src/a.ts', 'src/deep/b.ts'] })
    expect(await found('find_file', { file_mask: 'src/*.ts' })).toEqual({ files: ['src/a.ts'] })
    expect(await found('find_file', { file_mask: '*', relative_path: 'src/deep' })).toEqual({
      files: ['src/deep/b.ts'],
    })
    expect(await found('find_file', { file_mask: 'index.js', include_ignored: true })).toEqual({
      files: ['node_modules/x/index.js'],
    })
  })

  test('stops at a thousand', async () => {
    start(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`f${i}`, ''])))
    const { files, truncated } = await found('find_file', { file_mask: '*' })
    expect([(files as []).length, truncated]).toEqual([1000, true])
  })

  test('refuses a pattern that is none', async () => {
    start()
    expect((await misuse('find_file', { file_mask: '' })).message).toContain('"file_mask"')
  })
})

describe('search_for_pattern', () => {
  test('shows where it fits', async () => {
    start(SAMPLE)
    expect(await found('search_for_pattern', { substring_pattern: 't(wo|hree)' })).toEqual({
      files: [
        {
          path: 'src/a.ts',
          matches: [
            { line: 2, text: 'two' },
            { line: 3, text: 'three' },
          ],
        },
        { path: 'src/deep/b.ts', matches: [{ line: 1, text: 'two' }] },
      ],
      matches: 3,
      searched: 4,
      passed_over: 0,
    })
  })

  test('shows the lines around a match', async () => {
    start(SAMPLE)
    const args = {
      substring_pattern: '^two$',
      context_lines_before: 1,
      context_lines_after: 5,
      relative_path: 'src/a.ts',
    }
    expect(await found('search_for_pattern', args)).toMatchObject({
      files: [{ path: 'src/a.ts', matches: [{ line: 2, first_line: 1, text: 'one\ntwo\nthree\n' }] }],
    })
  })

  test('matches across lines if the pattern does, and shows all of them', async () => {
    start(SAMPLE)
    expect(await found('search_for_pattern', { substring_pattern: 'one\\ntwo' })).toMatchObject({
      files: [{ matches: [{ line: 1, text: 'one\ntwo' }] }],
    })
  })

  test('respects the globs, the folder and the case', async () => {
    start(SAMPLE)
    const search = async (args: PlainObject) =>
      (
        (await found('search_for_pattern', { substring_pattern: 'TWO', case_sensitive: false, ...args })).files as {
          path: string
        }[]
      ).map(({ path }) => path)
    expect(await search({})).toEqual(['src/a.ts', 'src/deep/b.ts'])
    expect(await search({ case_sensitive: true })).toEqual([])
    expect(await search({ relative_path: 'src/deep' })).toEqual(['src/deep/b.ts'])
    expect(await search({ paths_exclude_glob: '**/deep/*' })).toEqual(['src/a.ts'])
    expect(await search({ paths_include_glob: '*.js', include_ignored: true })).toEqual(['node_modules/x/index.js'])
  })

  test('an empty match is a match, and does not go on for ever', async () => {
    start({ a: 'x\ny\n' })
    expect(await found('search_for_pattern', { substring_pattern: '^' })).toMatchObject({ matches: 3 })
  })

  test('skips binary and large files', async () => {
    start({ text: 'needle', binary: Buffer.from('needle\0'), large: Buffer.alloc(2 * 1024 * 1024 + 1, 'needle ') })
    expect(await found('search_for_pattern', { substring_pattern: 'needle' })).toMatchObject({
      matches: 1,
      searched: 1,
      passed_over: 2,
    })
  })

  test('stops at the number of matches asked for', async () => {
    start({ a: 'x\n'.repeat(50), b: 'x\n' })
    const result = await found('search_for_pattern', { substring_pattern: 'x', max_matches: 20 })
    expect(result).toMatchObject({ matches: 20, stopped: expect.stringContaining('more than 20 matches') })
  })

  test('cuts long lines', async () => {
    start({ a: `${'x'.repeat(10_000)}needle` })
    const { files } = await found('search_for_pattern', { substring_pattern: 'needle' })
    expect(JSON.stringify(files).length).toBeLessThan(700)
  })

  test('reports progress', async () => {
    start(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`f${i}`, 'x'])))
    const search = await talk(server, 'tools/call', {
      name: 'search_for_pattern',
      arguments: { substring_pattern: 'x' },
      _meta: { progressToken: 'p' },
    })
    await search.result()
    expect(noticesOf(search).map(({ params }) => params)).toEqual([
      { progressToken: 'p', progress: 64 },
      { progressToken: 'p', progress: 100 },
    ])
  })

  test.each([
    [{ substring_pattern: '(' }, 'Invalid regular expression'],
    [{ substring_pattern: '' }, '1 to 2000 characters'],
    [{ substring_pattern: 'x', max_matches: 0 }, 'from 1 to 1000'],
    [{ substring_pattern: 'x', context_lines_after: 21 }, 'from 0 to 20'],
    [{ substring_pattern: 'x', paths_include_glob: '' }, 'paths_include_glob'],
  ])('refuses %j', async (args, words) => {
    start(SAMPLE)
    expect((await misuse('search_for_pattern', args)).message).toContain(words)
  })

  test('a pattern that would never end is stopped, and other calls are answered meanwhile', async () => {
    start({ evil: `${'a'.repeat(50)}b` })
    const search = await talk(server, 'tools/call', {
      name: 'search_for_pattern',
      arguments: { substring_pattern: '(a+)+$' },
    })
    await call('list_dir', { relative_path: '.' })
    expect(search.frames).toEqual([])
    const result = (await search.result()) as Result
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { stopped: expect.stringContaining('took too long') },
    })
  })

  test('a cancelled search is stopped, and the next one in the queue starts', async () => {
    start({ evil: `${'a'.repeat(50)}b` })
    const evil = { name: 'search_for_pattern', arguments: { substring_pattern: '(a+)+$' } }
    const [first, second] = [await talk(server, 'tools/call', evil), await talk(server, 'tools/call', evil)]
    const honest = { name: 'search_for_pattern', arguments: { substring_pattern: 'b' } }
    const [third, fourth] = [await talk(server, 'tools/call', honest), await talk(server, 'tools/call', honest)]
    fourth.abort.abort({ kind: 'gone' }) // left while it waited
    for (const { abort } of [first, second]) abort.abort({ kind: 'gone' })
    expect(await third.result()).toMatchObject({ structuredContent: { matches: 1 } })
    expect(await found('search_for_pattern', honest.arguments)).toMatchObject({ matches: 1 })
    expect(fourth.frames).toEqual([])
  })

  test('many searches run in turn, up to a limit', async () => {
    start({ a: 'x' })
    const search = { name: 'search_for_pattern', arguments: { substring_pattern: 'x' } }
    const talks = await Promise.all(Array.from({ length: 40 }, () => talk(server, 'tools/call', search)))
    const results = (await Promise.all(talks.map(({ result }) => result()))) as Result[]
    expect(results.filter(({ isError }) => !isError).length).toBe(34)
    expect(results.find(({ isError }) => isError)?.content[0]?.text).toContain('try again in a moment')
  })
})
