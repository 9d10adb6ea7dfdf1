import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConfigDifference, compareConfigs, hasNoChanges } from './difference.ts'
import { loadConfig } from './load.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-difference-'))
})
afterAll(() => rm(folder, { recursive: true }))

const load = async (config: object) => {
  const file = join(folder, `${crypto.randomUUID()}.json`)
  await writeFile(file, JSON.stringify(config))
  return loadConfig({ file, env: { KEY: 'canary-variable' } })
}
const between = async (before: object, after: object): Promise<ConfigDifference> =>
  compareConfigs(await load(before), await load(after))

const REMOTE = { url: 'https://example.test/mcp?key=canary-url', headers: { 'x-key': 'canary-header' } }

test('equal configurations differ in nothing, however they are written', async () => {
  const difference = await between(
    { mcpServers: { a: REMOTE }, workspaces: { default: { servers: ['a'] } } },
    {
      workspaces: { default: { servers: '*', names: 'plain', policy: {} } },
      mcpServers: { a: { timeout: 300_000, ...REMOTE } },
    },
  )
  expect(hasNoChanges(difference)).toBe(true)
})

test('what differs by caller is compared too, and not shown', async () => {
  const personal = (secret: string) => ({
    mcpServers: { a: { ...REMOTE, credentials: { ada: { headers: { 'x-key': secret } }, '*': { headers: {} } } } },
  })
  expect(hasNoChanges(await between(personal('canary-one'), personal('canary-one')))).toBe(true)
  const { servers } = await between(personal('canary-one'), personal('canary-two'))
  expect(servers).toEqual([{ name: 'a', kind: 'changed', details: [{ at: 'credentials' }] }])
  expect(JSON.stringify(servers)).not.toContain('canary')
})

test('what is added, removed and changed is named, values only where they can be no secrets', async () => {
  const difference = await between(
    {
      mcpServers: { a: REMOTE, b: { command: 'x', args: ['canary-argument'], env: { K: '${KEY}' } }, c: REMOTE },
      policies: { p: { readOnly: true }, q: {} },
      workspaces: {
        w: { servers: ['a'], instructions: 'one', tools: { 'a/x': { arguments: { fixed: { t: 'canary-fixed' } } } } },
        v: { servers: ['a', 'b', 'c'] },
      },
    },
    {
      mcpServers: {
        a: { ...REMOTE, url: 'https://example.test/mcp?key=canary-other', timeout: 5000 },
        b: { command: 'x', args: ['canary-arguments'], env: { K: 'canary-text' } },
        d: { command: 'canary-command' },
      },
      policies: { p: { deny: { tools: ['a/*'] } } },
      workspaces: {
        w: {
          servers: ['a'],
          instructions: 'two',
          tools: { 'a/x': { name: 'y', arguments: { fixed: { t: 'canary' } } } },
        },
        u: { servers: ['a', 'b', 'd'] },
      },
      limits: { batchSize: 3 },
    },
  )
  expect(difference).toEqual({
    servers: [
      { name: 'a', kind: 'changed', details: [{ at: 'url' }, { at: 'timeout', from: '300000', to: '5000' }] },
      { name: 'b', kind: 'changed', details: [{ at: 'args' }, { at: 'env.K' }] },
      { name: 'c', kind: 'removed', details: [] },
      { name: 'd', kind: 'added', details: [{ at: 'kind', to: 'process' }] },
    ],
    workspaces: [
      {
        name: 'w',
        kind: 'changed',
        details: [
          { at: 'instructions' },
          { at: 'tools["a/x"].arguments.fixed.t' },
          { at: 'tools["a/x"].name', to: 'y' },
        ],
      },
      { name: 'v', kind: 'removed', details: [] },
      {
        name: 'u',
        kind: 'added',
        details: [
          { at: 'servers', to: '["a","b","d"]' },
          { at: 'names', to: 'prefix' },
        ],
      },
    ],
    policies: [
      {
        name: 'p',
        kind: 'changed',
        details: [
          { at: 'readOnly', from: 'true', to: 'false' },
          { at: 'deny.tools', to: '["a/*"]' },
        ],
      },
      { name: 'q', kind: 'removed', details: [] },
    ],
    settings: [{ name: 'limits', kind: 'changed', details: [{ at: 'batchSize', from: '100', to: '3' }] }],
  })
  expect(JSON.stringify(difference)).not.toContain('canary')
})
