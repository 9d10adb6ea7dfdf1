import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mintId } from '../../wire/sealed-id.ts'
import { CallerSeal } from './caller-seal.ts'

const key = randomBytes(32)
const caller = { workspace: 'default', principal: 'ana', policyName: 'readers', address: '10.0.0.7' }
const NOW = 1_000_000
const sealed = new CallerSeal([key]).seal(caller, 'home', NOW)
const open = (text: string, self = 'home', now = NOW) => new CallerSeal([key]).open(text, self, now)

test('what is sealed is opened by the replica it is meant for', () => {
  expect(open(sealed)).toEqual({ kind: 'valid', caller })
  const anonymous = { workspace: 'w', principal: undefined, policyName: undefined, address: undefined }
  expect(open(new CallerSeal([key]).seal(anonymous, 'home', NOW))).toEqual({ kind: 'valid', caller: anonymous })
})

test('scopes and the expiry of the token go with the caller; none are not the same as all', () => {
  const seal = new CallerSeal([key])
  for (const scopes of [new Set(['mcp', 'mcp:write']), new Set<string>(), undefined]) {
    const holder = { ...caller, scopes, expires: NOW + 5 }
    expect(open(seal.seal(holder, 'home', NOW))).toEqual({ kind: 'valid', caller: holder })
  }
})

test('any text comes back as it was', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 64 })
  fc.assert(
    fc.property(text, text, text, text, (workspace, principal, policyName, address) => {
      const any = { workspace, principal, policyName, address }
      const seal = new CallerSeal([key])
      expect(seal.open(seal.seal(any, 'home', NOW), 'home', NOW)).toEqual({ kind: 'valid', caller: any })
    }),
  )
})

test('another replica is not meant', () => {
  expect(open(sealed, 'other')).toEqual({ kind: 'misdirected' })
})

test('a replay after ten seconds is rejected, also by a replica that has opened it before', () => {
  const home = new CallerSeal([key])
  expect(home.open(sealed, 'home', NOW + 9_999).kind).toBe('valid')
  expect(home.open(sealed, 'home', NOW + 10_000).kind).toBe('expired')
  expect(open(sealed, 'home', NOW - 2_000).kind).toBe('expired') // the clock of the sender is ahead
})

test('a forged, foreign, mutated, cut or respelt caller is rejected', () => {
  expect(open(new CallerSeal([randomBytes(32)]).seal(caller, 'home', NOW)).kind).toBe('invalid')
  expect(open(mintId(key, 'session', { home: 'home', workspace: 'default' })).kind).toBe('invalid')
  for (let at = 0; at < sealed.length; at++) {
    const other = sealed[at] === 'A' ? 'B' : 'A'
    expect(open(sealed.slice(0, at) + other + sealed.slice(at + 1)).kind).toBe('invalid')
    expect(open(sealed.slice(0, at)).kind).toBe('invalid')
  }
  for (const tail of ['=', ' ', 'A', '.', sealed]) expect(open(sealed + tail).kind).toBe('invalid')
  fc.assert(fc.property(fc.string(), text => open(text).kind === 'invalid'))
  expect(open('A'.repeat(1_000_000)).kind).toBe('invalid')
})

test('while a secret is replaced, callers of both are accepted', () => {
  const next = randomBytes(32)
  expect(new CallerSeal([next, key]).open(sealed, 'home', NOW).kind).toBe('valid')
  expect(new CallerSeal([next]).open(sealed, 'home', NOW).kind).toBe('invalid')
})

test('a caller is sealed once in five seconds, for each replica and caller', () => {
  const seal = new CallerSeal([key])
  const first = seal.seal(caller, 'home', NOW)
  expect(seal.seal({ ...caller }, 'home', NOW + 4_999)).toBe(first)
  expect(seal.seal(caller, 'home', NOW + 5_000)).not.toBe(first)
  expect(seal.seal(caller, 'home', NOW - 60_000)).not.toBe(first) // the clock was set back
  const others = [
    seal.seal(caller, 'other', NOW),
    seal.seal({ ...caller, principal: 'ben' }, 'home', NOW),
    seal.seal({ ...caller, policyName: undefined }, 'home', NOW),
    seal.seal({ ...caller, address: '10.0.0.8' }, 'home', NOW),
    seal.seal({ ...caller, workspace: 'w' }, 'home', NOW),
  ]
  expect(new Set([first, ...others]).size).toBe(6)
})
