import { expect, test } from 'vitest'
import { type KnownLines, readHead } from './response-head.ts'

const headOf = (...lines: readonly string[]): string => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n')

const OF_ONE_CONNECTION: readonly string[] = [
  headOf('Content-Type: application/json', 'Date: Thu, 19 Nov 2026 01:00:00 GMT', 'Content-Length: 5'),
  headOf('Content-Type: application/json', 'Date: Thu, 19 Nov 2026 01:00:01 GMT', 'Content-Length: 5'),
  headOf('Content-Type: application/json', 'Date: Thu, 19 Nov 2026 01:00:01 GMT', 'Content-Length: 55'), // begins with a line that is known
  headOf('Content-Type: application/json'),
  headOf('Content-Length: 7', 'Content-Type: application/json', 'X: 1', 'X: 1', 'X: 2'),
  headOf('Content-Length: 7', 'Content-Type: application/json; charset=utf-8', 'x: 1', 'X: 1'),
  headOf('Content-Length: 7', `Long: ${'x'.repeat(300)}`, 'Connection: close'),
  headOf('Content-Length: 7', `Long: ${'x'.repeat(300)}`, 'Connection: Keep-Alive'),
  headOf(...Array.from({ length: 60 }, (_, at) => `h${at}: ${at}`), 'content-length: 0'),
  headOf(...Array.from({ length: 61 }, (_, at) => `h${at}: ${at}`), 'content-length: 0'),
  headOf('__proto__: x', 'content-length: 0'),
]

test('the lines of earlier responses change nothing in what is read of later ones', () => {
  const known: KnownLines = []
  for (const text of [...OF_ONE_CONNECTION, ...OF_ONE_CONNECTION.toReversed(), ...OF_ONE_CONNECTION])
    expect(readHead(text, 'POST', known)).toEqual(readHead(text, 'POST'))
  expect(known.length).toBeLessThanOrEqual(32)
  expect(known.every(({ text }) => text.length <= 256)).toBe(true)
})

test('a line that is not valid is rejected after a valid one in its place', () => {
  const known: KnownLines = []
  readHead(headOf('x: 1', 'content-length: 0'), 'POST', known)
  for (const line of ['x: 1\n', 'x : 1', ' x: 1', 'x: 1\r', 'x: 1\u0000'])
    expect(() => readHead(headOf(line, 'content-length: 0'), 'POST', known)).toThrow('a header line is not valid')
  expect(() => readHead(headOf('x: 1', 'content-length: 0', 'content-length: 0'), 'POST', known)).toThrow(/one number/)
})
