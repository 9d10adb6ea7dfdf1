import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { signatureOf } from '../../protocol/schema-text.ts'
import { Json } from '../../wire/json/json.ts'
import { buildArguments } from './arguments.ts'
import { readWords } from './words.ts'

const SCHEMA = Json.of({
  type: 'object',
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    share: { type: 'number' },
    isOn: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
    sizes: { type: 'array', items: { type: 'integer' } },
    level: { enum: ['low', 'high', 3] },
    maybe: { type: ['integer', 'null'] },
    either: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    address: { $ref: '#/$defs/address' },
    'dotted.name': { type: 'integer' },
    any: {},
  },
  $defs: { address: { type: 'object', properties: { city: { type: 'string' }, number: { type: 'integer' } } } },
})

const build = async (...words: string[]): Promise<string> =>
  String(await buildArguments(readWords(words), SCHEMA, { readStdin: async () => '{"text":"from stdin"}' }))

describe('values get the type of the schema', () => {
  it.each([
    [['text=5'], '{"text":"5"}'],
    [['text='], '{"text":""}'],
    [['text=a=b:=c'], '{"text":"a=b:=c"}'],
    [['count=5'], '{"count":5}'],
    [['count=123456789012345678901'], '{"count":123456789012345678901}'],
    [['share=-1.5e3'], '{"share":-1.5e3}'],
    [['isOn=true'], '{"isOn":true}'],
    [['tags=a', 'tags=b'], '{"tags":["a","b"]}'],
    [['tags=["a"]'], '{"tags":["a"]}'],
    [['sizes=1', 'sizes=2'], '{"sizes":[1,2]}'],
    [['level=high'], '{"level":"high"}'],
    [['level=3'], '{"level":3}'],
    [['maybe=null'], '{"maybe":null}'],
    [['either=5'], '{"either":5}'],
    [['either=five'], '{"either":"five"}'],
    [['address.city=Oslo', 'address.number=3'], '{"address":{"city":"Oslo","number":3}}'],
    [['dotted.name=3'], '{"dotted.name":3}'],
    [['any=5'], '{"any":"5"}'],
    [['any:=5'], '{"any":5}'],
    [['address:={"city":"Oslo"}'], '{"address":{"city":"Oslo"}}'],
    [['{"any":1.0}', 'count=2'], '{"any":1.0,"count":2}'],
    [['-'], '{"text":"from stdin"}'],
    [['-', 'count=1'], '{"text":"from stdin","count":1}'],
  ])('%j', async (words, expected) => {
    expect(await build(...words)).toBe(expected)
  })

  it('reads files', async () => {
    const file = join(tmpdir(), `dragoman-arguments-${process.pid}.json`)
    writeFileSync(file, '{"count":7}')
    expect(await build(`@${file}`)).toBe('{"count":7}')
    expect(await build(`text=@${file}`)).toBe('{"text":"{\\"count\\":7}"}')
    expect(await build(`any:=@${file}`)).toBe('{"any":{"count":7}}')
  })
})

describe('a wrong argument is explained', () => {
  it.each([
    [['count=1.5'], 'count: expected integer, got "1.5"'],
    [['isOn=yes'], 'isOn: expected boolean, got "yes"'],
    [['level=hihg'], 'level: expected one of low, high, 3, got "hihg"; did you mean high?'],
    [['sizes=a'], 'sizes: expected integer, got "a"'],
    [['count:="5"'], 'count: expected integer, got string "5"'],
    [['count:=1.5'], 'count: expected integer, got number 1.5'],
    [['text=a', 'text=b'], 'text is given twice, and it is not a list'],
    [['cuont=5'], 'there is no argument cuont; did you mean count?'],
    [['address.ctiy=Oslo'], 'there is no argument address.ctiy; did you mean address.city?'],
    [['text:={'], 'text:= is not valid JSON'],
    [['@/no/such/file'], '@/no/such/file: there is no such file'],
    [['text=@scope/name'], `there is no such file; a text that begins with @ is written text:='"@…"'`],
  ])('%j', async (words, message) => {
    await expect(build(...words)).rejects.toThrow(message)
  })

  it('key:value, as other programs write it', () => {
    expect(() => readWords(['count:5'])).toThrow('expected key=value, key:=json, @file or -; did you mean count=5?')
  })
})

it('a signature names required parameters first, types and defaults', () => {
  const schema = Json.of({
    type: 'object',
    properties: {
      limit: { type: 'integer', default: 10 },
      query: { type: 'string' },
      kind: { enum: ['a', 'b'] },
      tags: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
      where: { type: 'object', properties: { city: { type: 'string' } } },
    },
    required: ['query'],
  })
  expect(signatureOf('find', schema)).toBe(
    'find(query: string, limit?: integer = 10, kind?: "a" | "b", tags?: (string | integer)[], where?: {city?: string})',
  )
})
