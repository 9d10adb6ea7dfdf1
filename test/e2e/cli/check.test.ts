import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SizedTool, ToolListSize, ToolSize } from '../../../src/protocol/tool-size.ts'
import { runCommand } from './in-process.ts'
import { endPrograms, runProgram } from './program.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-check-'))
  await writeFile(join(folder, 'key'), 'c4nary-file\n')
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const write = async (config: object): Promise<string> => {
  const file = join(folder, `${crypto.randomUUID()}.json`)
  await writeFile(file, JSON.stringify(config))
  return file
}

const DEMO = { builtin: 'demo' }

it('says of every server how it was found and of every workspace what it shows, and no secrets', async () => {
  const file = await write({
    mcpServers: {
      one: DEMO,
      two: DEMO,
      gone: { url: 'http://127.0.0.1:1/mcp?key=c4nary-url', headers: { authorization: 'Bearer ${file:key}' } },
      dies: { command: process.execPath, args: ['-e', 'process.exit(3)', 'c4nary-arg'], env: { KEY: 'c4nary-env' } },
      lacks: { url: '${DRAGOMAN_TEST_UNSET}' },
      off: { ...DEMO, disabled: true },
    },
    policies: { pings: { allow: { tools: ['*/example-ping'], prompts: [], resources: [] } } },
    workspaces: {
      default: { servers: ['one', 'two'], names: 'plain', policy: 'pings' },
      other: {
        servers: ['one', 'off', 'gone', 'dies', 'lacks'],
        tools: {
          'one/nope': { hidden: true },
          'one/example-echo': { name: 'echo', arguments: { fixed: { message: 'c4nary-fixed' } } },
          'one/example-ping': { hidden: true },
        },
      },
    },
  })
  const { code, stdout, stderr } = await runCommand(['check', file])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^one +ready +2026-07-28 +built-in +\d+ +\d[.\d]*k +\d+$/m)
  expect(stdout).toMatch(/^gone +down +- +http +- +- +\d+ +.*ECONNREFUSED/m)
  expect(stdout).toMatch(/^dies +down +- +stdio +- +- +\d+ +.*exited with code 3/m)
  expect(stdout).toMatch(/^lacks +unavailable .*the variable DRAGOMAN_TEST_UNSET is not set/m)
  expect(stdout).toMatch(/^off +disabled/m)
  expect(stdout).toMatch(/^default +plain +2 +2 +2 +\d+ +0 +0 +\d+ by policy$/m)
  expect(stdout).toContain(
    'default: several servers have example-ping; shown as example-ping (one), two__example-ping (two)',
  )
  expect(stdout).toMatch(/^other +prefix .* 1 by overlays$/m)
  expect(stdout).toContain('other: the configuration changes one/nope, but its server has no such tool')
  expect(stdout + stderr).not.toContain('c4nary')

  const json = await runCommand(['check', file, '--json'])
  expect(json.code).toBe(1)
  const found = JSON.parse(json.stdout) as {
    ok: boolean
    servers: { toolSize: ToolSize; toolSizes: SizedTool[] }[]
    workspaces: { name: string; tools: string[]; toolList: ToolListSize }[]
  }
  const [one] = found.servers
  expect(one?.toolSizes.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(one?.toolSize.bytes)
  expect(found.workspaces[0]?.toolList).toMatchObject({ tools: 2, listedTools: 2, unknown: [] })
  expect(found.workspaces[1]?.toolList.unknown).toEqual(['off', 'gone', 'dies', 'lacks'])
  expect(found.ok).toBe(false)
  expect(found.workspaces[0]).toMatchObject({ name: 'default', tools: ['example-ping', 'two__example-ping'] })
  expect(found.workspaces[1]?.tools).toContain('one__echo')
  expect(json.stdout).not.toContain('c4nary')
})

it('is content with a configuration that works', async () => {
  const file = await write({ mcpServers: { one: DEMO, off: { command: 'nothing', disabled: true } } })
  const { code, stdout } = await runCommand(['check', file])
  expect(code).toBe(0)
  expect(stdout).toContain(`${file} is valid.`)
})

it('finds nothing wrong with a server that only callers have credentials for', async () => {
  const credentials = { ada: { headers: { authorization: 'Bearer c4nary' } } }
  const named = { 'x-on-behalf-of': '${caller.name}' }
  const file = await write({
    mcpServers: {
      theirs: { url: 'http://127.0.0.1:1/mcp', credentials },
      named: { url: 'http://127.0.0.1:1/mcp', headers: named },
      started: { command: 'nothing', credentials: { ada: { env: { KEY: 'c4nary' } } } },
    },
  })
  const { code, stdout } = await runCommand(['check', file])
  expect(stdout).toMatch(/^theirs +untried +- +http +- +- +- +credentials are per caller$/m)
  expect(stdout).toMatch(/^named +untried +- +http +- +- +- +credentials are per caller$/m)
  expect(stdout).toMatch(/^started +untried +- +stdio +- +- +- +credentials are per caller$/m)
  expect(stdout).not.toContain('c4nary')
  expect(code).toBe(0)
})

it('looks at a memory without making one', async () => {
  const file = await write({ mcpServers: { mind: { builtin: 'memory' } } })
  const data = join(folder, 'data')
  // The built program: from source, the thread of a memory takes seconds to load.
  const { code, stdout } = await runProgram(['check', file, '--data', data])
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^mind +ready +2026-07-28 +built-in +\d+ /m)])
  await expect(readdir(join(data, 'memory'))).rejects.toThrow('ENOENT')
})

it('without connecting finds what the file alone shows, and with it what is not there', async () => {
  const gone = await write({ mcpServers: { gone: { url: 'http://127.0.0.1:1/' } } })
  expect(await runCommand(['check', gone, '--offline'])).toMatchObject({ code: 0, stdout: `${gone} is valid.\n` })
  const lacking = await runCommand([
    'check',
    '--offline',
    await write({ mcpServers: { a: { url: '${DRAGOMAN_NO}' } } }),
  ])
  const shut = await runCommand(['check', gone])
  expect([shut.code, shut.stdout]).toEqual([1, expect.stringContaining(`${gone} has problems: gone is down.\n`)])
  expect([lacking.code, lacking.stdout]).toEqual([1, expect.stringContaining('the variable DRAGOMAN_NO is not set')])
  const wrong = await runCommand(['check', await write({ listen: { prot: 1 } })])
  expect([wrong.code, wrong.stdout]).toEqual([
    1,
    expect.stringContaining('listen.prot: unknown key; did you mean "port"?'),
  ])
})

it.each([[[]], [['a', 'b']], [['a', '--ofline']]])('called with %j says how it is called', async args => {
  const { code, stderr } = await runCommand(['check', ...args])
  expect(code).toBe(2)
  expect(stderr).toContain('Try "dragoman check --help"')
})

it('says what a silent server printed on stderr, where it hangs, and how long it waited', async () => {
  const silent = "console.error('waiting for the database'); process.stdin.resume()"
  const hangs = `require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
    const { id, method } = JSON.parse(line)
    const info = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
    if (method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id, result: info }))
    else if (method === 'server/discover') console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
  })`
  const file = await write({
    mcpServers: {
      silent: { command: process.execPath, args: ['-e', silent] },
      hangs: { command: process.execPath, args: ['-e', hangs] },
      dies: { command: process.execPath, args: ['-e', "console.error('no KEY'); process.exit(1)"] },
    },
  })
  const { code, stdout } = await runCommand(['check', file, '--timeout', '2.5'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^silent +down .*no answer to the first message within 2\.5 s; --timeout gives it more time$/m)
  expect(stdout).toMatch(/^hangs +down .*no answer to tools\/list within 2\.5 s/m)
  expect(stdout).toContain('silent printed on stderr:\n  waiting for the database\n')
  expect(stdout).toContain('dies printed on stderr:\n  no KEY\n')
})

it.each(['0', 'soon', '-1', '4000'])('--timeout %s is wrong', async timeout => {
  const { code, stderr } = await runCommand(['check', 'x.json', `--timeout=${timeout}`])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--timeout: expected seconds, more than 0')])
})

it.each(['check', 'plan'])('%s takes the file as a word or with --config, and not both', async command => {
  const file = await write({ mcpServers: { one: DEMO } })
  const other = command === 'plan' ? ['--from', file] : ['--offline']
  const [byWord, byFlag] = [
    await runCommand([command, file, ...other]),
    await runCommand([command, '--config', file, ...other]),
  ]
  expect(byWord.code).toBe(0)
  expect(byFlag).toEqual(byWord)
  const both = await runCommand([command, file, '--config', file])
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('expected FILE or --config FILE, not both')])
})
