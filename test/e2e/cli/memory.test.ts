import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { runCommand } from './in-process.ts'
import { endPrograms, startServe } from './program.ts'

const folders: string[] = []
let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'dragoman-memory-'))
  folders.push(data)
})
afterAll(async () => {
  await endPrograms()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Runs `dragoman memory …` on this test's data directory, with a text on standard input. */
const memory = (args: readonly string[], input = '') =>
  runCommand(['memory', ...args], { env: { DRAGOMAN_DATA: data }, input })

const parsed = async <T>(args: readonly string[]): Promise<T> =>
  JSON.parse((await memory([...args, '--json'])).stdout) as T

interface Fact {
  readonly fact: string
}
type Found = { readonly facts?: readonly Fact[]; readonly message?: string }

const resultOf = (answer: unknown): Found =>
  (answer as { structuredContent: { result: Found } }).structuredContent.result

const factsFor = async (client: Pick<Client, 'callTool'>, query: string): Promise<readonly string[]> => {
  const answer = await client.callTool({ name: 'search_memory_facts', arguments: { query } })
  return (resultOf(answer).facts ?? []).map(({ fact }) => fact)
}

const openV1 = async (origin: string): Promise<Client> => {
  const client = new Client({ name: 'v1', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp/`)))
  return client
}

const bytesOfStore = (): string =>
  readdirSync(join(data, 'memory'))
    .map(file => readFileSync(join(data, 'memory', file), 'latin1'))
    .join('')

it('the command line and clients work on one memory: add, search, restart, export, forget, stats', {
  timeout: 120_000,
}, async () => {
  const env = { DRAGOMAN_DATA: data }
  const morning = await startServe([], env)
  expect(
    (await memory(['add', 'Ann', 'Lee', 'keeps', 'her', 'bicycle', 'in', 'the', 'Elm', 'Street', 'cellar.'])).code,
  ).toBe(0)
  const v1 = await openV1(morning.origin)
  expect((await v1.listTools()).tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['add_memory', 'read_file']),
  )
  const added = await v1.callTool({
    name: 'add_memory',
    arguments: { name: 'Holiday', episode_body: 'Quillon Farnsworth flew to Lisbon on 3 May 2025.' },
  })
  expect(resultOf(added).message).toBe("Episode 'Holiday' queued for processing in group 'main'")
  const rest = await fetch(`${morning.origin}/actions/write_memory`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'The office plant is called Ferdinand.' }),
  })
  expect(((await rest.json()) as { structuredContent: object }).structuredContent).toMatchObject({
    result: { message: 'Remembered', group_id: 'main' },
  })
  expect((await factsFor(v1, "Where is Ann's bicycle?"))[0]).toContain('Elm Street cellar')
  expect((await memory(['search', 'who', 'flew', 'to', 'Lisbon?'])).stdout).toContain(
    'Quillon Farnsworth flew to Lisbon',
  )
  await v1.close()
  morning.signal('SIGTERM')
  expect(await morning.ended).toBe(0)

  const evening = await startServe([], env)
  const v2 = new ClientV2({ name: 'v2', version: '1' })
  await v2.connect(new TransportV2(new URL(`${evening.origin}/mcp`)))
  const again = await v2.callTool({ name: 'search_memory_facts', arguments: { query: 'plant called Ferdinand' } })
  expect(resultOf(again).facts?.[0]?.fact).toContain('Ferdinand')
  expect((await memory(['facts', 'Lisbon', '2025'])).stdout).toMatch(
    /Quillon Farnsworth flew to Lisbon .*\(since 2025-05-03\)/,
  )

  const file = join(data, 'export.jsonl')
  expect((await memory(['export', file])).stdout).toMatch(/^Exported \d+ lines of the memory of workspace default/)
  const copied = await memory(['import', file, '--workspace', 'copy'])
  expect([copied.code, copied.stdout]).toEqual([0, expect.stringContaining('Imported (dragoman): 3 new episodes')])
  expect((await memory(['export', '--workspace', 'copy'])).stdout).toBe(readFileSync(file, 'utf8'))
  expect((await memory(['forget', '--group', 'main', '--workspace', 'copy', '--yes'])).code).toBe(0)
  const backup = join(data, 'copy.db')
  expect((await memory(['backup', backup])).code).toBe(0)
  expect(readFileSync(backup, 'latin1')).toContain('Quillon')

  expect(bytesOfStore()).toContain('Quillon')
  const forgotten = await memory(['forget', '--subject', 'Quillon Farnsworth', '--yes'])
  expect([forgotten.code, forgotten.stdout]).toEqual([
    0,
    expect.stringMatching(/^Erased 1 episode, .* is left in the files\.\n$/),
  ])
  expect(bytesOfStore()).not.toContain('Quillon')
  expect(
    JSON.stringify(await v2.callTool({ name: 'search_memory_facts', arguments: { query: 'Quillon Lisbon' } })),
  ).not.toContain('Farnsworth')
  await v2.close()

  const stats = await parsed<{ owner: string; groups: object[]; jobs: object }>(['stats'])
  expect(stats).toMatchObject({ owner: 'workspace default', groups: [{ group: 'main', episodes: 2 }] })
  expect((await memory(['stats'])).stdout).toMatch(
    /^The memory of workspace default, in .*\n\nGROUP +EPISODES.*\nmain +2 /,
  )
})

describe('dragoman memory', { timeout: 60_000 }, () => {
  it('shows its actions', async () => {
    for (const args of [[], ['--help']]) {
      const { code, stdout } = await memory(args)
      expect(code).toBe(0)
      for (const action of ['add', 'search', 'facts', 'episodes', 'export', 'import', 'backup', 'forget', 'stats'])
        expect(stdout).toMatch(new RegExp(`^ {2}${action}\\b`, 'm'))
    }
  })

  it('does not create a memory by reading it, and names the existing ones', async () => {
    await memory(['add', 'x', '--principal', 'ada'])
    const { code, stderr } = await memory(['search', 'x', '--workspace', 'typo'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('there are those of principal ada')])
    expect(readdirSync(join(data, 'memory')).filter(name => name.endsWith('.db'))).toHaveLength(1)
  })

  it('erases nothing without a confirmation', async () => {
    await memory(['add', 'Ann likes tea.'])
    const asked = await memory(['forget', '--subject', 'Ann'], 'y\n')
    expect([asked.code, asked.stderr]).toEqual([
      2,
      expect.stringContaining('standard input is not a terminal; give --yes'),
    ])
    const all = await memory(['forget', '--yes'])
    expect([all.code, all.stderr]).toEqual([2, expect.stringContaining('expected what to forget')])
    expect((await memory(['search', 'tea'])).stdout).toContain('Ann likes tea.')
    const there = await memory(['backup', join(data, 'memory')])
    expect([there.code, there.stderr]).toEqual([2, expect.stringContaining('is there already; name another file')])
  })

  it('reads and writes pipes, and reports invalid lines', async () => {
    expect((await memory(['add'], 'From standard input.\nTwo lines.\n')).code).toBe(0)
    const lines = '{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea"]}\nnonsense\n'
    const { code, stdout } = await memory(['import', '-', '--group', 'old'], lines)
    expect(code).toBe(1)
    expect(stdout).toBe(
      'Imported (server-memory): 1 new episode.\n1 could not be imported:\n  line 2: is not JSON\n' +
        'Everything else is kept. Correct these and import again: what is there already stays as it is.\n',
    )
    const exported = (await memory(['export', '--group', 'old'])).stdout
    expect(exported).toContain('likes tea')
    expect(exported).not.toContain('standard input')
    expect((await memory(['episodes', '--group', 'old'])).stdout).toMatch(/old +message +Ann\n$/)
  })

  it('prints no control characters of stored text', async () => {
    await memory(['add'], 'A tale \u001b[31mof red\u001b[0m ink')
    for (const args of [['search', 'tale'], ['facts', 'tale'], ['episodes']])
      expect((await memory(args)).stdout).not.toContain('\u001b')
  })

  it('uses the memory server of a configuration, and prints none of its secrets', async () => {
    const file = join(data, 'mcp.json')
    const write = (settings: object) =>
      writeFileSync(file, JSON.stringify({ mcpServers: { mind: { builtin: 'memory', memory: settings } } }))
    const extraction = { url: 'http://127.0.0.1:1/v1', key: 'c4nary-key', model: 'm' }
    write({ tenant: 'principal', group: 'team', extraction })
    const whose = await memory(['add', 'x', '--config', file])
    expect([whose.code, whose.stderr]).toEqual([2, expect.stringContaining('give --principal NAME')])
    const added = await memory(['add', 'Something to read.', '--config', file, '--principal', 'ada'])
    expect(added.stdout).toContain('in group team')
    const jobs = await memory(['jobs', '--principal', 'ada'])
    expect(jobs.stdout).toMatch(/extract +waiting +team/)
    write({ database: 'postgres://u:c4nary-key@127.0.0.1:1/x' })
    const down = await memory(['stats', '--config', file])
    expect([down.code, down.stdout]).toEqual([1, ''])
    for (const { stdout, stderr } of [whose, added, jobs, down]) expect(stdout + stderr).not.toContain('c4nary')
  })
})
