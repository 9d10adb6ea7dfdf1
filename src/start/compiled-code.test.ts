import { chmod, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { compiledCodeFile, readCompiledCode, writeCompiledCode } from './compiled-code.ts'

const CODE = Buffer.from('what V8 has compiled')
const folder = await mkdtemp(join(tmpdir(), 'dragoman-compiled-'))
vi.stubEnv('XDG_CACHE_HOME', folder)
const file = compiledCodeFile('/opt/dragoman/program.js', 'serve')
beforeEach(() => writeCompiledCode(file, 'build', CODE))
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true })
})

test('is read by the build that wrote it, and by no other one', () => {
  expect(readCompiledCode(file, 'build')).toEqual(CODE)
  expect(readCompiledCode(file, 'other')).toBeUndefined()
  expect(readCompiledCode(`${file}x`, 'build')).toBeUndefined()
})

test('is another file for each program and each use', () => {
  const others = [compiledCodeFile('/opt/dragoman/program.js', 'tools'), compiledCodeFile('/usr/program.js', 'serve')]
  expect(new Set([file, ...others]).size).toBe(3)
  for (const each of others) expect(dirname(each)).toBe(dirname(file))
})

test('is not used if it is damaged', async () => {
  const bytes = await readFile(file)
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at] = (damaged[at] ?? 0) ^ 1
    await writeFile(file, damaged)
    expect(readCompiledCode(file, 'build')).toBeUndefined()
  }
  for (const length of [0, 5, 32, bytes.length - 1]) {
    await writeFile(file, bytes)
    await truncate(file, length)
    expect(readCompiledCode(file, 'build')).toBeUndefined()
  }
})

test('is for this user alone, and not used if others may have written it', async () => {
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await stat(dirname(file))).mode & 0o777).toBe(0o700)
  await chmod(file, 0o620)
  expect(readCompiledCode(file, 'build')).toBeUndefined()
  vi.spyOn(process, 'getuid').mockReturnValue(12345)
  await chmod(file, 0o600)
  expect(readCompiledCode(file, 'build')).toBeUndefined()
  vi.restoreAllMocks()
  expect(readCompiledCode(file, 'build')).toEqual(CODE)
})

test('leaves nothing else behind, and nothing where it cannot be written', async () => {
  await writeFile(join(folder, 'file'), '')
  vi.stubEnv('XDG_CACHE_HOME', join(folder, 'file'))
  const nowhere = compiledCodeFile('/opt/dragoman/program.js', 'serve')
  vi.stubEnv('XDG_CACHE_HOME', folder)
  writeCompiledCode(nowhere, 'build', CODE)
  expect(readCompiledCode(nowhere, 'build')).toBeUndefined()
  expect(await readdir(dirname(file))).toHaveLength(1)
})
