import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { runCommand } from './in-process.ts'
import { endPrograms, startServe } from './program.ts'

let home: string
let daemon: Awaited<ReturnType<typeof startServe>>
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'dragoman-tasks-'))
  const config = join(home, 'dragoman.json')
  writeFileSync(config, JSON.stringify({ listen: { port: 0 }, mcpServers: { demo: { builtin: 'demo' } } }))
  daemon = await startServe(['--config', config, '--data', join(home, 'data')])
})
afterEach(() => vi.restoreAllMocks())
afterAll(async () => {
  await endPrograms()
  rmSync(home, { recursive: true, force: true })
})

const run = (...args: string[]) => runCommand([...args, '--data', join(home, 'data')])

test('a call runs as a task of the daemon, is listed, awaited and cancelled', { timeout: 60_000 }, async () => {
  expect(daemon).toBeDefined()
  const started = await run('call', 'demo/slow_compute', 'seconds=1', '--task')
  const id = started.stdout.trim()
  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  expect(started.stderr).toContain(`dragoman tasks wait ${id}`)
  expect((await run('tasks')).stdout).toMatch(new RegExp(`${id} +demo/slow_compute +working`))
  const waited = await run('tasks', 'wait', id.slice(0, 8))
  expect([waited.code, waited.stdout]).toEqual([0, 'Computed it in 1 seconds\n'])
  const failed = (await run('call', 'demo/failing_job', '--task')).stdout.trim()
  const reported = await run('tasks', 'wait', failed)
  expect([reported.code, reported.stdout]).toEqual([1, ''])
  expect(reported.stderr).toContain('The job failed')
  const long = (await run('call', 'demo/slow_compute', 'seconds=60', '--task')).stdout.trim()
  expect((await run('status')).stdout).toContain('tasks: 1')
  expect((await run('tasks', 'cancel', long)).stdout).toBe(`${long} cancelled\n`)
  expect((await run('tasks', 'get', long)).code).toBe(1)
  expect(JSON.parse((await run('tasks', '--json')).stdout)).toHaveLength(3)
})

test('an unknown id, a missing one and an unknown action are refused clearly', async () => {
  expect((await run('tasks', 'get', 'nothing')).stderr).toContain('there is no such task')
  expect((await run('tasks', 'explode', 'x')).stderr).toContain('is not list, get, wait or cancel')
  expect((await run('tasks', '--help')).stdout).toContain('Usage: dragoman tasks')
})
