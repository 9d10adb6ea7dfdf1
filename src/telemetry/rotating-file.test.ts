import { mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RotatingFile } from './rotating-file.ts'

let folder = ''
let file = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-rotation-'))
  file = join(folder, 'audit.jsonl')
})

afterEach(async () => {
  vi.useRealTimers()
  await rm(folder, { recursive: true })
})

const text = (name = file): Promise<string> => readFile(name, 'utf8')
const open = (maxBytes = 1000, files = 3): Promise<RotatingFile> => RotatingFile.open({ file, maxBytes, files })

test('appends to what is there, and only its owner can read a file that it creates', async () => {
  const first = await open()
  await first.write(Buffer.from('one\n'))
  await first.close()
  const second = await open()
  await second.write(Buffer.from('two\n'))
  await second.close()
  expect(await text()).toBe('one\ntwo\n')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a full file is renamed; only so many are kept', async () => {
  const lines = await open(10)
  for (const line of ['first', 'second', 'third', 'fourth', 'fifth']) await lines.write(Buffer.from(`${line}\n`))
  await lines.close()
  expect(await readdir(folder)).toEqual(['audit.jsonl', 'audit.jsonl.1', 'audit.jsonl.2'])
  expect(await Promise.all([text(), text(`${file}.1`), text(`${file}.2`)])).toEqual(['fifth\n', 'fourth\n', 'third\n'])
  expect((await stat(`${file}.1`)).mode & 0o777).toBe(0o600)
})

test('with one file, a full one is replaced', async () => {
  const lines = await open(8, 1)
  for (const line of ['first', 'second']) await lines.write(Buffer.from(`${line}\n`))
  await lines.close()
  expect(await readdir(folder)).toEqual(['audit.jsonl'])
  expect(await text()).toBe('second\n')
})

test('a line that a killed process began is ended first', async () => {
  await writeFile(file, '{"time":"2026')
  const lines = await open()
  await lines.write(Buffer.from('whole\n'))
  await lines.close()
  expect(await text()).toBe('{"time":"2026\nwhole\n')
})

test('a new file is begun after another program has renamed or removed it', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const lines = await open()
  await lines.write(Buffer.from('one\n'))
  await rename(file, `${file}.old`)
  vi.advanceTimersByTime(2000)
  await lines.write(Buffer.from('two\n'))
  await rm(file)
  vi.advanceTimersByTime(2000)
  await lines.write(Buffer.from('three\n'))
  await lines.close()
  expect(await text(`${file}.old`)).toBe('one\n')
  expect(await text()).toBe('three\n')
})

test.skipIf(process.platform !== 'linux')('what a full disk did not take is written first, and once', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  await symlink('/dev/full', file)
  const lines = await open()
  await expect(lines.write(Buffer.from('one\n'))).rejects.toMatchObject({ code: 'ENOSPC' })
  await expect(lines.write(Buffer.alloc(0))).rejects.toMatchObject({ code: 'ENOSPC' })
  await rm(file)
  vi.advanceTimersByTime(2000)
  await lines.write(Buffer.from('two\n'))
  await lines.close()
  expect(await text()).toBe('one\ntwo\n')
})

test('a folder that does not exist is an error', async () => {
  await expect(RotatingFile.open({ file: join(folder, 'no', 'x'), maxBytes: 1, files: 1 })).rejects.toMatchObject({
    code: 'ENOENT',
  })
})
