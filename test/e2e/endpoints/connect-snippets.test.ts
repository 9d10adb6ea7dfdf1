import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ClientList } from '../../../src/admin/api/clients.ts'
import type { CreatedToken } from '../../../src/admin/api/tokens.ts'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import {
  pythonSnippets,
  typescriptV1Snippets,
  typescriptV2Snippets,
} from '../../../src/console/pages/connect/sdk-snippets.ts'
import {
  curlSnippets,
  type SnippetContext,
  sseSnippets,
  stdioSnippets,
} from '../../../src/console/pages/connect/snippets.ts'
import { SILENT } from '../../../src/telemetry/log.ts'

// What the page Connect shows is run here, as users paste it.

const run = promisify(execFile)
/** Programs resolve packages from where they are. */
const PROGRAMS = resolve(import.meta.dirname, '../../../node_modules/.cache')
let data: string
let folder: string
let gateway: Gateway
let context: SnippetContext

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-snippets-'))
  await mkdir(PROGRAMS, { recursive: true })
  folder = await mkdtemp(join(PROGRAMS, 'snippets-'))
  const value = { mcpServers: { demo: { builtin: 'demo' } } }
  gateway = await startGateway(await loadConfig({ value, env: {}, flags: { port: 0 } }), { log: SILENT, data })
  await gateway.ready
  const headers = { authorization: `Bearer ${gateway.localSecret}`, 'content-type': 'application/json' }
  const { stdio, needsToken } = (await (
    await fetch(`${gateway.origin}/admin/clients`, { headers })
  ).json()) as ClientList
  expect(needsToken).toBe(false)
  const created = await fetch(`${gateway.origin}/admin/tokens`, {
    method: 'POST',
    headers,
    body: '{"name":"snippets"}',
  })
  const { secret } = (await created.json()) as CreatedToken
  context = { base: gateway.origin, workspace: 'demo', token: secret, stdio, tool: 'example-ping' }
})
afterAll(async () => {
  await gateway.close()
  await Promise.all([data, folder].map(path => rm(path, { recursive: true })))
})

const runProgram = async (text: string): Promise<string> => {
  const file = join(folder, 'program.mjs')
  await writeFile(file, text)
  return (await run(process.execPath, [file])).stdout
}

test('curl lists the tools, calls one, and speaks MCP', async () => {
  const outputs = await Promise.all(
    curlSnippets(context).map(async ({ text }) => (await run('sh', ['-c', text])).stdout),
  )
  const [listed, called, spoken] = outputs.map(text => JSON.parse(text.replace(/^[\s\S]*?\{/, '{')))
  expect(Object.keys(listed.paths)).toContain('/actions/demo/example-ping')
  expect(called.content).toMatchObject([{ type: 'text' }])
  expect(spoken.result.tools.length).toBeGreaterThan(5)
  const refused = curlSnippets({ ...context, token: 'YOUR_TOKEN' })[2]?.text ?? ''
  expect((await run('sh', ['-c', refused])).stdout).toContain('unknown or revoked')
})

test('the programs with both TypeScript SDKs print the tools', async () => {
  for (const snippets of [typescriptV1Snippets, typescriptV2Snippets])
    expect(await runProgram(snippets(context)[1]?.text ?? '')).toContain('example-echo')
})

test('the program in Python compiles', async ({ skip }) => {
  const version = await run('python3', ['--version']).catch(() => undefined)
  if (!version) return skip('python3 is not installed')
  const text = pythonSnippets(context)[1]?.text ?? ''
  await run('python3', ['-c', 'import sys; compile(sys.argv[1], "program.py", "exec")', text])
})

test('the address of HTTP+SSE opens a channel, and the command line is that of a shell', async () => {
  const [address, header] = sseSnippets(context).map(({ text }) => text)
  const abort = new AbortController()
  const response = await fetch(address ?? '', {
    headers: { accept: 'text/event-stream', authorization: header?.replace('Authorization: ', '') ?? '' },
    signal: abort.signal,
  })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  abort.abort()
  const { stdout } = await run('sh', ['-c', `printf '%s\\n' ${stdioSnippets(context)[0]?.text}`])
  expect(stdout.trim().split('\n')).toEqual(context.stdio)
})
