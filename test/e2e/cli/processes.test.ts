import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, openSession } from './call.ts'
import { endPrograms, startServe } from './program.ts'

const SERVER = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-processes-'))
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

/** A daemon with one server of each era, both with children that do not care, and a way to count all of them. */
const startDaemon = async () => {
  const run = randomUUID()
  const local = (era: string) => ({
    command: process.execPath,
    args: [SERVER, JSON.stringify({ era, family: true, stays: true, deaf: true })],
    env: { TEST_RUN: run },
    limits: { exitMs: 300, termMs: 300 },
  })
  const config = join(folder, `${run}.json`)
  await writeFile(config, JSON.stringify({ mcpServers: { old: local('legacy'), new: local('modern') } }))
  const program = await startServe(['--config', config])
  for (const server of ['old', 'new']) {
    expect(
      await call(`${program.origin}/mcp/${server}`, 'tools/call', { name: 'echo', arguments: { text: 'hello' } }),
    ).toMatchObject({ result: { content: [{ text: 'hello' }] } })
  }
  return { program, living: () => livingWith(`TEST_RUN=${run}`) }
}

const livingWith = (text: string): string[] =>
  readdirSync('/proc').filter(pid => /^\d+$/.test(pid) && read(`/proc/${pid}/environ`).includes(text))

/** Those of this program alone; tests beside this one have theirs. */
const reapersOf = (pid: number): string[] =>
  readdirSync('/proc').filter(
    other =>
      read(`/proc/${other}/cmdline`).startsWith('dragoman-reaper') && read(`/proc/${other}/stat`).includes(` ${pid} `),
  )

const read = (file: string): string => {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

describe.runIf(process.platform === 'linux')('the processes of a daemon', () => {
  it('are gone within five seconds when it is killed, and so is the orphan reaper', { timeout: 60_000 }, async () => {
    const { program, living } = await startDaemon()
    const reapers = reapersOf(program.pid)
    expect(reapers).toHaveLength(1)
    expect(living().length).toBeGreaterThanOrEqual(6)
    program.signal('SIGKILL')
    await program.ended
    await expect.poll(living, { timeout: 5000 }).toEqual([])
    await expect.poll(() => read(`/proc/${reapers[0]}/cmdline`), { timeout: 1000 }).toBe('')
  })

  it('are gone when it was asked to end', { timeout: 60_000 }, async () => {
    const { program, living } = await startDaemon()
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)
    expect(living()).toEqual([])
  })

  it('have an orphan reaper again when it was killed', { timeout: 60_000 }, async () => {
    const { program, living } = await startDaemon()
    const [reaper = ''] = reapersOf(program.pid)
    process.kill(Number(reaper), 'SIGKILL')
    await expect.poll(() => reapersOf(program.pid).filter(pid => pid !== reaper), { timeout: 5000 }).toHaveLength(1)
    program.signal('SIGKILL')
    await program.ended
    await expect.poll(living, { timeout: 5000 }).toEqual([])
  })

  it('are not started by a client that only introduces itself', { timeout: 60_000 }, async () => {
    const { program, living } = await startDaemon()
    // The one that was tried at first is gone. Several times in a row: a process that is just being started is not counted.
    let inRow = 0
    const countInRow = (): number => (inRow = living().length === 6 ? inRow + 1 : 0)
    await expect.poll(countInRow, { timeout: 10_000 }).toBe(5)
    await openSession(`${program.origin}/mcp/old`)
    expect(living()).toHaveLength(6)
    program.signal('SIGKILL')
    await program.ended
    await expect.poll(living, { timeout: 5000 }).toEqual([])
  })
})
