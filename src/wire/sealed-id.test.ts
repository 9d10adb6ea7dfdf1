import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type IdPurpose, mintId, openId } from './sealed-id.ts'

const key = randomBytes(32)
const content = { home: 'r-5f3a', workspace: 'default' }
const id = mintId(key, 'session', content)

test('an id says home and workspace, whatever they are called', () => {
  const anyText = fc.string({ unit: 'grapheme', maxLength: 64 })
  fc.assert(
    fc.property(anyText, anyText, (home, workspace) => {
      expect(openId([key], 'session', mintId(key, 'session', { home, workspace }))).toEqual({ home, workspace })
    }),
  )
})

test('an id fits into a header and a query, and is never the same twice', () => {
  expect(id).toMatch(/^[0-9a-f]{64,140}$/)
  expect(new Set(Array.from({ length: 100 }, () => mintId(key, 'session', content))).size).toBe(100)
})

test('an id of another key opens only while that key is known', () => {
  const next = randomBytes(32)
  expect(openId([next], 'session', id)).toBeUndefined()
  expect(openId([next, key], 'session', id)).toEqual(content)
  expect(openId([], 'session', id)).toBeUndefined()
})

test('an id for one purpose is not accepted for another', () => {
  const purposes: IdPurpose[] = ['session', 'channel', 'question']
  for (const minted of purposes)
    for (const asked of purposes)
      expect(openId([key], asked, mintId(key, minted, content)) !== undefined).toBe(minted === asked)
})

test('an id that differs in one character, is cut, longer or spelt otherwise is not accepted', () => {
  for (let at = 0; at < id.length; at++) {
    for (const other of '09afgG-é ')
      if (id[at] !== other) expect(openId([key], 'session', id.slice(0, at) + other + id.slice(at + 1))).toBeUndefined()
    expect(openId([key], 'session', id.slice(0, at))).toBeUndefined()
  }
  for (const tail of ['0', '00', ' ', '\n', ', ', id]) expect(openId([key], 'session', id + tail)).toBeUndefined()
  expect(openId([key], 'session', id.toUpperCase())).toBeUndefined()
})

test('no text that was not minted is accepted, however long', () => {
  fc.assert(fc.property(fc.string(), text => openId([key], 'session', text) === undefined))
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), bytes => {
      expect(openId([key], 'session', Buffer.from(bytes).toString('hex'))).toBeUndefined()
    }),
  )
  expect(openId([key], 'session', '00'.repeat(1_000_000))).toBeUndefined()
})
