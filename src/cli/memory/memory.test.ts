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
    [['facts', '--as-of', 'then'], '--as-of: "then" is not an ISO 8601 date'],
    [['forget', '--dry-run', '--entity', 'missing'], 'There is no entity missing'],
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

it('lists entities with their facts, and facts as of a date', async () => {
  const inGroup = (...args: readonly string[]) => memory(...args, '--group', 'homes')
  await inGroup('add', 'Nadia lived in Lisbon until 2019.', '--at', '2018-05-01')
  await inGroup('add', 'Nadia lives in Porto.', '--at', '2020-05-01')
  const entities = await inGroup('entities')
  expect(entities.stdout.split('\n')[0]?.split(/ +/)).toEqual(['UUID', 'GROUP', 'FACTS', 'LABELS', 'NAME'])
  expect(entities.stdout.split('\n').map(line => line.replace(/^\S+ +/, ''))).toEqual(
    expect.arrayContaining(['homes  2      -       Nadia', 'homes  1      -       Porto']),
  )
  expect(JSON.parse((await inGroup('entities', 'Who lives in Porto?', '--limit', '1', '--json')).stdout)).toMatchObject(
    [{ name: 'Porto', facts: 1, group_id: 'homes' }],
  )
  expect((await memory('entities', '--group', 'nothing')).stdout).toBe('Nothing was found.\n')
  const asOf = async (...args: readonly string[]) => {
    const { stdout } = await inGroup('facts', ...args, '--json')
    return (JSON.parse(stdout) as { fact: string }[]).map(({ fact }) => fact)
  }
  expect(await asOf()).toEqual(['Nadia lives in Porto.', 'Nadia lived in Lisbon until 2019.'])
  expect(await asOf('--as-of', '2019-01-01')).toEqual(['Nadia lived in Lisbon until 2019.'])
  expect(await asOf('--as-of', '2021-01-01')).toEqual(['Nadia lives in Porto.'])
  expect(await asOf('Nadia', '--as-of', '2017-01-01')).toEqual([])
})

it('forget --dry-run says what else would go, and erases nothing', async () => {
  const inGroup = (...args: readonly string[]) => memory(...args, '--group', 'trip')
  await inGroup('add', 'Zoltan and Mira saw Vienna. Mira liked the trams.', '--name', 'The trip')
  await inGroup('add', 'The museums of Vienna are big.')
  const preview = await inGroup('forget', '--subject', 'Zoltan', '--dry-run')
  expect(preview.code).toBe(0)
  expect(preview.stdout.replaceAll(/\b[0-9a-f-]{36}\b/g, 'UUID')).toBe(
    `To forget everything that names "Zoltan" in trip would erase 1 episode, 2 entities, 2 facts.
episodes:
  UUID  The trip
entities:
  UUID  Zoltan
entities that go with them:
  UUID  Mira
facts:
  UUID  Zoltan and Mira saw Vienna.
facts that go with them:
  UUID  Mira liked the trams.
Nothing was erased.
`,
  )
  const json = await inGroup('forget', '--subject', 'Zoltan', '--dry-run', '--json')
  expect(JSON.parse(json.stdout)).toMatchObject([
    { episodes: [{ text: 'The trip' }], entities: [{}, {}], facts: [{}, {}] },
  ])
  expect((await inGroup('search', 'Zoltan')).stdout).toContain('Zoltan and Mira saw Vienna.')
  const erased = await inGroup('forget', '--subject', 'Zoltan', '--yes')
  expect(erased.stdout).toMatch(/^Erased 1 episode, 2 entities, 2 facts;/)
  expect((await inGroup('forget', '--subject', 'Zoltan', '--dry-run')).stdout).toContain(
    '0 episodes, 0 entities, 0 facts',
  )
})

it('retry says that no job has failed', async () => {
  await memory('add', 'There is something.')
  expect(await memory('retry')).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to retry') })
})
