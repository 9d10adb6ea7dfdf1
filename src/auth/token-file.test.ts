import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSecret, hashSecret, type Token } from './token.ts'
import { changeTokens, readTokens, tokenFilePath } from './token-file.ts'

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-tokens-'))
  file = tokenFilePath(folder)
})
afterEach(() => rm(folder, { recursive: true }))

const token = (id: string): Token => ({
  id,
  name: 'test',
  hash: hashSecret(createSecret()),
  principal: id,
  workspaces: ['*'],
  created: new Date().toISOString(),
})

describe('the token file', () => {
  it('is created with the first token, readable by its owner only', async () => {
    expect(await readTokens(file)).toBeUndefined()
    const one = token('one')
    await changeTokens(file, tokens => [...tokens, one])
    expect(await readTokens(file)).toEqual([one])
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['tokens.json'])
  })

  it('loses no concurrent change, and is complete at every moment', async () => {
    const ids = Array.from({ length: 10 }, (_, index) => `t${index}`)
    let isDone = false
    const reader = (async () => {
      let reads = 0
      for (; !isDone; reads++) await readTokens(file)
      return reads
    })()
    await Promise.all(ids.map(id => changeTokens(file, tokens => [...tokens, token(id)])))
    isDone = true
    expect(await reader).toBeGreaterThan(1)
    expect((await readTokens(file))?.map(({ id }) => id).sort()).toEqual(ids.sort())
  })

  it('keeps unknown members that a newer version has written', async () => {
    const one = { ...token('one'), note: 'x' }
    await writeFile(file, JSON.stringify({ version: 1, tokens: [one] }))
    await changeTokens(file, tokens => [...tokens, token('two')])
    expect((await readTokens(file))?.[0]).toEqual(one)
  })

  it('is unchanged after a failed change, and can be changed again', async () => {
    await changeTokens(file, () => [token('one')])
    const before = await readFile(file, 'utf8')
    const fail = () => {
      throw new Error('no')
    }
    await expect(changeTokens(file, fail)).rejects.toThrow('no')
    expect(await readFile(file, 'utf8')).toBe(before)
    expect(await readdir(folder)).toEqual(['tokens.json'])
  })

  it('removes a lock that a dead program has left', async () => {
    const lock = `${file}.lock`
    await writeFile(lock, '')
    const longAgo = new Date(Date.now() - 60_000)
    await utimes(lock, longAgo, longAgo)
    await changeTokens(file, () => [token('one')])
    expect(await readTokens(file)).toHaveLength(1)
  })

  it.each([
    ['', 'expected a JSON object'],
    ['{"version":1,"tok', 'expected a JSON object'],
    ['[]', 'expected a JSON object'],
    ['{"version":2,"tokens":[]}', 'at version: written by another version of dragoman'],
    ['{"version":1,"tokens":[{"id":"drg_secret"}]}', 'at tokens.0.name'],
    [JSON.stringify({ version: 1, tokens: [{ ...token('x'), hash: 'drg_secret' }] }), 'at tokens.0.hash'],
    [JSON.stringify({ version: 1, tokens: [{ ...token('x'), expires: 'soon' }] }), 'at tokens.0.expires'],
  ])('that holds %j is broken: it says where, and shows nothing of it', async (text, message) => {
    await writeFile(file, text)
    const error = await readTokens(file).catch((error: Error) => error)
    expect(error).toBeInstanceOf(Error)
    expect(String(error)).toContain(`${file} is broken`)
    expect(String(error)).toContain(message)
    expect(String(error)).not.toContain('drg_secret')
    await expect(changeTokens(file, tokens => tokens)).rejects.toThrow('is broken')
    expect(await readFile(file, 'utf8')).toBe(text)
  })
})
