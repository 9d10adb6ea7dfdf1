import { describe, expect, test } from 'vitest'
import { cpuMs } from '../../../test/support/cpu-time.ts'
import { readGlob } from './glob.ts'

describe('a glob', () => {
  test.each([
    ['*.ts', 'main.ts', true],
    ['*.ts', 'src/deep/main.ts', true],
    ['*.ts', 'main.tsx', false],
    ['main.?s', 'src/main.ts', true],
    ['src/*.ts', 'src/main.ts', true],
    ['src/*.ts', 'src/deep/main.ts', false],
    ['src/*.ts', 'lib/src/main.ts', false],
    ['src/**/*.ts', 'src/main.ts', true],
    ['src/**/*.ts', 'src/a/b/main.ts', true],
    ['src/**/*.ts', 'srcs/main.ts', false],
    ['src/**', 'src/a/b', true],
    ['src/**', 'src', false],
    ['**/test/*', 'test/x', true],
    ['**/test/*', 'a/b/test/x', true],
    ['**/test/*', 'a/btest/x', false],
    ['./src/*', 'src/a', true],
    ['/src/*', 'src/a', true],
    ['*.{ts,tsx}', 'a/b.tsx', true],
    ['*.{ts,tsx}', 'a/b.ts', true],
    ['*.{ts,tsx}', 'a/b.js', false],
    ['{a,b/{c,d}}/x', 'b/d/x', true],
    ['[a-c]1', 'b1', true],
    ['[!a-c]1', 'b1', false],
    ['[!a-c]1', 'z1', true],
    ['a[/]b', 'a/b', false],
    ['a.b', 'axb', false],
    ['(a+)+$', '(a+)+$', true],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['[', '[', true],
    ['ü?', 'ü😀', true],
    ['.*', '.env', true],
  ])('%j on %j: %s', (pattern, path, fits) => {
    expect(readGlob(pattern)(path)).toBe(fits)
  })

  test.each([
    ['', 'empty'],
    ['x'.repeat(1001), 'longer'],
    ['{a,b}'.repeat(10), 'alternatives'],
  ])('%j is refused', (pattern, word) => {
    expect(() => readGlob(pattern)).toThrow(word)
  })

  test('patterns that make regular expressions hang are as quick as any other', () => {
    const fits = readGlob(`${'*a'.repeat(200)}b`)
    const started = cpuMs()
    expect(fits('a'.repeat(2000))).toBe(false)
    expect(cpuMs() - started).toBeLessThan(1000)
  })
})
