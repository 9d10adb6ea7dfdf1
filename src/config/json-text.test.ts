import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonTextError, parseJsonText } from './json-text.ts'

const faultOf = (text: string): JsonTextError => {
  try {
    parseJsonText(text)
  } catch (error) {
    if (error instanceof JsonTextError) return error
    throw error
  }
  throw new Error(`accepted: ${text}`)
}

describe('parseJsonText', () => {
  it('reads everything that JSON.stringify writes, with any indentation', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2, '\t'), (value, space) => {
        fc.pre(!JSON.stringify(value).includes('"__proto__"'))
        const text = JSON.stringify(value, null, space)
        expect(parseJsonText(text).value).toEqual(JSON.parse(text))
      }),
    )
  })

  it('accepts what JSON.parse accepts, and besides that only trailing commas', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"',
      '\\',
      '1',
      '-',
      '.',
      'e5',
      'true',
      'nul',
      ' ',
      '\n',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const text = pieces.join('')
        let expected: unknown
        try {
          expected = JSON.parse(text)
        } catch {
          if (/[^[{,\s]\s*,\s*[\]}]/.test(text)) return
          expect(faultOf(text).line).toBeGreaterThan(0)
          return
        }
        expect(parseJsonText(text).value).toEqual(expected)
      }),
      { numRuns: 2000 },
    )
  })

  it('tolerates a byte order mark', () => {
    expect(parseJsonText('\ufeff{"a":1}').value).toEqual({ a: 1 })
  })

  it('accepts comments and trailing commas', () => {
    const { value, placeOf } = parseJsonText(
      '// mine\n{\n  /* two\n lines */ "a": [1, /**/ 2,], // "b": 3\n  "c": { "d": "//", },\n}\n// end',
    )
    expect(value).toEqual({ a: [1, 2], c: { d: '//' } })
    expect([['a'], ['c', 'd']].map(path => placeOf(path)?.line)).toEqual([4, 5])
  })

  it.each([
    ['{\n  /* note\n}', 2, 3, 'this comment is not closed'],
    ['{\n  # note\n}', 2, 3, 'expected a key in double quotes, found "#"'],
    ['{"a": 1,,}', 1, 9, 'expected a key in double quotes, found ","'],
    ['[,]', 1, 2, 'expected a value, found ","'],
    ['[1 2]', 1, 4, 'expected "," or "]", found "2"'],
    ['{"a": 1 x}', 1, 9, 'expected "," or "}", found "x"'],
    ['{"a": {"b": 1', 1, 14, 'expected "," or "}", found the end of the file'],
    ['{"a": nul}', 1, 7, 'expected a value, found "n"'],
    ['{\n  "a" 1\n}', 2, 7, 'expected ":", found "1"'],
    ['{"a": [1, 2', 1, 12, 'expected "," or "]", found the end of the file'],
    ['', 1, 1, 'expected a value, found the end of the file'],
    ['{"a": "x\ny"}', 1, 7, 'string is not closed'],
    ['{a: 1}', 1, 2, 'a key in double quotes'],
    ['{"a": 01}', 1, 7, 'expected a value'],
    ['{"__proto__": {}}', 1, 2, '__proto__'],
    ['{} {}', 1, 4, 'expected the end of the file'],
    [`${'['.repeat(50_000)}`, 1, 102, 'nested too deeply'],
  ])('says where and why %j is wrong', (text, line, column, message) => {
    const fault = faultOf(text)
    expect([fault.line, fault.column]).toEqual([line, column])
    expect(fault.message).toContain(message)
  })

  it('knows the line of every path, and of the nearest parent of one that is not there', () => {
    const { placeOf } = parseJsonText('{\n  "a": {\n    "b": [\n      1,\n      2\n    ]\n  }\n}')
    expect([[], ['a'], ['a', 'b'], ['a', 'b', 1], ['a', 'x', 'y']].map(path => placeOf(path)?.line)).toEqual([
      1, 2, 3, 5, 2,
    ])
  })

  it('names keys that are written twice and takes the last', () => {
    const { value, repeated } = parseJsonText('{"a": {"b": 1, "b": 2}}')
    expect(value).toEqual({ a: { b: 2 } })
    expect(repeated).toEqual([['a', 'b']])
  })

  it('reads a long list in time that grows with its length', () => {
    const list = Array.from({ length: 50_000 }, (_, i) => i)
    const begun = performance.now()
    expect(parseJsonText(JSON.stringify({ list })).value).toEqual({ list })
    expect(performance.now() - begun).toBeLessThan(5000) // half a minute if each item counts those before it
  })
})
