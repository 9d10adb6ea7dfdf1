import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { call } from './call.ts'
import { endPrograms, type Program, startProgram, startServe } from './program.ts'

const RECORDER = new URL('../../support/record-loads.mjs', import.meta.url).href
const MODULE = /^(?:src|node_modules)\//
const MEMORY_MODULE = /servers\/memory\/|node_modules\/(?:pg|chrono-node|stemmer)\/|sqlite|stores\/postgres/

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-loads-'))
  await writeFile(join(folder, 'demo.json'), JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

/** A program whose modules are recorded: the bundler makes a function with the path of each module, which runs its code. */
const recordLoads = async () => {
  const reports = await mkdtemp(join(folder, 'coverage-'))
  const env = { NODE_OPTIONS: `--import=${RECORDER}`, NODE_V8_COVERAGE: reports }
  const modules = async (): Promise<string[]> => {
    const files = await readdir(reports)
    const texts = await Promise.all(files.map(file => readFile(join(reports, file), 'utf8')))
    return [...new Set(texts.flatMap(modulesIn))]
  }
  /** The modules that a running program has loaded until now. */
  const modulesUntilNow = async ({ signal }: Program): Promise<string[]> => {
    const count = (await readdir(reports)).length
    signal('SIGUSR2')
    return vi.waitFor(async () => {
      expect((await readdir(reports)).length).toBeGreaterThan(count)
      return modules()
    }, 10_000)
  }
  return { env, modules, modulesUntilNow }
}

interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly count: number }[]
    }[]
  }[]
}

const modulesIn = (text: string): string[] =>
  (JSON.parse(text) as Coverage).result.flatMap(({ url, functions }) => [
    url,
    ...functions.flatMap(({ functionName, ranges }) =>
      MODULE.test(functionName) && ranges[0]?.count ? functionName : [],
    ),
  ])

const modulesOf = async (args: readonly string[]): Promise<string[]> => {
  const { env, modules } = await recordLoads()
  expect(await startProgram(args, env).ended).toBe(0)
  return modules()
}

const ofMemory = (modules: readonly string[]): string[] => modules.filter(url => MEMORY_MODULE.test(url))

it.each([[['--version']], [['check', 'demo.json']]])(
  '%j loads no module of the memory server',
  async ([name, file]) => {
    const modules = await modulesOf([name ?? '', ...(file ? [join(folder, file)] : [])])
    expect(modules.join('\n')).toContain('src/main.ts')
    expect(ofMemory(modules)).toEqual([])
  },
)

// Without a "store", state is in SQLite; nothing of PostgreSQL is loaded.
it.each([
  [['--ephemeral'], MEMORY_MODULE],
  [[], /servers\/memory\/|node_modules\/pg\/|postgres/],
])('a gateway without a memory server loads no module of it: %j', async (flags, unused) => {
  const { env, modulesUntilNow } = await recordLoads()
  const gateway = await startServe(['--config', join(folder, 'demo.json'), ...flags], env)
  expect(await call(`${gateway.origin}/mcp`, 'tools/list')).toMatchObject({ result: { tools: expect.any(Array) } })
  const loaded = await modulesUntilNow(gateway)
  expect(loaded.join('\n')).toContain('src/servers/demo/')
  expect(loaded.filter(url => unused.test(url))).toEqual([])
  gateway.signal('SIGTERM')
  await gateway.ended
})

it('a gateway with a plain remote server loads no module of a built-in one, and no client for unusual ones', async () => {
  const file = join(folder, 'remote.json')
  await writeFile(file, JSON.stringify({ mcpServers: { remote: { url: 'http://127.0.0.1:9/mcp' } } }))
  const { env, modulesUntilNow } = await recordLoads()
  const gateway = await startServe(['--config', file, '--ephemeral'], env)
  expect(await call(`${gateway.origin}/mcp`, 'tools/list')).toBeDefined()
  const loaded = await modulesUntilNow(gateway)
  expect(loaded).toContain('src/app/gateway.ts')
  expect(loaded.filter(url => /src\/servers\/(?:demo|files|memory)\/|\/undici\.js$/.test(url))).toEqual([])
  gateway.signal('SIGTERM')
  await gateway.ended
})

it('tools of a running daemon loads the few modules that it needs', async () => {
  const data = join(folder, 'data')
  const gateway = await startServe(['--config', join(folder, 'demo.json'), '--data', data])
  const modules = await modulesOf(['tools', '--data', data])
  const own = modules.filter(url => url.startsWith('src/'))
  expect(own.join('\n')).toContain('src/app/client-daemon.ts')
  expect(modules.filter(url => /node_modules|workspace\/|health\/|fronts\/|config\/load/.test(url))).toEqual([])
  expect(own.length).toBeLessThan(60)
  gateway.signal('SIGTERM')
  await gateway.ended
})

it('the record shows the memory server where it is used', async () => {
  const modules = await modulesOf(['memory', 'add', 'There is something.'])
  expect(ofMemory(modules).join('\n')).toMatch(/servers\/memory\//)
})

it('a budget loads what finds words with the first search, and nothing of the memory server', async () => {
  const file = join(folder, 'budget.json')
  const workspaces = { default: { servers: ['demo'], budget: { tokens: 1000 }, trim: true } }
  await writeFile(file, JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } }, workspaces }))
  const { env, modulesUntilNow } = await recordLoads()
  const gateway = await startServe(['--config', file, '--ephemeral'], env)
  const list = await call(`${gateway.origin}/mcp`, 'tools/list')
  expect(JSON.stringify(list)).toContain('search_tools')
  expect(ofMemory(await modulesUntilNow(gateway))).toEqual([])
  const search = { name: 'search_tools', arguments: { query: 'echo' } }
  expect(JSON.stringify(await call(`${gateway.origin}/mcp`, 'tools/call', search))).toContain('example-echo')
  const loaded = ofMemory(await modulesUntilNow(gateway))
  expect(loaded.join('\n')).toContain('node_modules/stemmer/')
  expect(loaded.filter(url => !url.includes('node_modules/stemmer/'))).toEqual([])
  gateway.signal('SIGTERM')
  await gateway.ended
})
