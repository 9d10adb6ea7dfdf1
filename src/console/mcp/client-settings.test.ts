import { expect, test } from 'vitest'
import {
  capabilitiesOf,
  DECLARABLE,
  DEFAULT_SETTINGS,
  EXTENSIONS,
  isSameClient,
  withCallMeta,
} from './client-settings.ts'

test('the default declares what the page can answer, and no extension', () => {
  expect(capabilitiesOf(DEFAULT_SETTINGS)).toEqual({
    elicitation: { form: {}, url: {} },
    sampling: {},
    roots: { listChanged: true },
  })
})

test('a client may declare nothing, or everything', () => {
  expect(capabilitiesOf({ ...DEFAULT_SETTINGS, declared: [] })).toEqual({})
  const all = { ...DEFAULT_SETTINGS, declared: DECLARABLE.map(({ id }) => id), extensions: EXTENSIONS }
  expect(capabilitiesOf(all)).toEqual({
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: { listChanged: true },
    extensions: EXTENSIONS,
  })
})

test('how lists are read is nothing that servers see', () => {
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, isPaged: true })).toBe(true)
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, meta: { a: 1 } })).toBe(true)
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, logLevel: 'error' })).toBe(false)
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, declared: ['form'] })).toBe(false)
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, extensions: { 'a/b': {} } })).toBe(false)
})

test('calls carry the chosen _meta', () => {
  expect(withCallMeta({ name: 'x' }, DEFAULT_SETTINGS)).toEqual({ name: 'x' })
  expect(withCallMeta({ name: 'x' }, { ...DEFAULT_SETTINGS, meta: { 'a/b': 1 } })).toEqual({
    name: 'x',
    _meta: { 'a/b': 1 },
  })
  const own = { name: 'x', _meta: { 'a/b': 2, 'a/c': 3 } } // as an app sends it
  expect(withCallMeta(own, { ...DEFAULT_SETTINGS, meta: { 'a/b': 1, 'a/d': 4 } })._meta).toEqual({
    'a/b': 2,
    'a/c': 3,
    'a/d': 4,
  })
})
