import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Json, type Plain } from './json.ts'

const parse = (text: string) => Json.parse(Buffer.from(text))

const whitespace = fc.constantFrom('', '', '', ' ', '\n  ', '\t', '\r\n')

/** JSON text that no serialiser writes: spaces, odd numbers, escapes. */
const rawValue = fc.letrec<{ value: string; list: string; object: string; scalar: string }>(tie => ({
  scalar: fc.oneof(
    fc.constantFrom(
      '1.0',
      '12345678901234567890',
      '-0',
      '1e5',
      '1E+2',
      '0.10',
      'true',
      'false',
      'null',
      '"\\u0041"',
      '"\\/"',
    ),
    fc.string({ unit: 'grapheme', maxLength: 8 }).map(text => JSON.stringify(text)),
    fc.nat({ max: 400 }).map(length => JSON.stringify('x'.repeat(length))),
  ),
  list: fc
    .tuple(whitespace, fc.array(tie('value'), { maxLength: 3 }), whitespace)
    .map(([a, items, b]) => `[${a}${items.join(`${b},${a}`)}${b}]`),
  object: fc
    .tuple(
      whitespace,
      fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c'), tie('value')), {
        maxLength: 3,
        selector: ([name]) => name,
      }),
    )
    .map(
      ([space, members]) =>
        `{${space}${members.map(([key, value]) => `"${key}"${space}:${value}`).join(`,${space}`)}${space}}`,
    ),
  value: fc.oneof({ maxDepth: 3, depthSize: 'small' }, tie('scalar'), tie('list'), tie('object')),
})).value

const keys = [
  'a',
  'name',
  'id',
  '',
  '__proto__',
  'constructor',
  'toString',
  'é',
  '😀',
  'a"b',
  '\\',
  '1',
  '0',
  'naïve',
  '\ud800',
  'x'.repeat(40),
]
const key = fc.constantFrom(...keys)

/** A key as JSON text, some of its characters written as escapes. */
const rawKey = fc.tuple(key, fc.infiniteStream(fc.boolean())).map(([name, escapes]) => {
  const units = Array.from({ length: name.length }, (_, i) => name.charCodeAt(i))
  const isLone = /[\ud800-\udfff]/.test(name)
  const text = units.map((unit, i) => {
    const escaped = `\\u${unit.toString(16).padStart(4, '0')}`
    return escapes.next().value || isLone ? escaped : JSON.stringify(name[i]).slice(1, -1)
  })
  return { name, text: `"${text.join('')}"` }
})

const rawObject = fc
  .tuple(fc.array(fc.tuple(rawKey, rawValue), { maxLength: 24 }), whitespace)
  .map(([members, space]) => ({
    text: `{${space}${members.map(([{ text }, value]) => `${text}${space}:${space}${value}`).join(`${space},${space}`)}${space}}`,
    members: new Map(members.map(([{ name }, value]) => [name, value])), // the last one of a name, as JSON.parse has it
  }))

type Edit = { readonly key: string; readonly value: string | undefined }
const edit: fc.Arbitrary<Edit> = fc.record({ key, value: fc.option(rawValue, { nil: undefined }) })

const plainOf = (members: ReadonlyMap<string, string>): unknown =>
  JSON.parse(`{${[...members].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`)

const texts = (json: Json) => new Map(json.entries().map(([name, value]) => [name, value.toString()]))

describe('Json', () => {
  it('writes unchanged parts byte for byte, also after they were read', () => {
    fc.assert(
      fc.property(rawValue, whitespace, (text, space) => {
        const json = parse(`${space}${text}${space}`)
        expect(json.toString()).toBe(text)
        expect(json.toValue()).toEqual(JSON.parse(text))
        const readAll = (value: Json): void => {
          value.asString()
          for (const element of value.elements()) readAll(element)
          for (const [name, member] of value.entries()) readAll(value.get(name) ?? member)
        }
        readAll(json)
        expect(json.toBytes().toString()).toBe(text)
      }),
    )
  })

  it('finds every member under its name, whether written with escapes, twice, or like a property of Object', () => {
    fc.assert(
      fc.property(rawObject, key, ({ text, members }, name) => {
        const json = parse(text)
        expect(json.get(name)?.toString()).toBe(members.get(name))
        expect(json.has(name)).toBe(members.has(name))
        expect(texts(parse(text))).toEqual(members)
      }),
      { numRuns: 300 },
    )
  })

  it('behaves as a plain object under with and without, and keeps the text of every other member', () => {
    fc.assert(
      fc.property(rawObject, fc.array(edit, { maxLength: 6 }), ({ text, members }, edits) => {
        const before = parse(text)
        const model = new Map(members)
        let json = before
        for (const { key, value } of edits) {
          json = value === undefined ? json.without(key) : json.with(key, parse(value))
          if (value === undefined) model.delete(key)
          else model.set(key, value)
          expect(json.get(key)?.toString()).toBe(value)
        }
        expect(texts(json)).toEqual(model)
        expect(json.toValue()).toEqual(plainOf(model))
        expect(texts(parse(json.toString()))).toEqual(model)
        expect(texts(before)).toEqual(members)
      }),
      { numRuns: 600 },
    )
  })

  it('replaces a member in its place, adds at the end, and leaves the white space of the rest', () => {
    const json = parse('{ "a" : 1.0, "b":2 , "c" :3 }')
    expect(json.with('b', 'x').toString()).toBe('{ "a" : 1.0, "b":"x" , "c" :3 }')
    expect(json.with('d', [1]).with('b', null).toString()).toBe('{ "a" : 1.0, "b":null , "c" :3,"d":[1]}')
    expect(json.without('a').toString()).toBe('{"b":2 , "c" :3 }')
    expect(json.without('b').toString()).toBe('{ "a" : 1.0,"c" :3 }')
    expect(json.without('c').toString()).toBe('{ "a" : 1.0, "b":2}')
    expect(json.without('a', 'b', 'c').toString()).toBe('{}')
    expect(json.without('a', 'b', 'c').with('a', 1).toString()).toBe('{"a":1}')
    expect(json.without('b').with('b', 5).toString()).toBe('{ "a" : 1.0,"c" :3,"b":5}')
    expect(json.with('d', 1).with('e', 2).with('d', 3).without('e').toString()).toBe(
      '{ "a" : 1.0, "b":2 , "c" :3,"d":3}',
    )
    expect(Json.empty.with('é"', 1).toString()).toBe('{"é\\"":1}')
  })

  it('is the same value where a change changes nothing', () => {
    const json = parse('{"a":{"b":1},"c":[1,2]}')
    expect(json.with('a', json.get('a') as Json)).toBe(json)
    expect(json.without('b')).toBe(json)
    const list = json.get('c') as Json
    expect(list.map(element => element)).toBe(list)
    const edited = json.with('x', 1)
    expect(edited.with('a', json.get('a') as Json)).toBe(edited)
  })

  it('writes changes made deep inside when they are put back, and nothing else differently', () => {
    const json = parse('{"p": {"_meta": {"t": 1.0, "u": 2}, "name":"x"}, "q": 1e1}')
    const params = json.get('p') as Json
    const meta = (params.get('_meta') as Json).without('t')
    expect(json.with('p', params.with('_meta', meta)).toString()).toBe(
      '{"p": {"_meta": {"u": 2}, "name":"x"}, "q": 1e1}',
    )
    expect(json.toString()).toBe('{"p": {"_meta": {"t": 1.0, "u": 2}, "name":"x"}, "q": 1e1}')
  })

  it('sends no other value of a name than the one that was read', () => {
    const json = parse('{"a":1,"b":{"n":"first","x":0,"\\u006e":"last"},"a":2}')
    expect(json.toString()).toContain('first')
    expect(json.at('b', 'n')?.asString()).toBe('last')
    expect(json.toString()).toBe('{"a":1,"b":{"x":0,"\\u006e":"last"},"a":2}')
    const copy = json.with('c', 3)
    expect(json.get('a')?.asNumber()).toBe(2)
    expect(json.toString()).toBe('{"b":{"x":0,"\\u006e":"last"},"a":2}')
    expect(copy.toString()).toBe('{"b":{"x":0,"\\u006e":"last"},"a":2,"c":3}')
    expect(copy.with('a', 5).without('b').toString()).toBe('{"a":5,"c":3}')
  })

  it('does the same where there are many members', () => {
    const many = Array.from({ length: 50 }, (_, i) => `"k${i}":${i}`).join(',')
    const json = parse(`{"k7":"first",${many}}`)
    expect(json.get('k7')?.asNumber()).toBe(7)
    expect(json.toString()).toBe(`{${many}}`)
    expect(json.get('k50')).toBeUndefined()
  })

  it('converts the elements of an array, dropping those converted to nothing', () => {
    const list = parse('[ {"n":1.0}, {"n":2} ,3, {"n":4} ]')
    const mapped = list.map(element => (element.isObject ? element.with('m', true) : undefined))
    expect(mapped.toString()).toBe('[ {"n":1.0,"m":true}, {"n":2,"m":true},{"n":4,"m":true} ]')
    expect(mapped.elements().map(element => element.get('n')?.toString())).toEqual(['1.0', '2', '4'])
    expect(mapped.map(element => (element.get('n')?.asNumber() === 2 ? element : undefined)).toString()).toBe(
      '[{"n":2,"m":true}]',
    )
    expect(list.map(() => undefined).toString()).toBe('[]')
    expect(
      parse('{"a":1}')
        .map(() => undefined)
        .toString(),
    ).toBe('{"a":1}')
    fc.assert(
      fc.property(
        fc.array(rawValue, { maxLength: 8 }),
        fc.array(fc.option(rawValue, { nil: undefined }), { minLength: 8, maxLength: 8 }),
        fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
        (values, others, changes) => {
          let at = 0
          const json = parse(`[${values.join(' , ')}]`).map(element => {
            const i = at++
            const other = others[i]
            return changes[i] ? element : other === undefined ? undefined : parse(other)
          })
          const wanted = values.map((value, i) => (changes[i] ? value : others[i])).filter(value => value !== undefined)
          expect(json.elements().map(String)).toEqual(wanted)
          expect(parse(json.toString()).elements().map(String)).toEqual(wanted)
        },
      ),
    )
  })

  it('reads scalars', () => {
    const values = parse('["a\\u00e9\\n", 1.50, -3, 12345678901234567890, true, false, null, "", {}, []]').elements()
    expect(values.map(value => value.kind)).toEqual([
      'string',
      'number',
      'number',
      'number',
      'boolean',
      'boolean',
      'null',
      'string',
      'object',
      'array',
    ])
    expect(values.map(value => value.asString())).toEqual([
      'aé\n',
      ...new Array(6).fill(undefined),
      '',
      undefined,
      undefined,
    ])
    expect(values.map(value => value.asNumber()).slice(0, 5)).toEqual([
      undefined,
      1.5,
      -3,
      12345678901234567000,
      undefined,
    ])
    expect(values.map(value => value.asBoolean()).slice(3, 7)).toEqual([undefined, true, false, undefined])
    expect(values[0]?.isString('aé\n')).toBe(true)
    expect(values[0]?.isString('a')).toBe(false)
    expect(values[1]?.isString('1.50')).toBe(false)
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        text => Json.of(text).asString() === text && Json.of(text).isString(text),
      ),
    )
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), number =>
        Object.is(Json.of(number).asNumber(), number === 0 ? 0 : number),
      ),
    )
    fc.assert(fc.property(fc.maxSafeInteger(), number => Json.of(number).asNumber() === number))
  })

  it('has no members, elements or changes where there are none to have', () => {
    for (const text of ['[1]', '"a"', '1', 'null', 'true']) {
      const json = parse(text)
      expect(json.get('a')).toBeUndefined()
      expect(json.get('0')).toBeUndefined()
      expect(json.entries()).toEqual([])
      expect(json.without('a')).toBe(json)
      expect(() => json.with('a', 1)).toThrow(TypeError)
    }
    expect(parse('{"0":1}').elements()).toEqual([])
    expect(parse('{"a":{}}').at('a', 'b', 'c')).toBeUndefined()
  })

  it('makes values of plain data, with values inside, leaving out what is undefined', () => {
    const inner = parse('{ "n": 1.0 }')
    expect(
      Json.of({
        a: [inner, undefined as never, null],
        b: undefined,
        'c"': 'x\n',
        __proto__: null,
        d: inner.with('m', 1),
      }).toString(),
    ).toBe('{"a":[{ "n": 1.0 },null,null],"c\\"":"x\\n","d":{ "n": 1.0,"m":1}}')
    expect(Json.of(inner)).toBe(inner)
    expect(Json.empty.toString()).toBe('{}')
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(Json.of(value as Plain).toValue()).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('wraps a large value without copying it', () => {
    const large = parse(JSON.stringify({ text: 'x'.repeat(1 << 20) }))
    const pieces: Buffer[] = []
    Json.empty.with('result', large.with('extra', 1)).appendTo(pieces)
    const big = pieces.find(piece => piece.length > 1 << 20)
    expect(big?.buffer).toBe((large.get('text') as Json).toBytes().buffer)
    expect(Buffer.concat(pieces).length).toBe((1 << 20) + 32)
  })

  it('shows its value to JSON.stringify', () => {
    expect(JSON.stringify({ a: parse('{ "b": [1] }').with('c', 2) })).toBe('{"a":{"b":[1],"c":2}}')
  })
})

describe('a value that outlives its message', () => {
  const message = (padding: number) => parse(`{"kept":{ "n": 1.0 },"pad":"${'x'.repeat(padding)}"}`)

  it('keeps nothing of the message alive but itself, and is written as it was read', () => {
    const kept = message(1 << 20).get('kept') as Json
    expect(kept.retained).toBeGreaterThan(1 << 20)
    expect(kept.compact().retained).toBe(kept.size)
    expect(kept.compact().toString()).toBe('{ "n": 1.0 }')
  })

  it('is compact with its changes, wherever these came from', () => {
    const other = message(1 << 20).get('kept') as Json
    const changed = (message(1 << 20).get('kept') as Json).with('other', other).compact()
    expect(changed.toString()).toBe('{ "n": 1.0,"other":{ "n": 1.0 }}')
    expect(changed.retained).toBe(changed.size)
    expect((changed.get('other') as Json).retained).toBe(changed.size)
  })

  it('is not copied where it is most of the message', () => {
    const whole = Json.parse(Buffer.from(JSON.stringify({ text: 'x'.repeat(10_000) })))
    expect(whole.compact()).toBe(whole)
    expect((whole.get('text') as Json).compact()).toBe(whole.get('text'))
  })
})
