import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '..')

const filesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.test.ts') && !file.endsWith('.long.test.ts'))
    .map(file => readFileSync(join(ROOT, folder, file), 'utf8'))

const titled = new Set(
  [...filesIn('test'), ...filesIn('src')].flatMap(text =>
    [...text.matchAll(/['`]((?:[A-H]\d{1,2}(?:, )?)+): /g)].flatMap(([, codes = '']) => codes.split(', ')),
  ),
)
const listed = new Set(
  [...readFileSync(join(ROOT, 'test/README.md'), 'utf8').matchAll(/^\| ([A-H]\d+) /gm)].map(m => m[1]),
)

test('every acceptance scenario of test/README.md is the title of a test of npm test, and every such title is listed there', () => {
  expect([...listed].filter(code => !titled.has(code ?? ''))).toEqual([])
  expect([...titled].filter(code => !listed.has(code))).toEqual([])
})
