import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compareConfigs } from './difference.ts'
import { loadConfig } from './load.ts'
import type { Snapshot } from './snapshot.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-memory-config-'))
  await writeFile(join(folder, 'key'), 'c4nary-file\n')
})
afterAll(() => rm(folder, { recursive: true }))

const load = async (memory: object | undefined, env = {}, more: object = {}): Promise<Snapshot> => {
  const file = join(folder, 'mcp.json')
  await writeFile(
    file,
    JSON.stringify({ mcpServers: { it: { builtin: 'memory', ...(memory && { memory }), ...more } } }),
  )
  return loadConfig({ file, env })
}
const server = async (memory?: object, env = {}) => (await load(memory, env)).servers.get('it')

describe('the settings of "memory"', () => {
  it('are those of a memory for each workspace, in a file, without any model, when absent', async () => {
    expect(await server()).toEqual({
      name: 'it',
      disabled: false,
      kind: 'builtin',
      builtin: 'memory',
      tenant: 'workspace',
      group: 'main',
    })
  })

  it('make it unavailable when the address of a model is none, without printing it', async () => {
    const entry = await server({ embeddings: { url: 'ftp://c4nary.example', model: 'e' } })
    expect(entry).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringMatching(/^memory\.embeddings\.url is not an/),
    })
    expect(JSON.stringify(entry)).not.toContain('c4nary')
  })

  it('take addresses and keys from the environment and from files', async () => {
    const extraction = { url: '${BASE}/v1', key: '${file:key}', model: 'm', smallModel: 's', dailyTokens: 1000 }
    const embeddings = { url: 'http://127.0.0.1:1/v1', key: '${KEY}', model: 'e', dimensions: 256 }
    const memory = { tenant: 'principal', group: 'team', database: 'postgres://u:${KEY}@db/x', extraction, embeddings }
    expect(await server(memory, { BASE: 'http://x', KEY: 'k' })).toMatchObject({
      tenant: 'principal',
      group: 'team',
      database: 'postgres://u:k@db/x',
      extraction: { url: 'http://x/v1', key: 'c4nary-file', model: 'm', smallModel: 's', dailyTokens: 1000 },
      embeddings: { key: 'k', dimensions: 256 },
    })
  })

  it.each([
    [{ database: '${NO}' }, 'memory.database: the variable NO is not set'],
    [{ extraction: { url: '${NO}', model: 'm' } }, 'memory.extraction.url: the variable NO is not set'],
    [
      { embeddings: { url: 'http://x', key: '${file:no}', model: 'm' } },
      'memory.embeddings.key: the file no cannot be read',
    ],
  ])('%j make it unavailable, and stop nothing else', async (memory, reason) => {
    expect(await server(memory)).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining(reason) })
  })

  it.each([
    [{ tenant: 'user' }, 'mcpServers.it.memory.tenant: expected "workspace" or "principal"'],
    [{ group: 'a/b' }, 'mcpServers.it.memory.group: expected letters, digits, "-" and "_"'],
    [{ database: '' }, 'mcpServers.it.memory.database: expected a string that is not empty'],
    [{ extraction: { model: 'm' } }, 'mcpServers.it.memory.extraction.url: expected a string'],
    [{ extraction: { url: 'http://x', model: 'm', dailyTokens: 0 } }, 'dailyTokens: expected a whole number from 1 up'],
    [{ grup: 'x' }, 'mcpServers.it.memory.grup: unknown key'],
    [[], 'mcpServers.it.memory: expected an object'],
  ])('%j are wrong', async (memory, message) => {
    await expect(load(memory)).rejects.toThrow(message)
  })

  it('mean nothing to other servers', async () => {
    const { warnings } = await load({}, {}, { builtin: 'demo' })
    expect(warnings).toEqual(['mcpServers.it: "memory" is ignored; it goes with "builtin": "memory"'])
  })

  it('are compared without a word of what may be secret', async () => {
    const endpoint = (key: string) => ({ url: `http://x/${key}`, key, model: 'm' })
    const settings = (key: string) => ({
      database: `postgres://u:${key}@db/x`,
      extraction: endpoint(key),
      embeddings: endpoint(key),
    })
    const before = await load({ ...settings('c4nary-1'), group: 'a' })
    const after = await load({ ...settings('c4nary-2'), group: 'b' })
    const difference = compareConfigs(before, after)
    expect(difference.servers[0]?.details).toContainEqual({ at: 'group', from: 'a', to: 'b' })
    expect(difference.servers[0]?.details.map(({ at }) => at)).toEqual(
      expect.arrayContaining(['database', 'extraction.key', 'embeddings.url']),
    )
    expect(JSON.stringify(difference)).not.toContain('c4nary')
  })
})
