import { describe, expect, test } from 'vitest'
import { ResponseSyntaxError } from './response-head.ts'
import { ResponseParser } from './response-parser.ts'

interface Outcome {
  readonly status: number
  readonly body: string
  readonly keepAlive: boolean
  readonly isComplete: boolean
  readonly rest: string // what follows the response
}

/** Feeds the bytes in pieces that end at these places. */
const parse = (text: string, cuts: readonly number[], method = 'POST'): Outcome => {
  const bytes = Buffer.from(text, 'latin1')
  let [status, body, keepAlive, isComplete] = [0, '', false, false]
  const parser = new ResponseParser({
    head: head => {
      status = head.status
      keepAlive = head.keepAlive
    },
    body: chunk => {
      body += chunk.toString('latin1')
    },
    end: () => {
      isComplete = true
    },
  })
  parser.expect(method)
  let from = 0
  for (const to of [...cuts, bytes.length]) {
    // As in a connection: the buffer is larger than what was read into it, and is used again.
    const buffer = Buffer.alloc(bytes.length + 8, '\r\n')
    bytes.copy(buffer, 0, from, to)
    const at = parser.feed(buffer, 0, to - from)
    buffer.fill(0)
    from = from + at
    if (parser.isDone) break
  }
  if (!isComplete) parser.endWithConnection()
  return { status, body, keepAlive, isComplete, rest: text.slice(from) }
}

/** Every place where one cut can be, all places, and some combinations of places. */
const cutsOf = (length: number): number[][] => {
  const places = Array.from({ length: Math.max(0, length - 1) }, (_, index) => index + 1)
  let seed = length
  const random = (): number => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31
    return seed / 2 ** 31
  }
  const some = Array.from({ length: 50 }, () => places.filter(() => random() < 0.15))
  return [[], places, ...places.map(place => [place]), ...some]
}

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`

/** What is read: its text, and what comes of it. */
const VALID: readonly (readonly [string, string, Partial<Outcome>, string?])[] = [
  ['a length', `${OK}Content-Length: 5\r\n\r\nhello`, { status: 200, body: 'hello', keepAlive: true }],
  ['no body', `${OK}content-length: 0\r\n\r\n`, { body: '', isComplete: true }],
  ['space around a value', `${OK}content-length: \t 5 \t\r\n\r\nhello`, { body: 'hello' }],
  ['an empty value', `${OK}x:\r\ncontent-length: 1\r\n\r\nh`, { body: 'h' }],
  ['no reason phrase', 'HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nh', { status: 200, body: 'h' }],
  ['an empty reason phrase', 'HTTP/1.1 404 \r\ncontent-length: 1\r\n\r\nh', { status: 404, body: 'h' }],
  ['bytes above 127', `${OK}x: \xe9\xff\r\ncontent-length: 1\r\n\r\n\xff`, { body: '\xff' }],
  ['a name that objects have', `${OK}__proto__: x\r\nconstructor: y\r\ncontent-length: 1\r\n\r\nh`, { body: 'h' }],
  ['chunks', `${CHUNKED}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`, { body: 'hello world', keepAlive: true }],
  ['a size with zeros and capitals', `${CHUNKED}00A\r\n0123456789\r\n000\r\n\r\n`, { body: '0123456789' }],
  ['an extension of a chunk', `${CHUNKED}1;a=b;c="d"\r\nx\r\n0;z\r\n\r\n`, { body: 'x', isComplete: true }],
  ['trailers', `${CHUNKED}1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n`, { body: 'x', isComplete: true }],
  ['line ends inside a chunk', `${CHUNKED}4\r\n\r\n\r\n\r\n0\r\n\r\n`, { body: '\r\n\r\n', isComplete: true }],
  ['Chunked in capitals', `${OK}Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n`, { body: '', isComplete: true }],
  ['a body until the connection ends', `${OK}\r\nall of it`, { body: 'all of it', keepAlive: false, isComplete: true }],
  ['connection: close', `${OK}connection: close\r\ncontent-length: 1\r\n\r\nh`, { body: 'h', keepAlive: false }],
  ['close among options', `${OK}connection: x, Close\r\ncontent-length: 0\r\n\r\n`, { keepAlive: false }],
  [
    'two Connection headers',
    `${OK}connection: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    { keepAlive: false },
  ],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nh', { body: 'h', keepAlive: false }],
  ['HTTP/1.0 kept', 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n', { keepAlive: true }],
  [
    'HTTP/1.0 with chunks',
    'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n',
    { body: 'x', keepAlive: false },
  ],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '', keepAlive: true, isComplete: true }],
  [
    '204 with a length',
    'HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\nhello',
    { body: '', keepAlive: false, rest: 'hello' },
  ],
  ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n', { status: 304, body: '', isComplete: true }],
  ['HEAD', `${OK}content-length: 5\r\n\r\n`, { body: '', keepAlive: false, isComplete: true }, 'HEAD'],
  ['100 first', `HTTP/1.1 100 Continue\r\n\r\n${OK}content-length: 1\r\n\r\nh`, { status: 200, body: 'h' }],
  [
    '103 twice',
    `HTTP/1.1 103 Hints\r\nlink: a\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n${OK}content-length: 1\r\n\r\nh`,
    { status: 200, body: 'h' },
  ],
  ['another response behind it', `${OK}content-length: 1\r\n\r\nh${OK}`, { body: 'h', rest: OK }],
  ['bytes behind the last chunk', `${CHUNKED}0\r\n\r\nmore`, { body: '', rest: 'more' }],
]

/** What is rejected, because another reader could read it differently, or because it is no HTTP. */
const INVALID: readonly (readonly [string, string])[] = [
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['HTTP/2', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['HTTP/1.2', 'HTTP/1.2 200 OK\r\n\r\n'],
  ['a lower-case protocol', 'http/1.1 200 OK\r\n\r\n'],
  ['an empty line first', `\r\n${OK}\r\n`],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
  ['two spaces before the status', 'HTTP/1.1  200 OK\r\n\r\n'],
  ['LF alone after the status line', 'HTTP/1.1 200 OK\ncontent-length: 0\r\n\r\n'],
  ['LF alone after a header', `${OK}content-length: 0\n\r\n`],
  ['LF alone as the empty line', `${OK}content-length: 0\r\n\nhello\r\n\r\n`],
  ['CR alone in a value', `${OK}x: a\rcontent-length: 1\r\n\r\n`],
  ['CR CR LF', `${OK}content-length: 0\r\r\n\r\n`],
  ['NUL in a value', `${OK}x: a\0b\r\n\r\n`],
  ['a control character in a name', `${OK}x\x01: a\r\n\r\n`],
  ['space before a colon', `${OK}content-length : 5\r\n\r\nhello`],
  ['a tab before a colon', `${OK}transfer-encoding\t: chunked\r\n\r\n0\r\n\r\n`],
  ['a folded line', `${OK}x: a\r\n b\r\n\r\n`],
  ['space before the first header', `${OK} x: a\r\n\r\n`],
  ['a line without a colon', `${OK}nothing\r\n\r\n`],
  ['an empty name', `${OK}: a\r\n\r\n`],
  ['two lengths', `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`],
  ['the same length twice', `${OK}content-length: 5\r\nContent-Length: 5\r\n\r\nhello`],
  ['a list of lengths', `${OK}content-length: 5, 5\r\n\r\nhello`],
  ['a signed length', `${OK}content-length: +5\r\n\r\nhello`],
  ['a negative length', `${OK}content-length: -5\r\n\r\nhello`],
  ['a hexadecimal length', `${OK}content-length: 0x5\r\n\r\nhello`],
  ['an empty length', `${OK}content-length:\r\n\r\nhello`],
  ['a length with space inside', `${OK}content-length: 5 5\r\n\r\nhello`],
  ['a length beyond numbers', `${OK}content-length: 9999999999999999\r\n\r\n`],
  ['length and chunks', `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['chunks and length', `${OK}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`],
  ['two encodings', `${OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ['an encoding twice', `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['identity', `${OK}transfer-encoding: identity\r\n\r\nhello`],
  ['an unknown encoding', `${OK}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n`],
  ['an encoding with a control character', `${OK}transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
  ['101', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
  ['a chunk without a size', `${CHUNKED}\r\nhello\r\n0\r\n\r\n`],
  ['a size that is no number', `${CHUNKED}xyz\r\nhello\r\n0\r\n\r\n`],
  ['a size with 0x', `${CHUNKED}0x5\r\nhello\r\n0\r\n\r\n`],
  ['a signed size', `${CHUNKED}+5\r\nhello\r\n0\r\n\r\n`],
  ['space before a size', `${CHUNKED} 5\r\nhello\r\n0\r\n\r\n`],
  ['space after a size', `${CHUNKED}5 \r\nhello\r\n0\r\n\r\n`],
  ['a size beyond numbers', `${CHUNKED}fffffffffffffff\r\nhello\r\n0\r\n\r\n`],
  ['LF alone after a size', `${CHUNKED}5\nhello\r\n0\r\n\r\n`],
  ['LF alone in an extension', `${CHUNKED}5;a\nhello\r\n0\r\n\r\n`],
  ['a chunk that is longer', `${CHUNKED}4\r\nhello\r\n0\r\n\r\n`],
  ['LF alone after a chunk', `${CHUNKED}5\r\nhello\n0\r\n\r\n`],
  ['a trailer that is no header', `${CHUNKED}0\r\nnothing\r\n\r\n`],
  ['LF alone after a trailer', `${CHUNKED}0\r\na: b\n\r\n`],
  ['a folded trailer', `${CHUNKED}0\r\na: b\r\n c\r\n\r\n`],
]

describe('reads, wherever the bytes are split', () => {
  const cases = VALID.map(([name, text, expected, method = 'POST']) => [name, text, expected, method] as const)
  test.each(cases)('%s', (_name, text, expected, method) => {
    for (const cuts of cutsOf(text.length)) expect(parse(text, cuts, method)).toMatchObject(expected)
  })
})

describe('rejects, wherever the bytes are split', () => {
  test.each(INVALID)('%s', (_name, text) => {
    for (const cuts of cutsOf(text.length)) expect(() => parse(text, cuts), String(cuts)).toThrow(ResponseSyntaxError)
  })
})

describe('bounds', () => {
  const large = (headers: number, size: number): string =>
    `${OK}${Array.from({ length: headers }, (_, index) => `x${index}: ${'v'.repeat(size)}\r\n`).join('')}content-length: 0\r\n\r\n`

  test.each([
    ['64 KiB of headers', large(60, 1000), true],
    ['more', large(70, 1000), false],
    ['one header that is larger', large(1, 70_000), false],
    ['200 headers', large(200, 1), true],
    ['300 headers', large(300, 1), false],
    ['informational responses', `${'HTTP/1.1 103 Hints\r\n\r\n'.repeat(4000)}${large(1, 1)}`, false],
    ['an extension of a chunk', `${CHUNKED}1;${'x'.repeat(2000)}\r\nh\r\n0\r\n\r\n`, false],
    ['trailers', `${CHUNKED}0\r\n${'a: b\r\n'.repeat(20_000)}\r\n`, false],
  ])('%s', (_name, text, isRead) => {
    const pieces = Array.from({ length: Math.ceil(text.length / 700) - 1 }, (_, index) => (index + 1) * 700)
    const bytes = Array.from({ length: text.length - 1 }, (_, index) => index + 1)
    for (const cuts of [[], pieces, text.length < 3000 ? bytes : []]) {
      if (isRead) expect(parse(text, cuts).isComplete).toBe(true)
      else expect(() => parse(text, cuts)).toThrow(ResponseSyntaxError)
    }
  })
})

test('stops behind a part of the body while it is paused, and before the end', () => {
  const heard: string[] = []
  const parser = new ResponseParser({
    head: () => heard.push('head'),
    body: chunk => {
      heard.push(chunk.toString())
      parser.isPaused = true
    },
    end: () => heard.push('end'),
  })
  const bytes = Buffer.from(`${CHUNKED}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`)
  parser.expect('POST')
  let at = parser.feed(bytes, 0, bytes.length)
  expect(heard).toEqual(['head', 'a'])
  parser.isPaused = false
  at = parser.feed(bytes, at, bytes.length)
  expect(heard).toEqual(['head', 'a', 'b'])
  parser.isPaused = false
  expect(parser.feed(bytes, at, bytes.length)).toBe(bytes.length)
  expect(heard).toEqual(['head', 'a', 'b', 'end'])
})

test('reads equal heads of one connection by the method of each request', () => {
  const head = `${OK}content-length: 2\r\nx: y\r\n\r\n`
  const responses: string[] = []
  let body = ''
  const parser = new ResponseParser({
    head: ({ status, headers }) => {
      body = `${status} ${headers.x} `
    },
    body: chunk => {
      body += chunk.toString()
    },
    end: () => responses.push(body),
  })
  for (const [method, text] of [
    ['POST', `${head}ab`],
    ['POST', `${head}cd`],
    ['HEAD', head],
    ['POST', `${head}ef`],
    ['POST', `${head.replace('y', 'z')}gh`],
    ['POST', `${head}ij`],
  ] as const) {
    const bytes = Buffer.from(text)
    parser.expect(method)
    expect(parser.feed(bytes, 0, bytes.length)).toBe(bytes.length)
  }
  expect(responses).toEqual(['200 y ab', '200 y cd', '200 y ', '200 y ef', '200 z gh', '200 y ij'])
})

test('does not complete what the connection cuts off', () => {
  for (const text of [OK, `${OK}content-length: 5\r\n\r\nhell`, `${CHUNKED}5\r\nhello\r\n`, `${CHUNKED}0\r\n`])
    for (const cuts of cutsOf(text.length)) expect(parse(text, cuts).isComplete, text).toBe(false)
})
