import { expect, test } from 'vitest'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { mergeCapabilities } from './capabilities.ts'

const merge = (all: readonly PlainObject[], asksOnlyOnce = false) =>
  mergeCapabilities(all.map(Json.of), asksOnlyOnce).toValue()

test('what one member can do, the workspace can', () => {
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

test('a primitive that no member has is not claimed to a caller who can ask again', () => {
  expect(merge([{ tools: {} }])).toEqual({ tools: { listChanged: true } })
})

test('a caller who asks only once is told of everything that may come', () => {
  expect(merge([{ logging: {} }], true)).toEqual({
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
    logging: {},
  })
})

test('nobody known: tools, prompts and resources, and word of changes', () => {
  expect(merge([])).toEqual({
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
  })
})

test('extensions are joined by id; settings that differ become none', () => {
  expect(
    merge([
      { extensions: { 'a/x': { deep: [1] }, 'a/y': { n: 1 } } },
      { extensions: { 'a/x': { deep: [1] }, 'a/y': { n: 2 }, 'b/z': {} } },
    ]),
  ).toEqual({ extensions: { 'a/x': { deep: [1] }, 'a/y': {}, 'b/z': {} } })
})

test('tasks are not promised for all because one has them', () => {
  expect(merge([{ tasks: { list: {} } }, { experimental: { a: {} } }])).toEqual({ experimental: { a: {} } })
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
