import { expect, test } from 'vitest'
import { createSseParser, type SseEvent } from './sse-parser.ts'

const parse = (...pieces: string[]): SseEvent[] => {
  const events: SseEvent[] = []
  const push = createSseParser(event => events.push(event))
  for (const piece of pieces) push(piece)
  return events
}

test('an event ends with an empty line', () => {
  expect(parse('event: endpoint\ndata: /m\nid: 7\n\n')).toEqual([{ event: 'endpoint', data: '/m', id: '7' }])
  expect(parse('data: a\n')).toEqual([])
})

test('lines of data are joined, one space after the colon is left out', () => {
  expect(parse('data: a\ndata:b\ndata:  c\ndata\n\n')[0]?.data).toBe('a\nb\n c\n')
})

test('comments, unknown fields and events without data are left out', () => {
  expect(parse(': keep-alive\n\nretry: 5\nid: 1\n\nevent: x\n\ndata: y\n\n')).toEqual([
    { event: 'message', data: 'y', id: '1' },
  ])
})

test.each(['\n', '\r\n', '\r'])('lines may end with %j', end => {
  const text = ['event: e', 'data: 1', 'data: 2', '', 'data: 3', '', ''].join(end)
  expect(parse(text).map(({ event, data }) => [event, data])).toEqual([
    ['e', '1\n2'],
    ['message', '3'],
  ])
})

test('the pieces may be cut anywhere', () => {
  const text = 'event: e\r\ndata: one\r\ndata: two\r\n\r\n: c\r\ndata: {"a":"\\n"}\r\n\r\n'
  const whole = parse(text)
  expect(whole).toHaveLength(2)
  for (let at = 0; at <= text.length; at++) expect(parse(text.slice(0, at), text.slice(at))).toEqual(whole)
  expect(parse(...text)).toEqual(whole)
})

test('a long line in many pieces takes no quadratic time', () => {
  const piece = 'x'.repeat(65_536)
  const started = performance.now()
  const [event] = parse('data: ', ...Array.from({ length: 400 }, () => piece), '\n\n')
  expect(event?.data.length).toBe(400 * 65_536)
  expect(performance.now() - started).toBeLessThan(2000)
})
