import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runCommand } from './in-process.ts'
import { endPrograms, startProgram, startServe } from './program.ts'

const SMALL = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))

let folder: string
let data: string
let file: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-daemon-'))
  data = join(folder, 'data')
  file = join(folder, 'mcp.json')
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const dragoman = (...args: string[]) => runCommand([...args, '--data', data])
const small = { command: process.execPath, args: [SMALL, JSON.stringify({ stderr: 'hello from the server' })] }
const write = (config: object) => writeFile(file, JSON.stringify(config))

test('the running daemon is shown, read, reloaded, restarted and stopped', async () => {
  await write({ mcpServers: { small, demo: { builtin: 'demo' } } })
  const daemon = await startServe(['--config', file, '--data', data, '--no-watch'])
  await daemon.saw(/^ +small +connected/m)

  const shown = await dragoman('status')
  expect(shown.code).toBe(0)
  expect(shown.stdout).toContain(`dragoman 0.1.0 at ${daemon.origin}, process ${daemon.pid}, up `)
  expect(shown.stdout).toContain(
    `configuration: ${file}\nsessions: 0  SSE channels: 0  streams: 0  calls: 0  parked: 0  tasks: 0\n`,
  )
  expect(shown.stdout).toMatch(/^small +ready +\d+s +2025-11-25 +\d+ +[\d.k]+ +[01]$/m)
  expect(JSON.parse((await dragoman('status', '--json')).stdout)).toMatchObject({ pid: daemon.pid, config: file })

  const pinged = await dragoman('ping', 'small')
  expect([pinged.code, pinged.stdout]).toEqual([
    0,
    expect.stringMatching(/^small\t2025-11-25\tconnected in [\d.]+ ms\tanswered in [\d.]+ ms\n$/),
  ])
  expect((await dragoman('describe', 'small')).stdout).toContain(', speaks 2025-11-25\n')

  expect((await dragoman('logs', 'small')).stdout).toMatch(/^[\d:.]+ stderr small: hello from the server$/m)
  const wrong = await dragoman('logs', 'tiny')
  expect([wrong.code, wrong.stderr]).toEqual([1, 'dragoman: the daemon has no server "tiny"; it has small, demo\n'])

  await write({ mcpServers: { demo: { builtin: 'demo' } } })
  expect((await dragoman('reload')).stdout).toContain('- server small')
  expect((await dragoman('reload')).stdout).toBe('Nothing has changed.\n')
  await write({ mcpServers: { demo: {} } })
  const invalid = await dragoman('reload')
  expect([invalid.code, invalid.stderr]).toEqual([2, expect.stringContaining('mcpServers.demo: needs "url"')])
  expect((await dragoman('restart')).code).toBe(2)

  await write({ mcpServers: { other: { builtin: 'demo' } }, limits: { batchSize: 7 } })
  for (const _again of [1, 2])
    expect((await dragoman('restart')).stdout).toBe(
      `Restarted the daemon at ${daemon.origin} (process ${daemon.pid}).\n`, // on the same port
    )
  expect(JSON.parse(await readFile(join(data, 'daemon.json'), 'utf8'))).toMatchObject({ isLasting: false })
  expect((await dragoman('status')).stdout).toMatch(/^other +/m)
  expect((await dragoman('stop')).stdout).toBe(`Stopped the daemon at ${daemon.origin} (process ${daemon.pid}).\n`)
  expect(await daemon.ended).toBe(0)
})

test.each(['status', 'logs', 'reload', 'restart', 'stop'])('%s says that no daemon runs', async command => {
  const { code, stderr } = await runCommand([command, '--data', join(folder, 'none')])
  expect([code, stderr]).toEqual([
    1,
    `dragoman: no daemon runs on ${join(folder, 'none')}; start one with "dragoman serve"\n`,
  ])
})

test('status --watch and logs --follow go on until the daemon ends', async () => {
  const own = join(folder, 'watched')
  const config = join(folder, 'watched.json')
  await writeFile(config, JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
  const daemon = await startServe(['--config', config, '--no-watch', '--data', own])
  const watch = startProgram(['status', '--watch', '--data', own])
  const follow = startProgram(['logs', '--follow', '--data', own])
  await watch.saw(/(dragoman \d.*\n[\s\S]*){2}WORKSPACE/)
  await vi.waitFor(async () => {
    await runCommand(['reload', '--data', own])
    expect(follow.stdout()).toMatch(/info +the configuration is unchanged\n/)
  })
  daemon.signal('SIGTERM')
  expect([await watch.ended, watch.stderr()]).toEqual([1, expect.stringContaining('dragoman: ')])
  expect(await follow.ended).toBeLessThanOrEqual(1)
})

test('serve -- command serves one server without a file, with the variables of the shell', async () => {
  const one = join(folder, 'one')
  const daemon = await startServe(['--data', one, '--', ...[small.command, ...small.args]])
  await daemon.saw(/^ +server +connected/m)
  expect(daemon.stdout()).not.toContain('No configuration')
  const reloaded = await runCommand(['reload', '--data', one])
  expect([reloaded.code, reloaded.stderr]).toEqual([2, expect.stringContaining('runs without a configuration file')])
})

test.each([
  [['foo.json'], '"foo.json" looks like a configuration file; name it with --config: dragoman serve --config foo.json'],
  [['now'], 'Unexpected argument \'now\'; expected a URL like https://example.com/mcp, or "--" and a command'],
  [['--'], 'expected a command after "--"'],
  [['http://x/mcp', '--', 'node'], 'expected a URL or a command after "--", not both'],
  [['http://x/mcp', '--header', 'x'], '--header: expected "Name: value", found "x"'],
  [['--header', 'a: b'], '--header goes with a URL'],
  [['http://x/mcp', '--config', 'x.json'], '--config names servers; leave it out, or the URL or command'],
])('serve %j is wrong', async (args, message) => {
  const { code, stderr } = await runCommand(['serve', ...args])
  expect([code, stderr.split('\n')[0]]).toEqual([2, `dragoman: ${message}`])
})

test('completion names the shells it knows', async () => {
  expect((await runCommand(['completion', 'tcsh'])).stderr).toContain('expected the name of a shell: bash, zsh, fish')
})
