import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from './load.ts'
import type { Snapshot } from './snapshot.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-builtin-'))
})
afterAll(() => rm(folder, { recursive: true }))

const load = async (entry: object, env = {}): Promise<Snapshot> => {
  const file = join(folder, 'mcp.json')
  await writeFile(file, JSON.stringify({ mcpServers: { it: entry } }))
  return loadConfig({ file, env })
}
const rootOf = async (entry: object, env = {}) => (await load(entry, env)).servers.get('it')

describe('a server that comes with the gateway', () => {
  it('takes no credentials, and warns of them', async () => {
    const credentials = { ada: { headers: { authorization: 'Bearer ada' } } }
    const env = { WHO: '${caller.name}' }
    const { warnings, servers } = await load({ builtin: 'demo', credentials, env })
    expect(warnings).toEqual(['mcpServers.it: ignored keys that go with "url" or "command": "env", "credentials"'])
    expect(servers.get('it')).toEqual({ name: 'it', disabled: false, kind: 'builtin', builtin: 'demo' })
  })

  it('cannot be at a place that depends on who calls', async () => {
    const reason = 'root: ${caller.name} is not understood (write ${NAME}, ${NAME:-default} or ${file:PATH})'
    expect(await rootOf({ builtin: 'files', root: '/home/${caller.name}' })).toMatchObject({
      kind: 'unavailable',
      reason,
    })
  })
})

describe('the root of "files"', () => {
  it('is relative to the configuration file', async () => {
    expect(await rootOf({ builtin: 'files', root: '.' })).toMatchObject({ builtin: 'files', root: folder })
    expect(await rootOf({ builtin: 'files', root: '../x' })).toMatchObject({ root: resolve(folder, '../x') })
    expect(await rootOf({ builtin: 'files', root: '/srv/x' })).toMatchObject({ root: resolve('/srv/x') })
  })

  it('is the current directory when absent', async () => {
    expect(await rootOf({ builtin: 'files' })).toMatchObject({ root: process.cwd() })
  })

  it('may come from the environment', async () => {
    expect(await rootOf({ builtin: 'files', root: '${HERE}/a' }, { HERE: '/srv' })).toMatchObject({
      root: resolve('/srv/a'),
    })
    expect(await rootOf({ builtin: 'files', root: '${HERE}' })).toMatchObject({
      kind: 'unavailable',
      reason: 'root: the variable HERE is not set',
    })
  })

  it('means nothing to other servers', async () => {
    const { warnings, servers } = await load({ builtin: 'demo', root: '.' })
    expect(warnings).toEqual(['mcpServers.it: "root" is ignored; it goes with "builtin": "files"'])
    expect(servers.get('it')).not.toHaveProperty('root')
  })

  it('is not empty', async () => {
    await expect(load({ builtin: 'files', root: '' })).rejects.toThrow('mcpServers.it.root: expected a folder')
  })
})
