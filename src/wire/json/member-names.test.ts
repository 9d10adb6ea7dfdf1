import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readIncoming } from '../json-rpc.ts'
import { Json } from './json.ts'
import { foldName } from './member-names.ts'

const parse = (text: string): Json => Json.parse(Buffer.from(text))

describe('a member that another reader takes for the one read here', () => {
  test.each([
    ['name', '{"name":1,"Name":2}', 'Name'],
    ['name', '{"NAME":2,"name":1}', 'NAME'],
    ['name', '{"name":1,"name":2}', 'name'],
    ['name', '{"name":1,"n\\u0061me":2}', 'name'],
    ['name', '{"name":1,"\\u004eame":2}', 'Name'],
    ['name', '{"name":1,"name\\u0000":2}', 'name\0'],
    ['name', '{"name":1,"name\\u0000x":2}', 'name\0x'],
    ['name', '{"Name":2}', 'Name'],
    ['ask', '{"ask":1,"a\u017fk":2}', 'aſk'],
    ['ask', '{"ask":1,"as\\u212a":2}', 'as\u212a'],
    ['uri', '{"uri":1,"ur\u0131":2}', 'urı'],
    ['uri', '{"uri":1,"UR\u0130":2}', 'URİ'],
    ['gross', '{"gross":1,"groß":2}', 'groß'],
    ['größe', '{"größe":1,"GRÖSSE":1,"GRÖßE":2}', 'GRÖSSE'],
  ])('%j in %s', (key, text, lookalike) => {
    expect(parse(text).findAmbiguous(['other', key])).toEqual({ member: key, lookalike })
  })

  test.each([
    ['name', '{"name":1}'],
    ['name', '{"name":1,"names":2,"nam":3,"":4,"na\\tme":5,"name ":6,"nämë":7}'],
    ['name', '{}'],
    ['name', '[{"name":1,"Name":2}]'],
    ['a`', '{"a`":1,"a@":2}'],
    ['name', '{"arguments":{"Name":1}}'],
  ])('%j has none in %s', (key, text) => {
    expect(parse(text).findAmbiguous([key])).toBeUndefined()
  })

  test('is found wherever folded names are equal, and nowhere else', () => {
    const letters = fc.constantFrom(...'kKsSiInN\u212a\u017f\u0131\u0130ßa')
    const orNul = fc.oneof(letters, fc.constant('\0'))
    const names = fc.array(fc.string({ unit: orNul, minLength: 1, maxLength: 3 }), { maxLength: 20 })
    fc.assert(
      fc.property(fc.string({ unit: letters, minLength: 1, maxLength: 3 }), names, (key, others) => {
        const text = `{${[key, ...others].map(name => `${JSON.stringify(name)}:0`).join()}}`
        const first = others.find(name => foldName(name) === foldName(key))
        expect(parse(text).findAmbiguous([key])?.lookalike).toBe(first)
      }),
    )
  })
})

describe('a call whose envelope can be read in two ways is refused', () => {
  test.each([
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}', 'Method'],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"PARAMS":{}}', 'PARAMS'],
    ['{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/list"}', 'ID'],
    ['{"jsonrpc":"2.0","method":"tools/list","Id":2}', 'Id'],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/list"}', 'method'],
    ['{"jsonrpc":"2.0","JSONRPC":"1.0","id":1,"method":"tools/list"}', 'JSONRPC'],
  ])('%s', (text, lookalike) => {
    expect(readIncoming(Buffer.from(text))).toMatchObject({
      kind: 'invalid',
      reason: expect.stringContaining(lookalike),
    })
  })

  test('members without a lookalike pass', () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"x","params":{},"extra":1,"idx":2}'
    expect(readIncoming(Buffer.from(text)).kind).toBe('request')
  })
})
