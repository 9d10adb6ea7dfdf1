import { mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { watchFile } from './watch.ts'

let folder: string
let file: string
let unwatch = (): void => {}
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-watch-'))
  file = join(folder, 'mcp.json')
  await writeFile(file, 'one')
})
afterEach(async () => {
  unwatch()
  await rm(folder, { recursive: true })
})

/** Counts what is announced after the first look. */
const watched = async () => {
  let count = 0
  unwatch = watchFile(file, () => count++)
  await expect.poll(() => count).toBe(1)
  count = 0
  return { count: () => count }
}

test('onChange is called when the file is written, replaced, or missing for a moment', async () => {
  const { count } = await watched()
  await writeFile(file, 'another')
  await expect.poll(count).toBe(1)
  await writeFile(join(folder, 'draft'), 'third')
  await rename(join(folder, 'draft'), file)
  await expect.poll(count).toBe(2)
  await unlink(file)
  await writeFile(file, 'fourth')
  await expect.poll(count).toBe(3)
})

test('a file that is written in several steps is reported once', async () => {
  const { count } = await watched()
  for (let step = 0; step < 10; step++) await writeFile(file, 'x'.repeat(step + 10))
  await expect.poll(count).toBe(1)
})

test('a link that points to another file is reported', async () => {
  const [first, second] = [join(folder, 'a'), join(folder, 'b')]
  await writeFile(first, 'a')
  await writeFile(second, 'b')
  await unlink(file)
  await symlink(first, file)
  const { count } = await watched()
  await unlink(file)
  await symlink(second, file)
  await expect.poll(count).toBe(1)
})

test('changes of other files, and changes after the end, are not reported', async () => {
  const { count } = await watched()
  const endFirst = unwatch
  const other = await watched()
  await writeFile(join(folder, 'neighbour'), 'x')
  endFirst()
  await writeFile(file, 'late')
  await writeFile(join(folder, 'neighbour'), 'y')
  await expect.poll(other.count).toBe(1)
  expect(count()).toBe(0)
})
