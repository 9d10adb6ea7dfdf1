import { describe, expect, it, test } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { bareCapabilities, capabilitiesFingerprint, capabilitiesKnownTo } from './capabilities.ts'

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

const CAPABILITIES = Json.of({
  roots: { listChanged: true },
  sampling: { tools: {}, context: {}, 'acme/x': 1 },
  elicitation: { form: {}, url: {} },
  tasks: { list: {} },
  experimental: { a: { b: 1 } },
  extensions: { 'acme/y': {} },
})

describe('the capabilities a server is offered', () => {
  it('are all of them at the newest legacy revision', () => {
    expect(capabilitiesKnownTo(CAPABILITIES, '2025-11-25').toString()).toBe(CAPABILITIES.toString())
  })

  it.each(['2024-11-05', '2025-06-18'] as const)('lack only what was added after %s', revision => {
    expect(capabilitiesKnownTo(CAPABILITIES, revision).toValue()).toEqual({
      roots: { listChanged: true },
      sampling: { 'acme/x': 1 },
      elicitation: {},
      experimental: { a: { b: 1 } },
      extensions: { 'acme/y': {} },
    })
  })

  it('are bare for a server that rejects members it does not know', () => {
    expect(bareCapabilities(CAPABILITIES).toValue()).toEqual({
      experimental: { a: { b: 1 } },
      roots: { listChanged: true },
      sampling: {},
      elicitation: {},
    })
    expect(bareCapabilities(Json.of({ elicitation: true, constructor: {} })).toValue()).toEqual({ elicitation: {} })
    expect(bareCapabilities(Json.empty).toValue()).toEqual({})
  })
})
