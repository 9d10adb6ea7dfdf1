import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommand } from './in-process.ts'
import { endPrograms, startServe } from './program.ts'

let folder: string
let data: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-plan-'))
  data = join(folder, 'data')
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const write = async (name: string, config: object): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, JSON.stringify(config))
  return file
}

const remote = (secret: string, more: object = {}) => ({
  url: `http://127.0.0.1:1/mcp?key=c4nary-${secret}`,
  headers: { authorization: 'Bearer ${PLAN_KEY}' },
  ...more,
})
const before = { mcpServers: { demo: { builtin: 'demo' }, far: remote('one') }, policies: { p: {} } }
const after = {
  mcpServers: { far: remote('two', { timeout: 5000 }), near: { builtin: 'demo' } },
  policies: { p: { readOnly: true } },
}

it('asks the daemon what a file would change, in the daemon’s own environment, and changes nothing', async () => {
  const own = await write('own.json', before)
  const next = await write('next.json', after)
  // No watching: its file is changed below, and that must still be something to plan.
  const daemon = await startServe(['--config', own, '--no-watch', '--data', data], { PLAN_KEY: 'c4nary-variable' })
  const { code, stdout, stderr } = await runCommand(['plan', next, '--data', data])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toBe(
    [
      '- server demo',
      '~ server far',
      '    url differs',
      '    timeout: 300000 -> 5000',
      '+ server near',
      '    kind: builtin',
      '    builtin: demo',
      '~ workspace default',
      '    servers: ["demo","far"] -> ["far","near"]',
      '- workspace demo',
      '+ workspace near',
      '    servers: ["near"]',
      '    names: plain',
      '~ policy p',
      '    readOnly: false -> true',
      '',
    ].join('\n'),
  )
  expect((await runCommand(['plan', '--data', data])).stdout).toBe('Nothing would change.\n')
  await write('own.json', after)
  const json = await runCommand(['plan', '--data', data, '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject({ servers: [{ name: 'demo', kind: 'removed' }, {}, {}], settings: [] })
  expect(json.stdout).not.toContain('c4nary')
  const wrong = await runCommand(['plan', await write('wrong.json', { listen: { prot: 1 } }), '--data', data])
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('listen.prot: unknown key')])
  expect(daemon.stderr()).not.toContain('has changed')
})

it('only programs that can read the daemon’s own file may ask it', async () => {
  const own = join(folder, 'guarded')
  const { origin } = await startServe(['--data', own])
  const { token } = JSON.parse(await readFile(join(own, 'daemon.json'), 'utf8')) as { token: string }
  const ask = async (headers: Record<string, string>, method = 'POST') =>
    (await fetch(`${origin}/admin/plan`, { method, headers })).status
  expect(await ask({})).toBe(403)
  expect(await ask({ authorization: `Bearer ${token.slice(0, -1)}x` })).toBe(403)
  expect(await ask({ authorization: `Bearer ${token}` }, 'GET')).toBe(405)
  expect(await ask({ authorization: `Bearer ${token}` })).toBe(422) // it was not started from a file
  const { code, stdout } = await runCommand(['plan', await write('first.json', before), '--data', own])
  expect([code, stdout]).toEqual([0, expect.stringContaining('- server memory')])
  const unnamed = await runCommand(['plan', '--data', own])
  expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('runs without a configuration file')])
})

it('compares two files without any daemon', async () => {
  const [from, to] = [await write('from.json', before), await write('to.json', after)]
  const { code, stdout } = await runCommand(['plan', to, '--from', from])
  expect(code).toBe(0)
  expect(stdout).toContain('+ server near')
  expect(stdout).not.toContain('c4nary')
  const alone = await runCommand(['plan', to])
  expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining('no daemon runs on')])
})
