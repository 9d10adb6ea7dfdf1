import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as TransportV2 } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, expect, test } from 'vitest'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
let data: string

beforeAll(() => {
  data = mkdtempSync(join(tmpdir(), 'dragoman-stdio-'))
  writeFileSync(join(data, 'mcp.json'), JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
})

const daemonPid = (): number => (JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { pid: number }).pid

afterAll(async () => {
  const pid = daemonPid()
  process.kill(pid, 'SIGTERM')
  for (let tries = 0; tries < 80 && isAlive(pid); tries++) await sleep(100)
  rmSync(data, { recursive: true, force: true })
})

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const how = () => ({
  command: process.execPath,
  args: [MAIN, 'stdio', '--data', data, '--config', join(data, 'mcp.json')],
  stderr: 'ignore' as const,
})

test('an SDK v1 client starts the process, which starts the daemon; lists, calls, is asked', async () => {
  const client = new Client({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } })
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js')
  client.setRequestHandler(ElicitRequestSchema, () => ({
    action: 'accept' as const,
    content: { username: 'ann', email: 'a@b.c', response: 'x' },
  }))
  await client.connect(new StdioClientTransport(how()))
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('example-echo')
  const echo = await client.callTool({ name: 'example-echo', arguments: { message: 'over a pipe' } })
  expect(JSON.stringify(echo.content)).toContain('over a pipe')
  const asked = await client.callTool({ name: 'test_elicitation', arguments: { message: 'who?' } })
  expect(JSON.stringify(asked.content)).toContain('accept')
  await client.close()
})

/** What the client reads from now on: progress and the answer. The SDK itself drops progress that comes with the answer. */
const overhear = (transport: TransportV2): unknown[] => {
  const lines: unknown[] = []
  const read = transport.onmessage
  transport.onmessage = message => {
    if ('result' in message) lines.push('the answer')
    else if ('method' in message) lines.push((message.params as { progress?: number } | undefined)?.progress)
    read?.(message)
  }
  return lines
}

test.each(['auto', '2026-07-28'] as const)('an SDK v2 client (%s) uses the daemon that runs', async era => {
  const before = daemonPid()
  const versionNegotiation = era === 'auto' ? { mode: 'auto' as const } : { mode: { pin: era } }
  const client = new ClientV2({ name: 'v2', version: '1' }, { capabilities: {}, versionNegotiation })
  const transport = new TransportV2(how())
  await client.connect(transport)
  expect((await client.listTools()).tools.length).toBeGreaterThan(10)
  const lines = overhear(transport)
  const result = await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: () => {} })
  expect(result.isError).not.toBe(true)
  expect(lines).toEqual([0, 50, 100, 'the answer'])
  await client.close()
  expect(daemonPid()).toBe(before)
})

test('says on stderr that the daemon runs with another configuration', async () => {
  const other = join(data, 'other.json')
  writeFileSync(other, JSON.stringify({ mcpServers: { other: { builtin: 'demo' } } }))
  const { stderr } = spawnSync(process.execPath, [MAIN, 'stdio', '--data', data, '--config', other], {
    input: '',
    encoding: 'utf8',
  })
  expect(stderr).toContain(`runs with the configuration ${join(data, 'mcp.json')}, not with ${other}`)
})
