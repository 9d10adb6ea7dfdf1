import { describe, expect, test } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { describeChange } from './describe-change.ts'
import {
  decodePins,
  decodeTexts,
  EMPTY_RECORD,
  encodePins,
  encodeTexts,
  isApproved,
  withApproved,
  withSighting,
} from './pin-record.ts'
import { readDefinition, type ToolDefinition } from './tool-definition.ts'

const read = (text: string): ToolDefinition => readDefinition(Json.parse(Buffer.from(text))) as ToolDefinition
const NOW = 1000

describe('the hash of a definition', () => {
  const first = read('{"name":"a","description":"é","inputSchema":{"type":"object","x":{"m":1,"n":[1,2]}}}')
  test.each([
    [
      'white space and order',
      '{ "inputSchema": {"x":{"n":[1, 2],"m":1},"type":"object"}, "description":"é", "name":"a" }',
    ],
    ['escapes', '{"name":"a","description":"\\u00e9","inputSchema":{"type":"object","x":{"m":1,"n":[1,2]}}}'],
    [
      'other members',
      '{"_meta":{"v":2},"icons":[],"name":"a","description":"é","inputSchema":{"type":"object","x":{"m":1,"n":[1,2]}}}',
    ],
  ])('does not depend on %s', (_name, text) => expect(read(text).hash).toBe(first.hash))

  test.each([
    ['the description', '{"name":"a","description":"e","inputSchema":{"type":"object","x":{"m":1,"n":[1,2]}}}'],
    ['the order of a list', '{"name":"a","description":"é","inputSchema":{"type":"object","x":{"m":1,"n":[2,1]}}}'],
    [
      'a number too large to compute with',
      '{"name":"a","description":"é","inputSchema":{"type":"object","x":{"m":1,"n":[1,9007199254740993]}}}',
    ],
    [
      'annotations',
      '{"name":"a","description":"é","annotations":{},"inputSchema":{"type":"object","x":{"m":1,"n":[1,2]}}}',
    ],
  ])('depends on %s', (_name, text) => expect(read(text).hash).not.toBe(first.hash))

  test('tells numbers apart that JavaScript does not', () => {
    const [a, b] = ['9007199254740992', '9007199254740993'].map(n =>
      read(`{"name":"a","inputSchema":{"maximum":${n}}}`),
    )
    expect(a?.hash).not.toBe(b?.hash)
  })
})

describe('a record', () => {
  const pinned = { ...withApproved(EMPTY_RECORD, [{ name: 'a', hash: '1' }]), isPinned: true }
  const seen = (rejected: Record<string, string>, approved: readonly string[], client = '', isComplete = true) => ({
    client,
    approved: new Set(approved),
    rejected: new Map(Object.entries(rejected)),
    isComplete,
  })

  test('is the same after it was stored, also with names like __proto__', () => {
    const record = withSighting(
      withApproved(pinned, [{ name: '__proto__', hash: '2' }]),
      seen({ constructor: '3' }, []),
      NOW,
    )
    expect(decodePins(encodePins(record))).toEqual(record)
    expect(isApproved({ name: '__proto__', hash: '2' }, decodePins(encodePins(record)))).toBe(true)
  })

  test('of another format is not guessed', () => {
    expect(() => decodePins(Buffer.from('{"format":2}'))).toThrow('their format is 2')
  })

  test('keeps earlier definitions approved, the latest eight', () => {
    const hashes = Array.from({ length: 10 }, (_, i) => String(i))
    const record = hashes.reduce((before, hash) => withApproved(before, [{ name: 'a', hash }]), EMPTY_RECORD)
    expect(record.pins.get('a')).toEqual(hashes.slice(2))
  })

  test('holds what was rejected until it is listed as approved, or not at all', () => {
    const quarantined = withSighting(pinned, seen({ a: '2', b: '3' }, []), NOW)
    expect([...quarantined.quarantined.keys()]).toEqual(['a', 'b'])
    expect(withSighting(quarantined, seen({ a: '2', b: '3' }, []), NOW + 1)).toBe(quarantined)
    expect([...withSighting(quarantined, seen({ b: '3' }, ['a']), NOW).quarantined.keys()]).toEqual(['b'])
    expect([...withSighting(quarantined, seen({}, []), NOW).quarantined.keys()]).toEqual([])
    expect(withSighting(quarantined, seen({}, [], '', false), NOW)).toBe(quarantined)
    expect(withSighting(quarantined, seen({}, ['a'], 'other capabilities'), NOW)).toBe(quarantined)
  })

  test('is bounded, whatever a server lists', () => {
    const rejected = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`t${i}`, 'x']))
    expect(withSighting(pinned, seen(rejected, []), NOW).quarantined.size).toBe(1000)
  })

  test('has texts as far as there is room', () => {
    const texts = new Map([
      ['small', 'x'],
      ['large', 'x'.repeat(300 * 1024)],
    ])
    expect([...decodeTexts(encodeTexts(texts)).keys()]).toEqual(['small'])
  })
})

describe('a change', () => {
  test('names the members that differ, with hidden characters shown', () => {
    const before = read(
      '{"name":"a","description":"Adds.","inputSchema":{"properties":{"x":{"type":"string"},"y":{}}}}',
    ).text
    const after = read(
      '{"name":"a","description":"Adds\\u200b.","inputSchema":{"properties":{"x":{"type":"number"},"z":{}}}}',
    ).text
    const { changes, flags } = describeChange(before, after)
    expect(changes).toEqual([
      { at: 'description', before: 'Adds.', after: 'Adds\\u{200b}.' },
      { at: 'inputSchema.properties.x.type', before: 'string', after: 'number' },
      { at: 'inputSchema.properties.y', before: '{}', after: undefined },
      { at: 'inputSchema.properties.z', before: undefined, after: '{}' },
    ])
    expect(flags.map(({ rule }) => rule)).toEqual(['hidden-text'])
  })

  test('is cut where it is too long to be shown', () => {
    const { changes } = describeChange(
      read('{"name":"a","description":"x"}').text,
      read(`{"name":"a","description":"${'y'.repeat(5000)}"}`).text,
    )
    expect(changes[0]?.after).toContain('(5000 characters)')
  })
})
