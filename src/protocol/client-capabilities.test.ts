import { describe, expect, it } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { bareCapabilities, capabilitiesKnownTo } from './client-capabilities.ts'

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
