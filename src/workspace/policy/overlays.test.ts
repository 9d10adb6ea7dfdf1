import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Overlay } from '../../config/snapshot.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { showOverlay, withOverlayArguments } from './overlays.ts'

const overlay = (over: Partial<Overlay>): Overlay => ({ hidden: false, fixed: {}, defaults: {}, ...over })

const TOOL = Json.parse(
  Buffer.from(`{"name":"search","description":"Finds","x-unknown":1.0,"annotations":{"readOnlyHint":true,"other":1e2},
    "inputSchema":{"type":"object","properties":{"q":{"type":"string"},"repo":{"type":"string"},"limit":{"type":"integer","maximum":1.0}},
    "required":["q","repo","limit"],"additionalProperties":false}}`),
)

describe('a tool as shown', () => {
  test('without anything to change it is the same value', () => {
    expect(showOverlay(TOOL, overlay({}))).toBe(TOOL)
  })

  test('title, description and annotations are replaced, everything else keeps its bytes', () => {
    const shown = showOverlay(
      TOOL,
      overlay({ title: 'Search', description: 'Finds issues', annotations: { readOnlyHint: false } }),
    )
    expect(shown.toValue()).toMatchObject({
      title: 'Search',
      description: 'Finds issues',
      annotations: { readOnlyHint: false, other: 100 },
    })
    expect(shown.toString()).toContain('"x-unknown":1.0')
    expect(shown.toString()).toContain('"other":1e2')
    expect(shown.get('inputSchema')?.toString()).toBe(TOOL.get('inputSchema')?.toString())
  })

  test('fixed arguments are removed; those with a default are optional', () => {
    const shown = showOverlay(TOOL, overlay({ fixed: { repo: 'me/mine' }, defaults: { limit: 10 } }))
    expect(shown.get('inputSchema')?.toValue()).toEqual({
      type: 'object',
      properties: { q: { type: 'string' }, limit: { type: 'integer', maximum: 1, default: 10 } },
      required: ['q'],
      additionalProperties: false,
    })
  })

  test('an empty `required` is removed', () => {
    const shown = showOverlay(TOOL, overlay({ fixed: { repo: 1, q: 1 }, defaults: { limit: 10 } }))
    expect(shown.get('inputSchema')?.has('required')).toBe(false)
  })

  test.each([[{ name: 'x' }], [{ name: 'x', inputSchema: true }], [{ name: 'x', inputSchema: { type: 'object' } }]])(
    'a definition without properties stays: %j',
    item => {
      const json = Json.of(item as Plain)
      expect(showOverlay(json, overlay({ fixed: { a: 1 }, defaults: { b: 2 } })).toValue()).toEqual(item)
    },
  )
})

describe('arguments of a call', () => {
  test.each([
    [{ q: 'x' }, { q: 'x', limit: 10, repo: 'mine' }],
    [
      { q: 'x', limit: 5 },
      { q: 'x', limit: 5, repo: 'mine' },
    ],
    [
      { q: 'x', limit: null, repo: 'theirs' },
      { q: 'x', limit: null, repo: 'mine' },
    ],
    [{}, { limit: 10, repo: 'mine' }],
  ])('%j become %j', (args, sent) => {
    const filled = withOverlayArguments(Json.of(args), overlay({ fixed: { repo: 'mine' }, defaults: { limit: 10 } }))
    expect(filled.toValue()).toEqual(sent)
  })

  test('arguments that are no object are ignored', () => {
    expect(withOverlayArguments(Json.of('x'), overlay({ fixed: { a: 1 } })).toValue()).toEqual({ a: 1 })
  })

  test('fixed arguments always win, and the others stay as the caller sent them', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), args => {
        const given = JSON.parse(JSON.stringify(args)) as Record<string, unknown>
        const sent = withOverlayArguments(
          Json.parse(Buffer.from(JSON.stringify(args))),
          overlay({ fixed: { a: 'fixed' } }),
        ).toValue()
        expect(sent).toEqual({ ...given, a: 'fixed' })
      }),
    )
  })
})
