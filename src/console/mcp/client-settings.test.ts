import { expect, test } from 'vitest'
import { capabilitiesOf, DECLARABLE, DEFAULT_SETTINGS, EXTENSIONS, isSameClient } from './client-settings.ts'

test('the default declares what the page can answer, and no extension', () => {
  expect(capabilitiesOf(DEFAULT_SETTINGS)).toEqual({
    elicitation: { form: {}, url: {} },
    sampling: {},
    roots: { listChanged: true },
  })
})

test('a client may declare nothing, or everything', () => {
  expect(capabilitiesOf({ ...DEFAULT_SETTINGS, declared: [] })).toEqual({})
  const all = { declared: DECLARABLE.map(({ id }) => id), extensions: EXTENSIONS, isPaged: false }
  expect(capabilitiesOf(all)).toEqual({
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: { listChanged: true },
    extensions: EXTENSIONS,
  })
})

test('how lists are read is nothing that servers see', () => {
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, isPaged: true })).toBe(true)
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, declared: ['form'] })).toBe(false)
  expect(isSameClient(DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, extensions: { 'a/b': {} } })).toBe(false)
})
