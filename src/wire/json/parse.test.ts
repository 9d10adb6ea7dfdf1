import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/support/cpu-time.ts'
import { Json } from './json.ts'
import { JsonSyntaxError } from './scan.ts'

const outcome = (bytes: Buffer): { value: unknown } | 'refused' => {
  try {
    return { value: Json.parse(bytes).toValue() }
  } catch (error) {
    if (error instanceof JsonSyntaxError) return 'refused'
    throw error
  }
}

const reference = (bytes: Buffer): { value: unknown } | 'refused' => {
  try {
    return isUtf8(bytes) ? { value: JSON.parse(bytes.toString()) } : 'refused'
  } catch {
    return 'refused'
  }
}

const agrees = (bytes: Buffer): void => {
  expect(outcome(bytes)).toEqual(reference(bytes))
}

/** Pieces of JSON, right and wrong, that random bytes would hardly ever hit upon. */
const token = fc.constantFrom(
  ...['{', '}', '[', ']', ',', ':', '"', '""', '"a"', '"a":', '"\\', '\\u', '\\u00', '\\ud83d', '\\"', '\\n', '\\x'],
  ...['0', '-', '-0', '01', '1', '1.', '.5', '1.5', '1e', '1e+', '1E-5', '1.0', '-1', '+1', '1e400', '0x1', 'NaN'],
  ...['true', 'false', 'null', 'tru', 'nul', 'True', ' ', '\n', '\r\n', '\t', '\v', '\0', '\u00a0', '\ufeff', '\u2028'],
  ...['é', '€', '😀', '\u007f', '//', "'", 'undefined', '{}', '[]', '[1,2]', '{"a":1}', '{"a":{"b":[]}}'],
)

const valid = fc.json({ maxDepth: 5 }).map(text => Buffer.from(text))

describe('Json.parse', () => {
  it('accepts and refuses what JSON.parse accepts and refuses', () => {
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), tokens => agrees(Buffer.from(tokens.join('')))),
      { numRuns: 5_000 },
    )
  })

  it('agrees with JSON.parse on containers of random pieces', () => {
    const wrap = fc.constantFrom(['{"a":', '}'], ['[', ']'], ['{"a":[', ']}'], ['[{"a":1,', '}]'], [' {', '} \n'])
    fc.assert(
      fc.property(wrap, fc.array(token, { maxLength: 6 }), ([before, after], tokens) =>
        agrees(Buffer.from(`${before}${tokens.join('')}${after}`)),
      ),
      { numRuns: 5_000 },
    )
  })

  it('agrees with JSON.parse on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), bytes => agrees(Buffer.from(bytes))),
      { numRuns: 2_000 },
    )
  })

  it('agrees with JSON.parse on valid documents, cut, damaged or prolonged anywhere', () => {
    const damage = fc.tuple(fc.nat(), fc.nat({ max: 3 }), fc.uint8Array({ maxLength: 3 }))
    fc.assert(
      fc.property(valid, fc.array(damage, { maxLength: 2 }), (bytes, damages) => {
        let text = bytes
        for (const [where, removed, inserted] of damages) {
          const at = where % (text.length + 1)
          text = Buffer.concat([text.subarray(0, at), inserted, text.subarray(at + removed)])
        }
        agrees(text)
      }),
      { numRuns: 2_500 },
    )
  })

  it('agrees with JSON.parse on strings of any characters and escapes, lone surrogates included', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.nat({ max: 0xffff }).map(code => `\\u${code.toString(16).padStart(4, '0')}`),
      fc.constantFrom('\\n', '\\/', '\\\\', '\\"', '\\ud800', '\\udc00', '\\u12', '\\q'),
    )
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 12 }), units => {
        agrees(Buffer.from(`"${units.join('')}"`))
        agrees(Buffer.from(`{"${units.join('')}":"${units.join('')}"}`))
      }),
      { numRuns: 2_500 },
    )
  })

  it('agrees with JSON.parse on strings of every length, wherever they end', () => {
    for (let length = 0; length < 40; length++)
      for (const tail of ['"]', '', '\\"]', '\\n"]', '\u0001"]', 'é"]', '"'])
        agrees(Buffer.from(`["${'x'.repeat(length)}${tail}`))
  })

  it('agrees with JSON.parse on every ASCII character in every place', () => {
    for (let code = 0; code < 128; code++) {
      const char = String.fromCharCode(code)
      for (const template of [
        '["?"]',
        '["???????"]',
        '["abc?"]',
        '["\\\\?"]',
        '{"?":1}',
        '[?]',
        '[1?]',
        '[-?]',
        '[1.?]',
        '[1e?]',
        '{"a"?:1}',
        '{"a":1?}',
      ])
        agrees(Buffer.from(template.replaceAll('?', char)))
      for (const template of ['["\\u?000"]', '["\\u000?"]', '?{}', '{}?', '?', '[true?]', '[tru?]'])
        agrees(Buffer.from(template.replaceAll('?', char)))
    }
  })

  it.each([
    ['', 'Expected a value at byte 0'],
    [' \n', 'Expected a value at byte 0'],
    ['\ufeff{}', 'Byte order mark at byte 0'],
    ['{"a":1', 'Expected the text to end in } or ] at byte 6'],
    ['{"a":{}', 'Unexpected end at byte 7'],
    ['{"a":[1]', 'Unexpected end at byte 8'],
    ['[[[1]', 'Unexpected end at byte 5'],
    ['{"a]}', 'Unexpected end at byte 5'],
    ['{"a":1}}', 'Unexpected text after the value at byte 7'],
    ['{a:1}', 'Expected a member name at byte 1'],
    ['{"a" 1}', 'Expected a colon at byte 5'],
    ['{"a":1 "b":2}', 'Expected a comma or } at byte 7'],
    ['[1 2]', 'Expected a comma or ] at byte 3'],
    ['[1,]', 'Expected a value or a digit at byte 3'],
    ['[tru]', 'Expected "true" at byte 4'],
    ['["\n"]', 'Control character in a string at byte 2'],
    ['["\\x"]', 'Bad escape at byte 2'],
    ['["\\u00g0"]', 'Bad unicode escape at byte 2'],
  ])('says what is wrong with %j', (text, message) => {
    expect(() => Json.parse(Buffer.from(text))).toThrow(
      new JsonSyntaxError(message.replace(/ at byte \d+$/, ''), Number(/\d+$/.exec(message)?.[0])),
    )
  })

  it('refuses what is not UTF-8', () => {
    for (const bytes of [[0x80], [0xc3], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0xc0, 0xaf]])
      expect(() => Json.parse(Buffer.from([0x22, ...bytes, 0x22]))).toThrow('Not UTF-8')
  })

  it('takes 512 levels and refuses the 513th, or whatever limit it is given', () => {
    const nested = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels))
    const nestedObjects = (levels: number) => Buffer.from(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
    for (const build of [nested, nestedObjects]) {
      expect(Json.parse(build(512)).toBytes()).toEqual(build(512))
      expect(() => Json.parse(build(513))).toThrow('Nested too deeply')
      expect(() => Json.parse(build(1_000_000))).toThrow('Nested too deeply')
      expect(Json.parse(build(3), 3).toBytes()).toEqual(build(3))
      expect(() => Json.parse(build(4), 3)).toThrow('Nested too deeply')
    }
    expect(Json.parse(Buffer.from('1'), 0).asNumber()).toBe(1)
  })

  it('reads to the bottom of what it accepted', () => {
    let value: Json | undefined = Json.parse(Buffer.from(`${'{"a":'.repeat(511)}[7]${'}'.repeat(511)}`))
    for (let level = 0; level < 511; level++) value = value?.get('a')
    expect(value?.elements()[0]?.asNumber()).toBe(7)
  })

  it('looks through a 40 MiB string in no time and without copying it', () => {
    const size = 40 << 20
    const text = Buffer.concat([Buffer.from('{"a":{"b":["'), Buffer.alloc(size, 'text '), Buffer.from('"]}}')])
    const began = cpuMs()
    const value = Json.parse(text).get('a')?.get('b')?.elements()[0]
    expect(cpuMs() - began).toBeLessThan(3000)
    expect(value?.toBytes().length).toBe(size + 2)
    expect(value?.toBytes().buffer).toBe(text.buffer)
  })

  it('stays linear in the number of members and elements, also to get at them', () => {
    const count = 100_000
    const members = Array.from({ length: count }, (_, i) => `"key ${i}":{"n":${i}}`).join(',')
    const began = cpuMs()
    const object = Json.parse(Buffer.from(`{"all":{${members}}}`)).get('all') as Json
    for (let i = 0; i < count; i += 10) expect(object.at(`key ${i}`, 'n')?.asNumber()).toBe(i)
    expect(object.entries()).toHaveLength(count)
    expect(object.without('key 5').entries()).toHaveLength(count - 1)
    const strings = Json.parse(Buffer.from(`[${'"a",'.repeat(count)}"b"]`)).elements()
    expect(strings.filter(string => string.asString() === 'a')).toHaveLength(count)
    expect(cpuMs() - began).toBeLessThan(5000)
  })
})
