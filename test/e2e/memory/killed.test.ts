import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { addAndKill, faultsOf } from '../../soak/memory-kills.ts'

const temporaryPath = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-killed-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'memory.db')
}

test('a process killed while adding loses nothing it acknowledged, and the file opens by itself', async () => {
  const path = await temporaryPath()
  let from = 0
  for (const killAfter of [1, 37, 150]) {
    const last = await addAndKill(path, from, 1_000, killAfter)
    expect(last).toBeGreaterThanOrEqual(from)
    expect(await faultsOf(path, last)).toEqual([])
    from = last + 1
  }
}, 60_000)

test('two processes write into one file and both keep what they acknowledged', async () => {
  const path = await temporaryPath()
  const ends = await Promise.all([addAndKill(path, 0, 150, 1_000), addAndKill(path, 150, 150, 1_000)])
  expect(ends).toEqual([149, 299])
  expect(await faultsOf(path, 299)).toEqual([])
}, 60_000)
