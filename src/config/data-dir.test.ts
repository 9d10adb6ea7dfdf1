import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DataDirSource, dataDirectory, ensureDataDirectory, ensureReadable } from './data-dir.ts'

describe('the data directory', () => {
  const linux: DataDirSource = { env: {}, platform: 'linux', home: '/home/ada' }

  it.each<[string, DataDirSource, string]>([
    ['the flag', { ...linux, flag: '/a', env: { DRAGOMAN_DATA: '/b', XDG_DATA_HOME: '/c' } }, '/a'],
    ['the variable', { ...linux, env: { DRAGOMAN_DATA: '/b', XDG_DATA_HOME: '/c' } }, '/b'],
    ['a relative flag', { ...linux, flag: 'here' }, resolve('here')],
    ['XDG', { ...linux, env: { DRAGOMAN_DATA: '', XDG_DATA_HOME: '/c' } }, '/c/dragoman'],
    ['a relative XDG', { ...linux, env: { XDG_DATA_HOME: 'c' } }, '/home/ada/.local/share/dragoman'],
    ['Linux', linux, '/home/ada/.local/share/dragoman'],
    ['FreeBSD', { ...linux, platform: 'freebsd' }, '/home/ada/.local/share/dragoman'],
    ['macOS', { ...linux, platform: 'darwin' }, '/home/ada/Library/Application Support/dragoman'],
    [
      'Windows',
      { env: { LOCALAPPDATA: 'D:\\Local' }, platform: 'win32', home: 'C:\\Users\\ada' },
      'D:\\Local\\dragoman',
    ],
    [
      'a bare Windows',
      { env: {}, platform: 'win32', home: 'C:\\Users\\ada' },
      'C:\\Users\\ada\\AppData\\Local\\dragoman',
    ],
  ])('with %s is where it is expected', (_name, source, expected) => {
    expect(dataDirectory(source)).toBe(expected)
  })
})

describe('ensuring it', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dragoman-data-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('makes it, with what leads to it, for its owner alone; and takes one that is there', async () => {
    const directory = join(folder, 'deep', 'down')
    await ensureDataDirectory(directory)
    await ensureDataDirectory(directory)
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder, 'deep'))).mode & 0o777).toBe(0o700)
  })

  it('says what is in the way and what to do', async () => {
    const file = join(folder, 'file')
    await writeFile(file, '')
    await expect(ensureDataDirectory(file)).rejects.toThrow(
      `cannot use the data directory ${file}: it is not a directory; choose another with --data DIR or DRAGOMAN_DATA`,
    )
    await expect(ensureDataDirectory(join(file, 'deep'))).rejects.toThrow('part of it is not a directory')
    await expect(ensureReadable(join(file, 'deep'))).rejects.toThrow('part of it is not a directory')
  })

  it('takes one that several make at the same time', async () => {
    const directory = join(folder, 'many', 'hands')
    await Promise.all(Array.from({ length: 8 }, () => ensureDataDirectory(directory)))
    expect((await stat(directory)).isDirectory()).toBe(true)
  })

  it('lets one that is not there yet be read', async () => {
    await expect(ensureReadable(join(folder, 'nowhere'))).resolves.toBeUndefined()
  })

  it.runIf(process.platform === 'linux')('fails where no directory can be created', async () => {
    await expect(ensureDataDirectory('/proc/dragoman/data')).rejects.toThrow('nothing can be created there')
  })

  // The superuser may write everywhere.
  it.skipIf(process.getuid?.() === 0)('refuses one that cannot be written, or not be read', async () => {
    const directory = join(folder, 'closed')
    await mkdir(directory, { mode: 0o500 })
    await expect(ensureDataDirectory(directory)).rejects.toThrow('permission denied')
    await chmod(directory, 0o300)
    await expect(ensureReadable(directory)).rejects.toThrow('permission denied')
  })
})
