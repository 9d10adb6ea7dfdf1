import { chmod, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestLog, type TestLog } from '../../test/support/log.ts'
import { hashOf, mintSecret, type Token } from './token.ts'
import { changeTokens, tokenFileIn } from './token-file.ts'
import { TokenStore } from './token-store.ts'

let folder: string
let file: string
let book: TokenStore | undefined
let log: TestLog
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-book-'))
  file = tokenFileIn(folder)
  log = createTestLog()
})
afterEach(async () => {
  book?.close()
  await rm(folder, { recursive: true, force: true })
})

const token = (secret: string, id = 'one'): Token => ({
  id,
  name: 'test',
  hash: hashOf(secret),
  principal: id,
  workspaces: ['*'],
  created: new Date().toISOString(),
})

/** Does something and waits until the book has taken notice. */
const changed = async (change: () => Promise<void>): Promise<void> => {
  const noticed = new Promise<void>(resolve => book?.onChange(resolve))
  await change()
  await noticed
}

describe('the book of tokens', () => {
  it('has no tokens while there is no file, and takes notice when one appears', async () => {
    book = await TokenStore.open(folder, log.log)
    expect(book.exists).toBe(false)
    const one = token(mintSecret())
    await changed(() => changeTokens(file, () => [one]))
    expect(book.exists).toBe(true)
    expect([...book.tokens.values()]).toEqual([one])
  })

  it('strikes off what was revoked, and stays in force without any', async () => {
    await changeTokens(file, () => [token(mintSecret())])
    book = await TokenStore.open(folder, log.log)
    expect(book.tokens.size).toBe(1)
    await changed(() => changeTokens(file, () => []))
    expect(book.tokens.size).toBe(0)
    expect(book.exists).toBe(true)
  })

  it('strikes off what was revoked, although the file could not be read at first', async () => {
    // Elsewhere, so that no watch announces the repair: a failure that passes leaves no trace either.
    const elsewhere = await mkdtemp(join(tmpdir(), 'dragoman-book-'))
    const real = join(elsewhere, 'tokens')
    const write = async (text: string): Promise<void> => {
      await writeFile(real, text.padEnd(1000), { mode: 0o600 })
      await utimes(real, 1e9, 1e9)
    }
    try {
      await writeFile(real, JSON.stringify({ version: 1, tokens: [token(mintSecret())] }), { mode: 0o600 })
      await symlink(real, file)
      book = await TokenStore.open(folder, log.log)
      expect(book.tokens.size).toBe(1)
      await write('{')
      await expect.poll(() => log.lines.map(({ level }) => level), { timeout: 5000 }).toContain('error')
      await write('{"version":1,"tokens":[]}')
      await expect.poll(() => book?.tokens.size, { timeout: 5000 }).toBe(0)
    } finally {
      await rm(elsewhere, { recursive: true })
    }
  }, 15_000)

  it('stays in force when the file is removed, or its whole directory', async () => {
    await changeTokens(file, () => [token(mintSecret())])
    book = await TokenStore.open(folder, log.log)
    await changed(() => rm(folder, { recursive: true }))
    expect(book.tokens.size).toBe(0)
    expect(book.exists).toBe(true)
  })

  it('keeps the last good tokens when the file breaks, says so, and recovers', async () => {
    const one = token(mintSecret())
    await changeTokens(file, () => [one])
    book = await TokenStore.open(folder, log.log)
    await writeFile(file, '{"version":1,')
    const { fields } = await log.saw(({ level }) => level === 'error')
    expect(fields.reason).toContain(`${file} is broken`)
    expect([...book.tokens.values()]).toEqual([one])
    const two = token(mintSecret(), 'two')
    await changed(() => writeFile(file, JSON.stringify({ version: 1, tokens: [two] })))
    expect([...book.tokens.values()]).toEqual([two])
  })

  it('ends with the last of many changes', async () => {
    book = await TokenStore.open(folder, log.log)
    for (let count = 1; count <= 10; count++)
      await changeTokens(file, tokens => [...tokens, token(mintSecret(), `t${count}`)])
    await log.saw(({ fields }) => fields.tokens === 10)
    expect(book.tokens.size).toBe(10)
  })

  it('is not opened with a broken file', async () => {
    await writeFile(file, 'x')
    await expect(TokenStore.open(folder, log.log)).rejects.toThrow('is broken')
  })

  it('warns when others may read or write the file', async () => {
    await changeTokens(file, () => [])
    await chmod(file, 0o644)
    book = await TokenStore.open(folder, log.log)
    expect(log.lines).toContainEqual({
      level: 'warn',
      fields: { file, mode: '644' },
      message: 'others may read or write the tokens: chmod 600',
    })
  })
})
