import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { deriveKeys, deriveStoreKeys, randomKeys, readSecretFile } from './secret.ts'

const dataDirectory = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-secret-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

test('one secret gives a different key of 32 bytes for each purpose, always the same ones', () => {
  const keys = deriveKeys(['one'])
  const all = [...keys.ids, ...keys.callers, ...keys.cursors, ...deriveStoreKeys(['one'])]
  expect(new Set(all.map(key => key.toString('hex'))).size).toBe(4)
  expect(all.every(({ length }) => length === 32)).toBe(true)
  expect(deriveKeys(['one'])).toEqual(keys)
  expect(randomKeys()).not.toEqual(randomKeys())
})

test('while a secret is replaced, the first one seals and both open', () => {
  const [next, former] = [deriveKeys(['next']), deriveKeys(['former'])]
  expect(deriveKeys(['next', 'former']).ids).toEqual([next.ids[0], former.ids[0]])
})

test('the secret of a data directory is created once, for its owner only', async () => {
  const data = await dataDirectory()
  const [one, other] = await Promise.all([readSecretFile(data), readSecretFile(data)])
  expect(other).toEqual(one)
  await chmod(join(data, 'secret'), 0o644)
  expect(await readSecretFile(data)).toEqual(one)
  expect((await stat(join(data, 'secret'))).mode & 0o777).toBe(0o600)
  await writeFile(join(data, 'secret'), `next\n\n${one[0]}\n`)
  expect(await readSecretFile(data)).toEqual(['next', one[0]])
})

test('an empty file of a secret is explained', async () => {
  const data = await dataDirectory()
  await writeFile(join(data, 'secret'), '')
  await expect(readSecretFile(data)).rejects.toThrow(/is empty: remove it/)
})
