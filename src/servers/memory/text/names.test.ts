import { expect, test } from 'vitest'
import { fuzzySame, normaliseName } from './names.ts'

test.each([
  ['  New   York ', 'new york'],
  ['"Dragoman"', 'dragoman'],
  ['José’s', 'jose'],
  ['ＡＣＭＥ Corp.', 'acme corp'],
  ['Jose\u0301', 'jose'],
  ['Андрей', 'андрей'],
  ['@ann', '@ann'],
  ['v1.2', 'v1.2'],
  ['...', ''],
])('%j is looked up as %j', (name, norm) => {
  expect(normaliseName(name)).toBe(norm)
  expect(normaliseName(norm)).toBe(norm)
})

test.each([
  ['Massachusetts Institute of Technology', 'Massachusets Institute of Technology'],
  ['International Business Machines Corp', 'International Business Machines Corp.'],
])('%j and %j are one', (a, b) => {
  expect(fuzzySame(a, b)).toBe(true)
  expect(fuzzySame(b, a)).toBe(true)
})

test.each([
  ['Anna', 'Anne'],
  ['Dr. Meyer', 'Dr. Mayer'],
  ['Postgres driver release 10 of November', 'Postgres driver release 11 of November'],
  ['aaaaaaaaaaaaaaaaaaaaaaaa', 'aaaaaaaaaaaaaaaaaaaaaaab'],
  ['Margit Hansen', 'Margit Hanssun'],
  ['', ''],
])('%j and %j stay two', (a, b) => {
  expect(fuzzySame(a, b)).toBe(false)
})
