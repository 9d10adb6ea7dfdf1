import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/support/cpu-time.ts'
import { errorBodyText, readRetryAfter } from './http-failures.ts'

const textOf = (body: string | Buffer, sent: readonly string[] = []) => errorBodyText(Buffer.from(body), sent)

describe('the words of a refusal', () => {
  it.each([
    ['Access is only allowed at localhost:8931', 'Access is only allowed at localhost:8931'],
    ['\n\n  first line \r\nsecond line', 'first line'],
    ['{"error":{"code":-32000,"message":"Invalid Host: x"}}', 'Invalid Host: x'],
    ['{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad\\nthing"}}', 'Bad'],
    ['{"message":"Forbidden"}', 'Forbidden'],
    ['{"error":"invalid_token","error_description":"The token expired"}', 'The token expired'],
    ['{"error":"nope"}', 'nope'],
    ['{"detail":"Not authenticated"}', 'Not authenticated'],
    ['<!doctype html><html><head><style>a{}</style><title>403 Forbidden</title></head></html>', '403 Forbidden'],
    ['<html><body>\n<h1>Sorry &amp; goodbye</h1></body></html>', 'Sorry & goodbye'],
    ['a \u001b[31mred\u0000 "word"', "a [31mred 'word'"],
    ['see \u202Eevil', 'see evil'],
  ])('%j is quoted as %j', (body, expected) => {
    expect(textOf(body)).toBe(expected)
  })

  it.each(['', '   \n', '{"a":1}', '[]', '<html></html>', Buffer.from([0xff, 0xfe, 0, 1]), '{"message":{"a":1}}'])(
    'there are none in %j',
    body => {
      expect(textOf(body)).toBeUndefined()
    },
  )

  it('are short', () => {
    expect(textOf('x'.repeat(10_000))).toBe(`${'x'.repeat(200)}…`)
  })

  it('do not repeat the credentials we sent', () => {
    const sent = ['authorization', 'Bearer s3cret-token', 'x-api-key', 'k-12345678', 'accept', 'application/json']
    expect(textOf('no Bearer s3cret-token, nor k-12345678; send application/json', sent)).toBe(
      'no Bearer [hidden], nor [hidden]; send application/json',
    )
  })

  it('take no time however a page is made', () => {
    const started = cpuMs()
    for (const piece of ['<', '<style>', '<title', '&', '<!--', '"']) textOf(piece.repeat(64 * 1024))
    expect(cpuMs() - started).toBeLessThan(2000)
  })
})

const now = Date.parse('2026-11-01T10:00:00Z')

it.each([
  ['2', 2000],
  [' 0.5 ', 500],
  ['Sun, 01 Nov 2026 10:00:03 GMT', 3000],
  ['Sun, 01 Nov 2026 09:00:00 GMT', 0],
  ['soon', undefined],
  [undefined, undefined],
])('reads Retry-After: %s', (header, expected) => {
  expect(readRetryAfter(header, now)).toBe(expected)
})
