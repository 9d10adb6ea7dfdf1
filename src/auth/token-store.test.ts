import { chmod, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestLog, type TestLog } from '../../test/support/log.ts'
import { createSecret, hashSecret, type Token } from './token.ts'
import { changeTokens, tokenFilePath } from './token-file.ts'
import { openTokenStore, type TokenStore } from './token-store.ts'

let folder: string
let file: string
let store: TokenStore | undefined
let log: TestLog
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-store-'))
  file = tokenFilePath(folder)
  log = createTestLog()
})
afterEach(async () => {
  store?.close()
  await rm(folder, { recursive: true, force: true })
})

const token = (secret: string, id = 'one'): Token => ({
  id,
  name: 'test',
  hash: hashSecret(secret),
  principal: id,
  workspaces: ['*'],
  created: new Date().toISOString(),
})

/** Runs a change and waits until the store has noticed it. */
const changed = async (change: () => Promise<void>): Promise<void> => {
  const noticed = new Promise<void>(resolve => store?.onChange(resolve))
  await change()
  await noticed
}

describe('the token store', () => {
  it('has no tokens while there is no file, and notices when one appears', async () => {
    store = await openTokenStore(folder, log.log)
    expect(store.exists).toBe(false)
    const one = token(createSecret())
    await changed(() => changeTokens(file, () => [one]))
    expect(store.exists).toBe(true)
    expect([...store.tokens.values()]).toEqual([one])
  })

  it('drops a revoked token, and still exists without any', async () => {
    await changeTokens(file, () => [token(createSecret())])
    store = await openTokenStore(folder, log.log)
    expect(store.tokens.size).toBe(1)
    await changed(() => changeTokens(file, () => []))
    expect(store.tokens.size).toBe(0)
    expect(store.exists).toBe(true)
  })

  it('drops a revoked token, although the file could not be read at first', async () => {
    // In another directory, so that no watch event announces the repair: only the poll finds it.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const afterPolls = <T>(find: () => T) => {
      const look = (): T => {
        vi.advanceTimersByTime(2000)
        return find()
      }
      return expect.poll(look, { timeout: 5000 })
    }
    const elsewhere = await mkdtemp(join(tmpdir(), 'dragoman-store-'))
    const real = join(elsewhere, 'tokens')
    const write = async (text: string): Promise<void> => {
      await writeFile(real, text.padEnd(1000), { mode: 0o600 })
      await utimes(real, 1e9, 1e9)
    }
    try {
      await writeFile(real, JSON.stringify({ version: 1, tokens: [token(createSecret())] }), { mode: 0o600 })
      await symlink(real, file)
      store = await openTokenStore(folder, log.log)
      expect(store.tokens.size).toBe(1)
      await write('{')
      await afterPolls(() => log.lines.map(({ level }) => level)).toContain('error')
      await write('{"version":1,"tokens":[]}')
      await afterPolls(() => store?.tokens.size).toBe(0)
    } finally {
      vi.useRealTimers()
      await rm(elsewhere, { recursive: true })
    }
  }, 15_000)

  it('still exists after its file or the whole directory is removed', async () => {
    await changeTokens(file, () => [token(createSecret())])
    store = await openTokenStore(folder, log.log)
    await changed(() => rm(folder, { recursive: true }))
    expect(store.tokens.size).toBe(0)
    expect(store.exists).toBe(true)
  })

  it('keeps the last valid tokens when the file breaks, logs it, and recovers', async () => {
    const one = token(createSecret())
    await changeTokens(file, () => [one])
    store = await openTokenStore(folder, log.log)
    await writeFile(file, '{"version":1,')
    const { fields } = await log.saw(({ level }) => level === 'error')
    expect(fields.reason).toContain(`${file} is broken`)
    expect([...store.tokens.values()]).toEqual([one])
    const two = token(createSecret(), 'two')
    await changed(() => writeFile(file, JSON.stringify({ version: 1, tokens: [two] })))
    expect([...store.tokens.values()]).toEqual([two])
  })

  it('does not read a file again that has not changed', async () => {
    await changeTokens(file, () => [token(createSecret())])
    store = await openTokenStore(folder, log.log)
    const before = store.tokens
    for (let at = 0; at < 3; at++) expect(await store.reload()).toBe(true)
    expect(store.tokens).toBe(before)
    expect(log.lines.filter(({ message }) => message === 'tokens read')).toHaveLength(1)
  })

  it('ends with the last of many changes', async () => {
    store = await openTokenStore(folder, log.log)
    for (let count = 1; count <= 10; count++)
      await changeTokens(file, tokens => [...tokens, token(createSecret(), `t${count}`)])
    await log.saw(({ fields }) => fields.tokens === 10)
    expect(store.tokens.size).toBe(10)
  })

  it('is not opened with a broken file', async () => {
    await writeFile(file, 'x')
    await expect(openTokenStore(folder, log.log)).rejects.toThrow('is broken')
  })

  it('warns when others may read or write the file', async () => {
    await changeTokens(file, () => [])
    await chmod(file, 0o644)
    store = await openTokenStore(folder, log.log)
    expect(log.lines).toContainEqual({
      level: 'warn',
      fields: { file, mode: '644' },
      message: 'others may read or write the tokens: chmod 600',
    })
  })
})
