import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startLoginProcesses } from '../../../test/support/login-processes.ts'

const start = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-processes-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return startLoginProcesses(join(folder, 'state.db'))
}

describe('processes on SQLite, as workers are', () => {
  test('four with 50 calls each send one refresh', async () => {
    const { processes, loginThatEnds, refreshes } = await start()
    await loginThatEnds()
    const outcomes = await Promise.all(processes.map(({ call }) => call(50)))
    expect(outcomes).toEqual(Array.from({ length: 4 }, () => new Array(50).fill(200)))
    expect(refreshes()).toBe(1)
  })

  test('one that is killed before it has stored the answer costs nothing where the former token works once more', async () => {
    const { issuer, loginThatEnds, killBeforeAnswer, refreshes } = await start()
    issuer.settings.rejectsReuse = false
    await loginThatEnds()
    const others = await killBeforeAnswer()
    expect(await Promise.all(others.map(({ call }) => call(10)))).toEqual(others.map(() => new Array(10).fill(200)))
    expect(refreshes()).toBe(2)
  })

  test('one that is killed then costs one login where it does not, and no call hangs', async () => {
    const { loginThatEnds, killBeforeAnswer, refreshes } = await start()
    await loginThatEnds()
    const others = await killBeforeAnswer()
    expect(await Promise.all(others.map(({ call }) => call(10)))).toEqual(others.map(() => new Array(10).fill('login')))
    expect(refreshes()).toBe(2) // the former token is shown once more
    await loginThatEnds()
    expect(await Promise.all(others.map(({ call }) => call(10)))).toEqual(others.map(() => new Array(10).fill(200)))
  })
})
