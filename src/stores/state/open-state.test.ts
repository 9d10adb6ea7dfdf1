import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { openSqlite } from '../sqlite.ts'
import { openState } from './open-state.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }

const dataDirectory = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-data-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const opened = async (data: string) => {
  const { log, lines } = createTestLog()
  const state = await openState({ kind: 'sqlite', data }, log)
  onTestFinished(() => state.store.close().catch(() => {}))
  return { ...state, lines }
}

/** A data directory with one stored session. */
const usedDirectory = async (): Promise<string> => {
  const data = await dataDirectory()
  const { store } = await opened(data)
  await store.create('session', 'a', Buffer.from('body'), NEVER)
  await store.close()
  return data
}

const expectMemoryOnly = async (
  { store, lines }: Awaited<ReturnType<typeof opened>>,
  reason: RegExp,
): Promise<void> => {
  expect(store.health()).toMatchObject({
    engine: 'sqlite',
    state: 'memory-only',
    reason: expect.stringMatching(reason),
  })
  expect(JSON.stringify(lines)).toMatch(/state is kept in memory only/)
  const claim = await store.create('session', 'b', Buffer.from('b'), NEVER)
  expect(await store.write(claim, Buffer.from('c'), NEVER)).toBe(true)
}

describe('state in a data directory', () => {
  test('is there after a restart, with the same keys; only the owner can read it', async () => {
    const data = await dataDirectory()
    const first = await opened(data)
    const claim = await first.store.create('session', 'a', Buffer.from('body'), { ...NEVER, durable: true })
    first.store.journal.append(claim, 's', 1, [Buffer.from('event')])
    await first.store.close()
    const next = await opened(data)
    expect(next.keys).toEqual(first.keys)
    expect(next.store.health()).toMatchObject({ engine: 'sqlite', state: 'ok' })
    const taken = await next.store.take('session', 'a')
    expect(taken).toMatchObject({ kind: 'mine', held: { epoch: 2, body: Buffer.from('body') } })
    if (taken.kind === 'mine') expect(await next.store.journal.read(taken.held, 's', 0, 9)).toHaveLength(1)
    for (const file of ['state.db', 'secret', 'state.lock'])
      expect((await stat(join(data, file))).mode & 0o777).toBe(0o600)
  })

  test('hides bodies, events and ids', async () => {
    const data = await dataDirectory()
    const { store } = await opened(data)
    const claim = await store.create('session', 'id-of-a-session', Buffer.from('body-in-clear'), NEVER)
    store.journal.append(claim, 'name-of-a-stream', 1, [Buffer.from('event-in-clear')])
    await store.shared.writeDocument('name-of-a-document', Buffer.from('document-in-clear'), 0)
    await store.close()
    const text = await readFile(join(data, 'state.db'), 'latin1')
    expect(text).not.toMatch(/in-clear|id-of-a-session|name-of-a/)
  })

  test('in use by a process is refused with its process id, and free when that closes', async () => {
    const data = await dataDirectory()
    const first = await opened(data)
    await expect(opened(data)).rejects.toMatchObject({ name: 'DataDirectoryInUse', pid: process.pid })
    await expect(opened(data)).rejects.toThrow(/process id \d+; stop that one, choose another directory/)
    expect(await first.store.create('session', 'a', Buffer.from('x'), NEVER)).toBeDefined()
    await first.store.close()
    const next = await opened(data)
    expect(await next.store.take('session', 'a')).toMatchObject({ kind: 'mine' })
  })
})

describe('a file that cannot be used is left as it is, and state is kept in memory:', () => {
  const cases: [string, (file: string) => Promise<unknown>, RegExp][] = [
    ['truncated', file => truncate(file, 8192), /truncated: it has 8192 of \d+ bytes/],
    [
      'not a database',
      file => writeFile(file, 'a text that is long enough to be looked at '.repeat(200)),
      /not a database/,
    ],
    [
      'of another program',
      async file => {
        await rm(file)
        const other = await openSqlite(file)
        await other.exec('CREATE TABLE mine (x)').finally(() => other.close())
      },
      /database of another program/,
    ],
    [
      'of a newer version',
      async file => {
        const newer = await openSqlite(file)
        await newer.exec("UPDATE meta SET value = '99' WHERE name = 'schema'").finally(() => newer.close())
      },
      /newer version of dragoman \(schema 99, this one knows 2\)/,
    ],
    ['sealed with another secret', file => writeFile(join(file, '../secret'), 'another\n'), /another secret/],
    ['a folder', file => rm(file).then(() => mkdir(file)), /cannot be used/],
  ]
  test.each(cases)('%s', async (_name, spoil, reason) => {
    const data = await usedDirectory()
    const file = join(data, 'state.db')
    await spoil(file)
    const copy = join(data, 'copy')
    const isFile = (await stat(file)).isFile()
    if (isFile) await copyFile(file, copy)
    await expectMemoryOnly(await opened(data), reason)
    if (isFile) expect((await readFile(file)).equals(await readFile(copy))).toBe(true)
  })

  test.skipIf(process.getuid?.() === 0)('in a directory that cannot be written', async () => {
    const data = await usedDirectory()
    for (const file of ['state.db', 'state.lock']) await chmod(join(data, file), 0o400)
    await chmod(data, 0o500)
    onTestFinished(() => chmod(data, 0o700))
    await expectMemoryOnly(await opened(data), /cannot be used/)
  })
})

test.skipIf(process.platform !== 'linux')(
  'a data directory in which nothing can be created leaves memory',
  async () => {
    await expectMemoryOnly(await opened('/proc/self'), /cannot be used/)
  },
)
