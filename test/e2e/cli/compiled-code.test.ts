import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { call } from './call.ts'
import { endPrograms, type Program, startProgram, startServe } from './program.ts'

let folder: string
let compiled: string
let env: Record<string, string>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-compiled-'))
  compiled = join(folder, 'dragoman/compiled')
  env = { XDG_CACHE_HOME: folder }
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const version = async (): Promise<string> => {
  const program = startProgram(['--version'], env)
  expect(await program.ended).toBe(0)
  expect(program.stderr()).toBe('')
  return program.stdout()
}

test('a start keeps what it has compiled, and the next one uses it', async () => {
  const printed = await version()
  const [name = ''] = await readdir(compiled)
  const { ino } = await stat(join(compiled, name))
  expect(await version()).toBe(printed)
  expect((await stat(join(compiled, name))).ino).toBe(ino) // not written again, so it was accepted
})

test.each([
  ['damaged', async (file: string) => writeFile(file, (await readFile(file)).fill(7, 40, 4000))],
  ['that of another build', async (file: string) => writeFile(file, 'something else')],
  ['writable for others', (file: string) => chmod(file, 0o666)],
])('if it is %s, it is compiled again', async (_, change) => {
  await version()
  const [name = ''] = await readdir(compiled)
  const file = join(compiled, name)
  const { ino } = await stat(file)
  await change(file)
  expect(await version()).toMatch(/^\d+\.\d+\.\d+/)
  expect((await stat(file)).ino).not.toBe(ino)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a word that is no command keeps nothing', async () => {
  await version()
  const before = await readdir(compiled)
  expect(await startProgram(['srve'], env).ended).toBe(2)
  expect(await readdir(compiled)).toEqual(before)
})

test('without a folder to write to, nothing is kept, and nothing is said', async () => {
  await writeFile(join(folder, 'file'), '')
  const program = startProgram(['--version'], { XDG_CACHE_HOME: join(folder, 'file') })
  expect(await program.ended).toBe(0)
  expect(program.stderr()).toBe('')
})

test('a gateway and the thread of its memory keep theirs, and answer with it', async () => {
  const kept = async () => (await readdir(compiled)).map(name => name.split('-')[0])
  const answers = async (): Promise<Program> => {
    const gateway = await startServe(['--no-config', '--ephemeral'], env)
    expect(await call(`${gateway.origin}/mcp`, 'tools/list')).toMatchObject({ result: { tools: expect.any(Array) } })
    return gateway
  }
  const first = await answers()
  // The thread of a gateway that ends sooner keeps nothing.
  await vi.waitFor(async () => expect(await kept()).toEqual(expect.arrayContaining(['serve', 'memoryThread'])), 20_000)
  const second = await answers()
  for (const gateway of [first, second]) gateway.signal('SIGTERM')
  expect(await Promise.all([first.ended, second.ended])).toEqual([0, 0])
})
