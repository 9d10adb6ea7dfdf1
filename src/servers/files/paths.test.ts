import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Rejected, segmentsOf } from './paths.ts'

describe('a path relative to the root', () => {
  test.each([
    ['.', []],
    ['', []],
    ['./', []],
    ['src', ['src']],
    ['./src//main.ts', ['src', 'main.ts']],
    ['src/.hidden', ['src', '.hidden']],
    ['a%20b/100%', ['a%20b', '100%']],
    ['...', ['...']],
    ['a..b/..c', ['a..b', '..c']],
  ])('%j is taken apart', (path, segments) => {
    expect(segmentsOf(path, '/')).toEqual(segments)
  })

  test.each([
    '..',
    '../x',
    'src/../../x',
    'src/..',
    'a/../b',
    '..\\x',
    'src\\..\\..\\x',
    '/etc/passwd',
    '//host/share',
    '\\\\host\\share',
    'C:\\Windows',
    'c:x',
    'a\0b',
    '%2e%2e/x',
    '%2E%2E%2fx',
    '..%2fx',
    '%2fetc/passwd',
    'a%00b',
    '%5c%5chost',
  ])('%j is refused', path => {
    expect(() => segmentsOf(path, '/')).toThrow(Rejected)
  })

  test.each(['file.txt:stream', 'aux', 'NUL.txt', 'com1', 'secret.txt.', 'secret.txt ', 'a\\..\\b'])(
    '%j is refused on Windows',
    path => {
      expect(() => segmentsOf(path, '\\')).toThrow(Rejected)
    },
  )

  test('an accepted path has no ".." segment and is not absolute', () => {
    const piece = fc.constantFrom('..', '.', '/', '\\', 'a', '%2e', '%2f', '\0', 'C:', '', '%', '2e')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
        let segments: string[]
        try {
          segments = segmentsOf(pieces.join(''), '/')
        } catch {
          return
        }
        expect(segments).not.toContain('..')
        expect(segments.join('/')).not.toMatch(/^\/|\0/)
      }),
      { numRuns: 2000 },
    )
  })

  test('a long path is not repeated in full', () => {
    expect(() => segmentsOf(`../${'x'.repeat(10_000)}`)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^.{1,450}$/) }),
    )
  })
})
