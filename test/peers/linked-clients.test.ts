import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endPrograms, startProgram, startServe } from '../e2e/cli/program.ts'
import { install } from './install.ts'
import { runCommand } from './process.ts'

// `link` and `import` with real clients that need no account.

const PACKAGES = ['@google/gemini-cli@0.61.0', '@openai/codex@0.169.0', 'mcporter@0.9.0']
const SLOW = { timeout: 120_000 }
const SMALL = fileURLToPath(new URL('../support/servers/stdio/server.mjs', import.meta.url))

let home: string
let bin: string
let reason: string | undefined
let gateway: Awaited<ReturnType<typeof startServe>>
const env = () => ({ HOME: home, XDG_CONFIG_HOME: join(home, '.config'), DRAGOMAN_DATA: join(home, 'data') })

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'dragoman-clients-'))
  const installed = await install({
    name: 'mcp-clients',
    toolchain: { command: 'npm', args: ['--version'] },
    sources: [fileURLToPath(import.meta.url)],
    download: folder => ({
      command: 'npm',
      args: ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES],
    }),
  })
  if (installed.kind === 'skipped') {
    reason = installed.reason
    return
  }
  bin = join(installed.folder, 'node_modules/.bin')
  mkdirSync(join(home, '.gemini'))
  writeFileSync(join(home, '.gemini/trustedFolders.json'), JSON.stringify({ [home]: 'TRUST_FOLDER' }))
  gateway = await startServe(['--demo', '--no-config'], env(), home)
}, 300_000)
afterAll(async () => {
  gateway?.signal('SIGTERM')
  await gateway?.ended
  await endPrograms()
  rmSync(home, { recursive: true, force: true, maxRetries: 3 })
})

const dragoman = async (...args: string[]): Promise<string> => {
  const program = startProgram(args, env(), home)
  expect([await program.ended, program.stderr()]).toEqual([0, expect.any(String)])
  return program.stdout()
}

const client = async (name: string, ...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runCommand({ command: join(bin, name), args, env: env(), cwd: home }, 60_000)
  expect([code, stdout + stderr]).toEqual([0, expect.any(String)])
  return stdout + stderr
}

test('gemini mcp list reports the workspace as connected', SLOW, async ({ skip }) => {
  if (reason) skip(reason)
  await dragoman('link', 'gemini')
  expect(await client('gemini', 'mcp', 'list')).toMatch(/dragoman: .*\(stdio\) - Connected/)
})

test('mcporter list reads the entry of Cursor and lists the tools', SLOW, async ({ skip }) => {
  if (reason) skip(reason)
  await dragoman('link', 'cursor')
  expect(await client('mcporter', 'list')).toMatch(/dragoman \(42 tools/)
})

test('codex lists the server, and its app server the tools', SLOW, async ({ skip }) => {
  if (reason) skip(reason)
  await dragoman('link', 'codex')
  expect(await client('codex', 'mcp', 'list')).toMatch(/^dragoman .*enabled/m)
  const child = spawn(join(bin, 'codex'), ['app-server'], { env: { ...process.env, ...env() }, cwd: home })
  const say = (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`)
  say({ id: 1, method: 'initialize', params: { clientInfo: { name: 'test', version: '1' } } })
  say({ method: 'initialized' })
  say({ id: 2, method: 'mcpServerStatus/list', params: {} })
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { id, result } = JSON.parse(line) as { id?: number; result?: { data: { name: string; tools: object }[] } }
      if (id !== 2) continue
      const server = result?.data.find(({ name }) => name === 'dragoman')
      expect(Object.keys(server?.tools ?? {})).toContain('example-echo')
      return
    }
    throw new Error('codex ended without an answer')
  } finally {
    child.kill()
  }
})

test('import reads the files that the clients wrote themselves', SLOW, async ({ skip }) => {
  if (reason) skip(reason)
  const command = (habits: string) => [process.execPath, SMALL, habits] // equal ones would be one server
  await client('gemini', 'mcp', 'add', '--scope', 'user', 'from-gemini', ...command('{}'))
  await client('codex', 'mcp', 'add', 'from-codex', '--', ...command('{"version":"2025-06-18"}'))
  const file = join(home, 'imported.json')
  const imported = await dragoman('import', 'gemini', 'codex', '--config', file)
  for (const name of ['from-gemini', 'from-codex']) expect(imported).toMatch(new RegExp(`${name} +added`))
  expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')).mcpServers).sort()).toEqual(['from-codex', 'from-gemini'])
  expect(await dragoman('tools', '--config', file)).toMatch(/^from-codex\/echo/m)
})
