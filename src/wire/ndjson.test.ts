import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../test/support/cpu-time.ts'
import { encodeLine, LineDecoder, LineTooLong } from './ndjson.ts'

const decode = (chunks: readonly Buffer[], maxBytes?: number) => {
  const lines: string[] = []
  const decoder = new LineDecoder(line => lines.push(line.toString()), maxBytes === undefined ? {} : { maxBytes })
  for (const chunk of chunks) decoder.feed(chunk)
  decoder.end()
  return lines
}

const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const sorted = [0, ...places.map(place => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end))
}

describe('LineDecoder', () => {
  it('gives every line that is not blank, however the bytes are cut', () => {
    const line = fc.oneof(
      fc.constantFrom('', ' ', '\t', '{}', '{"a":"é😀"}', 'x'),
      fc.string({ unit: fc.constantFrom('a', ' ', '\r', 'é') }),
    )
    const lines = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n')))
    fc.assert(
      fc.property(lines, line, fc.array(fc.nat(), { maxLength: 6 }), (pairs, last, places) => {
        const text = pairs.map(([content, end]) => content + end).join('') + last
        const wanted = text
          .split('\n')
          .map(content => content.replace(/\r$/, ''))
          .filter(content => /[^ \t\r]/.test(content))
        expect(decode(cut(Buffer.from(text), places))).toEqual(wanted)
      }),
      { numRuns: 1000 },
    )
  })

  it('does not copy a line that came in one chunk', () => {
    const chunk = Buffer.from('{"a":1}\r\n{"b":2}\n')
    const lines: Buffer[] = []
    new LineDecoder(line => lines.push(line)).feed(chunk)
    expect(lines.map(String)).toEqual(['{"a":1}', '{"b":2}'])
    expect(lines.every(line => line.buffer === chunk.buffer)).toBe(true)
  })

  it('takes a long line in small chunks in linear time', () => {
    const began = cpuMs()
    const chunks = Array.from({ length: 20_000 }, () => Buffer.alloc(1000, 'x'))
    expect(decode(chunks)[0]?.length).toBe(20_000_000)
    expect(cpuMs() - began).toBeLessThan(3000)
  })

  it('refuses a line beyond the limit, also one that never ends', () => {
    expect(decode([Buffer.from('12345\n12345\n12345')], 5)).toEqual(['12345', '12345', '12345'])
    expect(() => decode([Buffer.from('123456\n')], 5)).toThrow(LineTooLong)
    const decoder = new LineDecoder(() => {}, { maxBytes: 5 })
    decoder.feed(Buffer.from('1\n123'))
    expect(() => decoder.feed(Buffer.from('456'))).toThrow(LineTooLong)
  })
})

describe('encodeLine', () => {
  it('writes any JSON as one line that is read back as the same JSON', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom(undefined, 2),
        fc.constantFrom('\n', '\r\n'),
        (value, indent, newline) => {
          const text = Buffer.from(JSON.stringify(value, null, indent).replaceAll('\n', newline))
          const lines = decode(encodeLine([text.subarray(0, 3), text.subarray(3)]))
          expect(lines).toHaveLength(1)
          expect(JSON.parse(lines[0] ?? '')).toEqual(JSON.parse(text.toString()))
        },
      ),
    )
  })

  it('does not copy what is one line already', () => {
    const text = Buffer.from('{"a":1}')
    expect(encodeLine([text])[0]).toBe(text)
  })
})
