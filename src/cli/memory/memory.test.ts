import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type MemoryAdminOptions, openMemoryAdmin } from '../../servers/memory/memory-admin.ts'
import type { CommandContext } from '../command.ts'
import { run } from './memory.ts'

let data: string
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-memory-'))
})
afterAll(() => rm(data, { recursive: true }))

const context = {
  openMemory: async (options: MemoryAdminOptions) => openMemoryAdmin(options),
} as unknown as CommandContext

/** Runs an action on the data directory of these tests; what it prints is returned. */
const memory = async (...args: readonly string[]) => {
  const output = { stdout: '', stderr: '' }
  const spies = (['stdout', 'stderr'] as const).map(name =>
    vi.spyOn(process[name], 'write').mockImplementation(text => {
      output[name] += String(text)
      return true
    }),
  )
  try {
    return { code: await run([...args, '--data', data], context), ...output }
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

describe('an invalid command line', () => {
  it.each([
    [['serch', 'x'], '"serch" is not an action; did you mean "search"?'],
    [['constructor'], '"constructor" is not an action; expected add, '],
    [['search'], 'expected dragoman memory search QUERY'],
    [['stats', 'x'], "Unexpected argument 'x'"],
    [['stats', '--at', '2025-01-01'], '--at does not go with "stats"'],
    [['backup', 'x', '--group', 'a'], '--group does not go with "backup"'],
    [['stats', '--wrkspace', 'x'], "Unknown option '--wrkspace'; did you mean '--workspace'?"],
    [['search', 'x', '--limit', '0'], '--limit: expected a whole number from 1 to 1000'],
    [['add', 'x', '--group', 'a/b'], '--group: "a/b" is not a group name'],
    [['add', 'x', '--group', 'a', '--group', 'b'], '--group: only one group'],
    [['add', 'x', '--workspace', 'a', '--principal', 'b'], '--workspace and --principal do not go together'],
    [['add', 'x', '--workspace', '../a'], '--workspace: "../a" is not a workspace name'],
    [['stats', '--database', '${DRAGOMAN_TEST_UNSET}'], '--database: the variable DRAGOMAN_TEST_UNSET is not set'],
    [['stats', '--database', 'mysql://x'], '--database: expected an address like postgres://'],
    [['stats', '--config', '/no/such/file'], 'cannot read /no/such/file: there is no such file'],
  ])('%j says so', async (args, message) => {
    await expect(memory(...args)).rejects.toThrow(message)
  })
})

describe('an invalid request', () => {
  it.each([
    [['stats', '--workspace', 'missing'], 'there is no memory of workspace missing in'],
    [['add', '--at', 'yesterday', 'x'], '"yesterday" is not an ISO 8601 date'],
    [['add', '--source', 'xml', 'x'], 'There is no source "xml"; there are text, message, json'],
    [['add', '--source', 'json', '{'], 'is not valid JSON'],
    [['add', ' '], 'the text is empty: there is nothing to remember'],
    [['import', '/no/such/file'], 'Cannot read /no/such/file: there is no such file or folder'],
    [['import', import.meta.filename, '--format', 'excel'], 'There is no format "excel"; there are dragoman, '],
    [['retry', '7'], 'no failed job has the number 7'],
    [['forget', '--entity', 'missing', '--yes'], 'missing'],
    [['export', '/no/such/folder/file'], 'cannot write /no/such/folder/file'],
    [['backup', '/no/such/folder/file'], 'No backup could be written to /no/such/folder/file'],
  ])('%j is refused with exit code 1', async (args, message) => {
    await memory('add', 'There is something.')
    const { code, stdout, stderr } = await memory(...args)
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)])
  })
})

it('prints JSON as the tools do', async () => {
  const add = await memory(
    'add',
    'Ann parked on Elm Street in May 2025.',
    '--group',
    'cars',
    '--name',
    'Parking',
    '--json',
  )
  expect(JSON.parse(add.stdout)).toMatchObject({ name: 'Parking', group_id: 'cars', outcome: 'created' })
  const found = await memory('facts', 'Where did Ann park?', '--group', 'cars', '--json')
  expect(JSON.parse(found.stdout)).toMatchObject([{ fact: 'Ann parked on Elm Street in May 2025.', group_id: 'cars' }])
  const passages = await memory('search', 'park', '--group', 'cars', '--json')
  expect(JSON.parse(passages.stdout)).toMatchObject([{ episode_name: 'Parking', group_id: 'cars' }])
  const elsewhere = await memory('search', 'park', '--group', 'other')
  expect(elsewhere).toMatchObject({ code: 0, stdout: 'Nothing was found.\n' })
})

it('retry says that no job has failed', async () => {
  await memory('add', 'There is something.')
  expect(await memory('retry')).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to retry') })
})
