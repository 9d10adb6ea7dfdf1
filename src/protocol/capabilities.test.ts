import { expect, test } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { capabilitiesFingerprint } from './capabilities.ts'

const parse = (text: string) => Json.parse(Buffer.from(text))
const pad = (length: number) => 'x'.repeat(length)

test.each([0, 500, 2000, 60_000])('capabilities of %i bytes that mean the same have one fingerprint', length => {
  const one = capabilitiesFingerprint(parse(`{"roots":{},"experimental":{"pad":"${pad(length)}","a":1}}`))
  const same = capabilitiesFingerprint(parse(`{ "experimental": {"a": 1, "pad": "${pad(length)}"}, "roots": {} }`))
  const other = capabilitiesFingerprint(parse(`{"roots":{},"experimental":{"pad":"${pad(length)}","a":2}}`))
  expect(same).toBe(one)
  expect(other).not.toBe(one)
})

test('a fingerprint is short, however long the capabilities, and on one line', () => {
  for (const length of [0, 100, 1000, 60_000]) {
    const found = capabilitiesFingerprint(Json.of({ experimental: { pad: pad(length) }, '\n': {} }))
    expect(found.length).toBeLessThanOrEqual(128)
    expect(found).not.toContain('\n')
  }
})
