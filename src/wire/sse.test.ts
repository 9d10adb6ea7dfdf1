import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../test/support/cpu-time.ts'
import { COMMENT_BYTES, EventTooLarge, encodeEvent, SseDecoder, type SseEvent } from './sse.ts'

interface Seen {
  event: string
  data: string
  id?: string
}

const seen = ({ event, data, id }: SseEvent): Seen => ({
  event,
  data: data.toString(),
  ...(id === undefined ? {} : { id }),
})

const decode = (...chunks: (string | Buffer)[]) => decodeAll(chunks)

/** Feeds the chunks and ends. */
const decodeAll = (chunks: readonly (string | Buffer)[]) => {
  const events: Seen[] = []
  const decoder = new SseDecoder(event => events.push(seen(event)))
  for (const chunk of chunks) decoder.feed(Buffer.from(chunk))
  const { lastEventId, retry } = decoder
  decoder.end()
  return { events, lastEventId, retry }
}

const dataOf = (text: string) => decode(text).events.map(event => event.data)

/** The algorithm of the HTML standard over a whole text, written the slow way. */
const reference = (bytes: Buffer): Seen[] => {
  const events: Seen[] = []
  let [data, event, id, last]: [string, string, string, string] = ['', '', '', '']
  const lines = bytes
    .toString()
    .replace(/^\ufeff/, '')
    .split(/\r\n|\r|\n/)
  for (const line of lines.slice(0, -1)) {
    if (line === '') {
      last = id
      if (data !== '')
        events.push({
          event: event || 'message',
          data: data.slice(0, -1),
          ...(last === '' ? {} : { id: last }),
        })
      data = event = ''
      continue
    }
    const [, name = line, value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? []
    if (name === 'data') data += `${value}\n`
    if (name === 'event') event = value
    if (name === 'id' && !value.includes('\0')) id = value
  }
  return events
}

/** Cuts bytes into chunks at the given places. */
const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const sorted = [0, ...places.map(place => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end))
}

const line = fc.oneof(
  fc.constantFrom(
    'data',
    'data:',
    'data: ',
    'data:  x',
    'data: {"a":1}',
    'data:é€😀',
    'data: :',
    'data : x',
    ' data: x',
  ),
  fc.constantFrom('event: ping', 'event:', 'event', 'events: x', 'id: 1', 'id:2', 'id', 'id: a\0b', 'id: é', 'Data: x'),
  fc.constantFrom(
    'retry: 10',
    'retry: 1x',
    'retry:',
    'retry: -1',
    'retry: ٣',
    'retry: 0',
    ':',
    ': comment',
    ':data: x',
    'x',
    '',
  ),
  fc.constantFrom('', '', ''),
)
const stream = fc
  .tuple(
    fc.constantFrom('', '\ufeff', '\ufeff\ufeff', '\u00ef'),
    fc.array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 16 }),
  )
  .map(([start, lines]) => Buffer.from(`${start}${lines.map(([text, end]) => text + end).join('')}`))

describe('SseDecoder', () => {
  it('decodes as the HTML standard says, however the bytes are cut', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (bytes, places) => {
        expect(decodeAll(cut(bytes, places)).events).toEqual(reference(bytes))
      }),
      { numRuns: 3000 },
    )
  })

  it('decodes byte by byte', () => {
    fc.assert(
      fc.property(stream, bytes => {
        expect(decodeAll(cut(bytes, [...bytes.keys()])).events).toEqual(reference(bytes))
      }),
    )
  })

  it('takes the examples of the standard', () => {
    expect(dataOf('data: YHOO\ndata: +2\ndata: 10\n\n')).toEqual(['YHOO\n+2\n10'])
    expect(
      decode(': test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n').events,
    ).toEqual([
      { event: 'message', data: 'first event', id: '1' },
      { event: 'message', data: 'second event' },
      { event: 'message', data: ' third event' },
    ])
    expect(dataOf('data\n\ndata\ndata\n\ndata:')).toEqual(['', '\n'])
    expect(dataOf('data:test\n\ndata: test\n\n')).toEqual(['test', 'test'])
  })

  it('dispatches at the CR already, without waiting for a LF that belongs to it', () => {
    const events: Seen[] = []
    const decoder = new SseDecoder(event => events.push(seen(event)))
    decoder.feed(Buffer.from('data: a\r\n\r'))
    expect(events).toHaveLength(1)
    decoder.feed(Buffer.from('\ndata: b\r'))
    decoder.feed(Buffer.from('\n'))
    expect(events).toHaveLength(1)
    decoder.feed(Buffer.from('\n'))
    expect(events.map(event => event.data)).toEqual(['a', 'b'])
  })

  it('does not dispatch an event that was cut short', () => {
    expect(decode('data: a\n').events).toEqual([])
    expect(decode('data: a').events).toEqual([])
    expect(decode('id: 7\ndata: a\n').lastEventId).toBeUndefined()
  })

  it('knows the id and the retry of blocks without data', () => {
    expect(decode('id: 7\nretry: 250\n\n')).toEqual({ events: [], lastEventId: '7', retry: 250 })
    expect(decode('id: 7\ndata:\n\n')).toEqual({
      events: [{ event: 'message', data: '', id: '7' }],
      lastEventId: '7',
      retry: undefined,
    })
    expect(decode('id: 7\n\nid\n\n').lastEventId).toBeUndefined()
    expect(decode('retry: 10\n\nretry: 1x\nretry:\nretry: -1\nretry: ٣\n\n').retry).toBe(10)
  })

  it('gives an id to all following events', () => {
    expect(decode('id: 1\nretry: 5\ndata: a\n\ndata: b\n\n').events).toEqual([
      { event: 'message', data: 'a', id: '1' },
      { event: 'message', data: 'b', id: '1' },
    ])
  })

  it('does not copy data that came in one chunk', () => {
    const chunk = Buffer.from('event: message\ndata: {"a":1}\n\n')
    let data: Buffer | undefined
    new SseDecoder(event => {
      data = event.data
    }).feed(chunk)
    expect(data?.buffer).toBe(chunk.buffer)
    expect(data?.toString()).toBe('{"a":1}')
  })

  it('takes a line of 40 MiB in small chunks in linear time', () => {
    const chunk = Buffer.alloc(1 << 16, 'x')
    let size = 0
    const decoder = new SseDecoder(event => {
      size = event.data.length
    })
    const began = cpuMs()
    decoder.feed(Buffer.from('data: '))
    for (let i = 0; i < 640; i++) decoder.feed(chunk)
    decoder.feed(Buffer.from('\n\n'))
    expect(size).toBe(40 << 20)
    expect(cpuMs() - began).toBeLessThan(3000)
  })

  it('takes very many short lines of data in one event, in one chunk or byte by byte', () => {
    const text = Buffer.from(`${'data:x\n'.repeat(100_000)}\n`)
    const began = cpuMs()
    expect(decode(text).events[0]?.data.length).toBe(199_999)
    expect(decodeAll(Array.from(text, byte => Buffer.of(byte))).events[0]?.data.length).toBe(199_999)
    expect(cpuMs() - began).toBeLessThan(5000)
  })

  it('refuses an event beyond the limit, as one line, as many, or never ending', () => {
    const limited = (...chunks: string[]) => {
      const sizes: number[] = []
      const decoder = new SseDecoder(event => sizes.push(event.data.length), { maxBytes: 100 })
      for (const chunk of chunks) decoder.feed(Buffer.from(chunk))
      return sizes
    }
    const many = 'data: 12345\n'
    expect(limited(`data:${'x'.repeat(95)}\n\n`, `data:${'x'.repeat(95)}\n\n`)).toEqual([95, 95])
    expect(limited(': comment\n'.repeat(1000), `${many.repeat(10)}\n`)).toEqual([59])
    expect(() => limited(`data:${'x'.repeat(96)}\n\n`)).toThrow(EventTooLarge)
    expect(() => limited(many.repeat(20))).toThrow(EventTooLarge)
    expect(() => limited('data\n'.repeat(200))).toThrow(EventTooLarge)
    expect(() => limited(`:${'x'.repeat(60)}`, 'x'.repeat(60))).toThrow(EventTooLarge)
  })
})

describe('encodeEvent', () => {
  const encode = (fields: Parameters<typeof encodeEvent>[0]) => Buffer.concat(encodeEvent(fields)).toString()

  it('writes the fields that are given', () => {
    expect(encode({ data: [Buffer.from('{"a":'), Buffer.from('1}')] })).toBe('data: {"a":1}\n\n')
    expect(encode({ event: 'endpoint', id: '7', data: [Buffer.from('/x')] })).toBe(
      'event: endpoint\nid: 7\ndata: /x\n\n',
    )
    expect(encode({ id: '7', data: [] })).toBe('id: 7\ndata: \n\n')
    expect(COMMENT_BYTES.toString()).toBe(':\n\n')
  })

  it('is decoded as what was encoded, as the same JSON if that had line breaks', () => {
    const pieces = fc.array(fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t')), { maxLength: 3 })
    fc.assert(
      fc.property(pieces, fc.constantFrom('\n', '\r\n', '\r'), fc.string(), (values, newline, id) => {
        const texts = values.map(([value, indent]) => JSON.stringify(value, null, indent).replaceAll('\n', newline))
        const bytes = Buffer.from(`[${texts.join(`,${newline}`)}]`)
        const { events } = decode(encode({ event: 'x', id, data: [bytes.subarray(0, 5), bytes.subarray(5)] }))
        const clean = id.replace(/[\0\r\n]/g, '')
        expect(events).toEqual([
          { event: 'x', data: bytes.toString().replace(/[\r\n]/g, ' '), ...(clean === '' ? {} : { id: clean }) },
        ])
        expect(JSON.parse(events[0]?.data ?? '')).toEqual(JSON.parse(bytes.toString()))
      }),
    )
  })

  it('does not copy data without line breaks', () => {
    const data = Buffer.alloc(1 << 20, 'x')
    expect(encodeEvent({ data: [data] })).toContain(data)
  })

  it('lets no field break out of its line', () => {
    expect(
      decode(
        encode({ event: 'a\ndata: forged', id: '1\r\n\r\ndata: forged', data: [Buffer.from('x\n\ndata: forged')] }),
      ).events,
    ).toEqual([{ event: 'adata: forged', data: 'x  data: forged', id: '1data: forged' }])
  })
})
