import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { call, openSession } from './call.ts'
import { endPrograms, runProgram, startServe } from './program.ts'

/** A small disk of its own; undefined where this user may not mount one. */
const mountDisk = (): string | undefined => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs', folder], { stdio: 'ignore' })
    return folder
  } catch {
    rmdirSync(folder)
    return undefined
  }
}

const unmount = (folder: string): void => {
  execFileSync('umount', ['--lazy', folder])
  rmdirSync(folder)
}

const probe = mountDisk()
if (probe !== undefined) unmount(probe)
const skipped = probe === undefined ? ' (skipped: only root may mount a disk)' : ''

/** Writes until nothing more fits. */
const fill = (folder: string): string => {
  const file = join(folder, 'filler')
  try {
    execFileSync('dd', ['if=/dev/zero', `of=${file}`, 'bs=1k'], { stdio: 'ignore' })
  } catch {
    return file // dd reports that the disk is full
  }
  throw new Error('the disk has no end')
}

const readiness = async (origin: string): Promise<Record<string, unknown>> => {
  const { store } = (await (await fetch(`${origin}/readyz`)).json()) as { store: Record<string, unknown> }
  return store
}

describe.skipIf(probe === undefined)(`a data directory${skipped}`, () => {
  afterEach(endPrograms)
  const disk = (): string => {
    const folder = mountDisk() ?? ''
    onTestFinished(async () => {
      await endPrograms()
      unmount(folder)
    })
    return folder
  }

  test('on a full disk: the gateway starts, serves from memory, and leaves nothing behind that stops a later start', async () => {
    const data = disk()
    const filler = fill(data)
    const gateway = await startServe(['--demo', '--data', data])
    expect(await call(`${gateway.origin}/mcp`, 'tools/list')).toMatchObject({ result: { tools: expect.any(Array) } })
    expect(await openSession(`${gateway.origin}/mcp`)).toMatchObject({ 'mcp-session-id': expect.any(String) })
    expect(await readiness(gateway.origin)).toMatchObject({
      state: 'memory-only',
      reason: expect.stringMatching(/full/),
    })
    expect(gateway.stderr()).toMatch(/state is kept in memory only/)
    expect(gateway.stderr()).toMatch(/daemon was not announced; commands do not find it until it is restarted/)
    gateway.signal('SIGTERM')
    expect(await gateway.ended).toBe(0)

    rmSync(filler)
    const next = await startServe(['--demo', '--data', data])
    await vi.waitFor(async () => expect(await readiness(next.origin)).toMatchObject({ state: 'ok' }), 10_000)
    expect((await readFile(join(data, 'secret'), 'utf8')).trim()).not.toBe('')
    expect(await readdir(data)).toContain('daemon.json')
  })

  test('on a read-only disk: the command says so, and what to do', async () => {
    const data = disk()
    await writeFile(join(data, 'kept'), 'as it was')
    execFileSync('mount', ['-o', 'remount,ro', data])
    const { code, stderr } = await runProgram(['serve', '--demo', '--data', data])
    expect(code).toBe(2)
    expect(stderr).toMatch(/the file system is read-only; choose another with --data DIR or DRAGOMAN_DATA/)
    expect(await readdir(data)).toEqual(['kept'])
  })
})
