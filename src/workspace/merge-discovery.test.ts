import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Json, type PlainObject } from '../wire/json/json.ts'
import { mergeCapabilities, mergeInstructions } from './merge-discovery.ts'

const merge = (all: readonly PlainObject[], isReadOnce = false) =>
  mergeCapabilities(all.map(Json.of), isReadOnce).toValue()

test('the workspace has every capability of its members', () => {
  expect(
    merge([
      { tools: {}, logging: {} },
      { tools: { listChanged: true }, resources: { subscribe: true, listChanged: false } },
      { resources: { subscribe: false }, completions: {} },
    ]),
  ).toEqual({
    tools: { listChanged: true },
    logging: {},
    resources: { subscribe: true, listChanged: true },
    completions: {},
  })
})

test('a list that no member has is not offered to a modern caller', () => {
  expect(merge([{ tools: {} }])).toEqual({ tools: { listChanged: true } })
})

test('a legacy caller is offered every list that may come later', () => {
  expect(merge([{ logging: {} }], true)).toEqual({
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
    logging: {},
  })
})

test('without any member, tools, prompts and resources are offered', () => {
  expect(merge([])).toEqual({
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
  })
})

test('extensions are merged by id; settings that differ are dropped', () => {
  expect(
    merge([
      { extensions: { 'a/x': { deep: [1] }, 'a/y': { n: 1 } } },
      { extensions: { 'a/x': { deep: [1] }, 'a/y': { n: 2 }, 'b/z': {} } },
    ]),
  ).toEqual({ extensions: { 'a/x': { deep: [1] }, 'a/y': {}, 'b/z': {} } })
})

test('tasks are offered, but no list of them', () => {
  const tasks = { cancel: {}, requests: { tools: { call: {} } } }
  expect(merge([{ tasks: { ...tasks, list: {} } }, { experimental: { a: {} } }])).toEqual({
    tasks,
    experimental: { a: {} },
  })
})

test.each([
  ['an array', []],
  ['a number', 7],
  ['true', true],
  ['null', null],
])('capabilities that are %s instead of an object do not hide those of other members', (_, odd) => {
  const good = { extensions: { 'a/x': {} }, tools: { listChanged: true }, logging: {} }
  const bad = { extensions: odd, tools: odd, logging: odd }
  expect(merge([bad, good])).toEqual(good)
  expect(merge([good, bad])).toEqual(good)
})

test('each server has a section in the order of the workspace, after one rule for names', () => {
  const merged = mergeInstructions(
    [
      { namespace: 'b', text: 'Use me first.\n' },
      { namespace: 'quiet', text: '  ' },
      { namespace: 'a', text: 'Use me then.' },
    ],
    'prefix',
  )
  expect(merged).toMatch(/<server>__<name>/)
  expect(merged?.slice(merged.indexOf('##'))).toBe('## b\n\nUse me first.\n\n## a\n\nUse me then.')
})

test('the rule follows the style; plain names need none', () => {
  const manuals = [{ namespace: 'a', text: 'Hello.' }]
  expect(mergeInstructions(manuals, 'slash')).toContain('<server>/<name>')
  expect(mergeInstructions(manuals, 'plain')).toBe('## a\n\nHello.')
})

test('without instructions of any server there are none', () => {
  expect(mergeInstructions([{ namespace: 'a', text: '' }], 'prefix')).toBeUndefined()
  expect(mergeInstructions([], 'prefix')).toBeUndefined()
})

test('instructions are cut to 4 KiB each and 16 KiB in all, between characters', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 6000 }), { maxLength: 8 }), texts => {
      const manuals = texts.map((text, i) => ({ namespace: `s${i}`, text }))
      const merged = mergeInstructions(manuals, 'prefix') ?? ''
      expect(Buffer.byteLength(merged)).toBeLessThanOrEqual(16 * 1024)
      if (!texts.join().includes('\ufffd')) expect(merged).not.toContain('\ufffd')
    }),
    { numRuns: 50 },
  )
  const long = mergeInstructions([{ namespace: 'a', text: 'ä'.repeat(5000) }], 'plain') ?? ''
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(4096 + '## a\n\n'.length)
  expect(long.endsWith('ä…')).toBe(true)
})
