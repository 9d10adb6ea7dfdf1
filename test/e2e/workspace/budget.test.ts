import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { createToolUsages } from '../../../src/app/tool-usage.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { defaultRules, type WorkspaceConfig } from '../../../src/config/snapshot.ts'
import { openState } from '../../../src/stores/state/open-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { serverOf } from '../../matrix/cells.ts'
import { runCli, startTestDaemon } from '../../support/cli.ts'
import { modern, send } from '../../support/raw.ts'
import { amongMany } from './many.ts'

const OWN = ['search_tools', 'describe_tool', 'call_tool']
const BUDGET = { tokens: 1000, favourites: ['demo/example-echo'] }
const CONFIG = {
  mcpServers: { demo: { builtin: 'demo' } },
  workspaces: { default: { servers: ['demo'], budget: BUDGET } },
  limits: { shutdownMs: 200 },
}

let data = ''
const closing: (() => Promise<void>)[] = []
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-budget-'))
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await rm(data, { recursive: true })
})

const start = async (config: object = {}) => {
  const snapshot = await loadConfig({ value: { ...CONFIG, ...config }, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT, data, version: '1.2.3' })
  closing.push(gateway.close)
  await gateway.ready
  return gateway
}

const through = (id: number, name: string, args: object) =>
  modern(id, 'tools/call', { name: 'call_tool', arguments: { name, arguments: args } })

test('the file sets budget and trimming, and wrong values are named', async () => {
  const read = (workspace: object) =>
    loadConfig({ value: { ...CONFIG, workspaces: { default: { servers: ['demo'], ...workspace } } }, env: {} })
  const rules = async (workspace: object) => (await read(workspace)).workspaces.get('default')
  expect(await rules({})).not.toHaveProperty('trim')
  expect(await rules({ trim: false })).not.toHaveProperty('trim')
  expect((await rules({ trim: true, budget: { tokens: 5000 } }))?.trim).toEqual({
    descriptions: 300,
    schemas: true,
    outputSchema: 'drop',
  })
  expect((await rules({ trim: { descriptions: 80, outputSchema: 'keep' } }))?.trim).toEqual({
    descriptions: 80,
    schemas: true,
    outputSchema: 'keep',
  })
  for (const wrong of [{ trim: 'yes' }, { trim: { schema: true } }, { budget: { tokens: 10 } }, { budget: 20_000 }])
    await expect(read(wrong)).rejects.toThrow(/trim|budget|tokens/)
})

test('a single server with trimming is described as it was', async () => {
  const { url } = await start({ workspaces: { default: { servers: ['demo'], trim: { descriptions: 40 } } } })
  const list = (await send(url(), modern(1, 'tools/list', {}))).json.result as { tools: { name: string }[] }
  const described = await send(
    url(),
    modern(2, 'tools/call', { name: 'describe_tool', arguments: { name: 'json_schema_2020_12_tool' } }),
  )
  const shown = list.tools.find(({ name }) => name === 'json_schema_2020_12_tool')
  expect(JSON.stringify(shown)).not.toContain('$schema')
  expect(JSON.stringify(described.json.result)).toContain('$schema')
  expect((await send(url(), modern(3, 'tools/call', { name: 'test_simple_text' }))).status).toBe(200)
})

describe('over REST', () => {
  const post = async (origin: string, tool: string, body: object) => {
    const response = await fetch(`${origin}/actions/${tool}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  test('hidden tools are found and called, and wrong calls have the usual status', async () => {
    const { origin } = await start()
    const document = (await (await fetch(`${origin}/actions/openapi.json`)).json()) as { paths: object }
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([...OWN, 'example-echo'].map(tool => `/actions/default/${tool}`)),
    )
    expect(Object.keys(document.paths)).toHaveLength(5) // and the one of tasks
    const found = await post(origin, 'search_tools', { query: 'region header' })
    expect(JSON.stringify(found.body)).toContain('test_x_mcp_header(region: string')
    const wanted = { content: [{ type: 'text', text: 'Region eu, level not given' }] }
    const args = { region: 'eu' }
    expect(await post(origin, 'test_x_mcp_header', args)).toMatchObject({ status: 200, body: wanted })
    expect(await post(origin, 'call_tool', { name: 'test_x_mcp_header', arguments: args })).toMatchObject({
      status: 200,
      body: wanted,
    })
    expect((await post(origin, 'no_such_tool', {})).status).toBe(404)
    expect(await post(origin, 'call_tool', { name: 'test_x_mcp_heder' })).toMatchObject({
      status: 422,
      body: { error: { message: expect.stringContaining('Did you mean test_x_mcp_header?') } },
    })
  })
})

test('the audit log and the recorder name the tool that was called', async () => {
  const { url, origin, close } = await start({ audit: { arguments: true } })
  await send(url(), through(1, 'example-echo', { message: 'hello' }))
  const recordings = (await (await fetch(`${origin}/admin/recordings`)).json()) as {
    recordings?: { subject?: string }[]
  }
  expect(JSON.stringify(recordings)).toContain('"subject":"example-echo"')
  await close()
  const rows = (await readFile(join(data, 'audit.jsonl'), 'utf8'))
    .split('\n')
    .filter(line => line.includes('"request"'))
  expect(rows.map(row => JSON.parse(row) as object)).toMatchObject([
    { method: 'tools/call', tool: 'example-echo', server: 'demo', outcome: 'ok', arguments: { message: 'hello' } },
  ])
})

test('status counts what is listed and what is left out', async () => {
  const { origin } = await start()
  const ready = (await (await fetch(`${origin}/readyz`)).json()) as {
    workspaces: { tools: number; listedTools: number; budget: number; listed: { tokens: number } }[]
  }
  const [workspace] = ready.workspaces
  expect(workspace).toMatchObject({ listedTools: 4, budget: 1000 })
  expect(workspace?.tools).toBeGreaterThan(20)
  expect(workspace?.listed.tokens).toBeLessThan(1000)
})

test('arguments that the server wants in headers are repeated there', () =>
  amongMany(
    { a: serverOf('2026-07-28').start, b: serverOf('2025-06-18').start },
    { rules: { budget: { tokens: 100, favourites: [] } } },
    async ({ servers, gateway }) => {
      const inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
      const description = 'Long enough to exceed the budget. '.repeat(40)
      servers.a?.tools.set('x', () => ({ content: [] }))
      servers.a?.methods.set('tools/list', () => ({ tools: [{ name: 'x', description, inputSchema }] }))
      const { status } = await send((await gateway()).url(), through(1, 'a__x', { region: 'Hello, 世界' }))
      expect(status).toBe(200)
      const [arrival] = servers.a?.of('tools/call') ?? []
      const encoded = `=?base64?${Buffer.from('Hello, 世界').toString('base64')}?=`
      expect([arrival?.headers['mcp-param-region'], arrival?.headers['mcp-name']]).toEqual([encoded, 'x'])
    },
  ))

test('dragoman tools shows what clients see and says so; --all shows the rest', async () => {
  const daemon = await startTestDaemon({
    mcpServers: { demo: { builtin: 'demo' }, other: { builtin: 'demo' } },
    workspaces: { default: { servers: '*', budget: BUDGET } },
  })
  closing.push(() => daemon.close())
  const flags = ['--data', daemon.data]
  const shown = await runCli(['tools', ...flags])
  expect(shown.stdout.split('\n').map(line => line.split('\t')[0])).toEqual([...OWN, 'demo/example-echo', ''])
  expect(shown.stderr).toMatch(/the budget leaves out \d+ tools, .* --all lists them/)
  const all = await runCli(['tools', '--all', ...flags])
  expect(all.stdout).toContain('other/test_x_mcp_header\t')
  expect(all.stderr).toBe('')
  expect((await runCli(['describe', 'other/test_x_mcp_header', ...flags])).stdout).toContain('region: string')
  expect((await runCli(['call', 'other/test_x_mcp_header', 'region=eu', ...flags])).stdout).toBe(
    'Region eu, level not given\n',
  )
  expect((await runCli(['call', 'search_tools', 'query=region header', ...flags])).stdout).toContain('x_mcp_header')
})

describe('without configured favourites', () => {
  const config: WorkspaceConfig = {
    name: 'w',
    servers: ['a'],
    ...defaultRules(1),
    budget: { tokens: 1000 },
  }
  const open = async () => {
    const state = await openState({ kind: 'sqlite', data }, SILENT)
    const usages = createToolUsages({ documents: state.store.shared, isShared: false, log: SILENT, writeMs: 5 })
    await usages.load([config])
    return {
      usage: usages.of(config),
      close: async () => {
        await usages.close()
        await state.store.close()
      },
    }
  }

  test('the most used tools are listed, also after a restart, and rarely change', async () => {
    const first = await open()
    const changed = vi.fn()
    first.usage?.onChanged(changed)
    for (let i = 0; i < 9; i++) first.usage?.count('a', 'often')
    first.usage?.count('a', 'once')
    await vi.waitFor(() => expect(first.usage?.mostUsed()).toEqual(['a/often', 'a/once']))
    expect(changed).toHaveBeenCalledOnce()
    for (let i = 0; i < 100; i++) first.usage?.count('a', 'new')
    await first.close()
    expect(first.usage?.mostUsed()).toEqual(['a/often', 'a/once'])
    const second = await open()
    expect(second.usage?.mostUsed()).toEqual(['a/often', 'a/once'])
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 25 * 3_600_000 })
    second.usage?.count('a', 'new')
    await second.close()
    vi.useRealTimers()
    expect(second.usage?.mostUsed()).toEqual(['a/new', 'a/often', 'a/once'])
  })
})

test('only calls of tools that exist are counted', async () => {
  const state = await openState({ kind: 'sqlite', data }, SILENT)
  closing.push(() => state.store.close())
  const value = { ...CONFIG, workspaces: { default: { servers: ['demo'], budget: { tokens: 1000 } } } }
  const snapshot = await loadConfig({ value, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT, data, state })
  await gateway.ready
  await send(gateway.url(), modern(0, 'tools/list', {}))
  for (let i = 0; i < 12; i++) await send(gateway.url(), modern(i, 'tools/call', { name: `made_up_${i}` }))
  await send(gateway.url(), modern(12, 'tools/call', { name: 'test_simple_text' }))
  await gateway.close()
  const stored = await state.store.shared.document('tool-usage default')
  expect(JSON.parse(String(stored?.body))).toMatchObject({ calls: { 'demo/test_simple_text': 1 }, chosen: [] })
  expect(String(stored?.body)).not.toContain('made_up')
})

test('calls through the gateway are counted, and listed in the next conversation', async () => {
  const config = { workspaces: { default: { servers: ['demo'], budget: { tokens: 1000 } } } }
  const call = async (url: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await send(url, through(i, 'example-echo', { message: 'x' }))
  }
  const names = async (url: string): Promise<string[]> =>
    (((await send(url, modern(1, 'tools/list', {}))).json.result?.tools ?? []) as { name: string }[]).map(
      ({ name }) => name,
    )
  const state = await openState({ kind: 'sqlite', data }, SILENT)
  closing.push(() => state.store.close())
  const snapshot = await loadConfig({ value: { ...CONFIG, ...config }, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT, data, state })
  await gateway.ready
  expect(await names(gateway.url())).toEqual(OWN)
  await call(gateway.url(), 12)
  await gateway.close()
  const again = await startGateway(snapshot, { log: SILENT, data, state })
  closing.push(again.close)
  await again.ready
  expect(await names(again.url())).toEqual([...OWN, 'example-echo'])
})
