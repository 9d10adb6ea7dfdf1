import { describe, expect, it } from 'vitest'
import { parseJsonText } from '../json-text.ts'
import { changeMember, renameMember } from './json-members.ts'

const set = (text: string, path: readonly string[], value: unknown) => changeMember(text, { path, value })
const remove = (text: string, ...path: readonly string[]) => changeMember(text, { path, value: undefined })

const COMMENTED = `{
  // header
  "s": {
    // first
    "a": 1, // x
    // second
    "b": 2, // y
    "c": 3 // z
  },
  "list": [
    "one", // 1
    "two", // 2
    "three" // 3
  ]
}
`

describe('a member that is added', () => {
  it('comes after the comment of the last one', () => {
    expect(set(COMMENTED, ['s', 'd'], 4)).toBe(COMMENTED.replace('"c": 3 // z', '"c": 3, // z\n    "d": 4'))
  })

  it.each([
    ['{\n  "s": {\n    "a": 1, // x\n  },\n}\n', '{\n  "s": {\n    "a": 1, // x\n    "n": true,\n  },\n}\n'],
    ['{\r\n\t"s": {\r\n\t\t"a": 1\r\n\t}\r\n}', '{\r\n\t"s": {\r\n\t\t"a": 1,\r\n\t\t"n": true\r\n\t}\r\n}'],
    ['\ufeff{\n  "s": {}\n}\n', '\ufeff{\n  "s": {\n    "n": true\n  }\n}\n'],
    ['{\n  "s": {\n    // none yet\n  }\n}\n', '{\n  "s": {\n    // none yet\n    "n": true\n  }\n}\n'],
    ['{\n  "s": { "a": 1 }\n}\n', '{\n  "s": { "a": 1, "n": true }\n}\n'],
    ['{ "s": {} }', '{ "s": { "n": true } }'],
    ['{}\n', '{\n  "s": {\n    "n": true\n  }\n}\n'],
    ['{\n  "s": {\n    "a": 1 }\n}\n', '{\n  "s": {\n    "a": 1,\n    "n": true }\n}\n'],
    ['{\n  "s": {\n    "a": "}", /* , */\n  }\n}\n', '{\n  "s": {\n    "a": "}", /* , */\n    "n": true,\n  }\n}\n'],
  ])('keeps the format of %j', (text, expected) => {
    expect(set(text, ['s', 'n'], true)).toBe(expected)
  })

  it('is written on lines of its own, short lists on one', () => {
    const entry = { command: 'npx', args: ['-y', 'x'], env: { A: '1' }, none: undefined, empty: {} }
    expect(set('{\n  "s": {}\n}\n', ['s', 'n'], entry)).toBe(
      '{\n  "s": {\n    "n": {\n      "command": "npx",\n      "args": ["-y", "x"],\n      "env": {\n        "A": "1"\n      },\n      "empty": {}\n    }\n  }\n}\n',
    )
  })
})

describe('a member that is removed', () => {
  it.each([
    ['a', '    "a": 1, // x\n    // second\n', '    // second\n'],
    ['b', '    // second\n    "b": 2, // y\n', ''],
    ['c', '"b": 2, // y\n    "c": 3 // z\n', '"b": 2 // y\n'],
  ])('takes its own comments with it: %s', (name, gone, left) => {
    expect(remove(COMMENTED, 's', name)).toBe(COMMENTED.replace(gone, left))
  })

  it.each([
    ['{\n  "a": 1,\n  "b": 2,\n}\n', '{\n  "a": 1,\n}\n'],
    ['{ "a": 1, "b": 2, "c": 3 }', '{ "a": 1, "c": 3 }'],
    ['{ "a": 1, "b": 2 }', '{ "a": 1 }'],
    ['{ "b": 2 }', '{  }'],
    ['{\n  "b": 2\n}\n', '{}\n'],
    ['{\r\n  "a": 1,\r\n  "b": 2\r\n}\r\n', '{\r\n  "a": 1\r\n}\r\n'],
    ['{\n  "a": 1\n}\n', '{\n  "a": 1\n}\n'],
    ['{\n  "b": 1,\n  "a": 1,\n  "b": 2\n}\n', '{\n  "b": 1,\n  "a": 1\n}\n'],
  ])('leaves the rest of %j', (text, expected) => {
    expect(remove(text, 'b')).toBe(expected)
  })
})

describe('a value that is replaced', () => {
  it('changes nothing beside it', () => {
    expect(set(COMMENTED, ['s', 'b'], 'two')).toBe(COMMENTED.replace('"b": 2', '"b": "two"'))
    expect(set(COMMENTED, ['s', 'b'], ['p', 'q'])).toBe(COMMENTED.replace('"b": 2', '"b": ["p", "q"]'))
    expect(set(COMMENTED, ['s', 'b', 'deep'], 1)).toBe(COMMENTED.replace('"b": 2', '"b": {\n      "deep": 1\n    }'))
  })

  it.each([
    [['one', 'two', 'three', 'four'], '"three" // 3', '"three", // 3\n    "four"'],
    [['zero', 'one', 'two', 'three'], '"one", // 1', '"zero",\n    "one", // 1'],
    [['one', 'new', 'two', 'three'], '"one", // 1', '"one", // 1\n    "new",'],
    [['one', 'three'], '    "two", // 2\n', ''],
    [['one', 'two'], '"two", // 2\n    "three" // 3', '"two" // 2'],
    [['one', 'other', 'three'], '"two"', '"other"'],
  ])('keeps the comments in a list: %j', (list, before, after) => {
    expect(set(COMMENTED, ['list'], list)).toBe(COMMENTED.replace(before, after))
  })

  it('is the value that was asked for, whatever the list was', () => {
    const lists = [[], ['a'], ['a', 'b'], ['b', 'a'], ['a', 'b', 'c', 'd'], ['x', 'c', 'y'], ['c', 'c', 'a', 'a', 'c']]
    for (const from of lists)
      for (const to of lists)
        for (const text of [JSON.stringify({ l: from }), JSON.stringify({ l: from }, undefined, 2)])
          expect(parseJsonText(set(text, ['l'], to)).value).toEqual({ l: to })
  })
})

it('renames a key in its place', () => {
  expect(renameMember(COMMENTED, ['s', 'b'], 'n"ew')).toBe(COMMENTED.replace('"b": 2', '"n\\"ew": 2'))
})
