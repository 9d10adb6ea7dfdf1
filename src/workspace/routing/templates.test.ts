import fc from 'fast-check'
import { expect, test } from 'vitest'
import { closest, compileTemplate } from './templates.ts'

test.each([
  ['demo://item/{id}', 'demo://item/1', true],
  ['demo://item/{id}', 'demo://item/', false],
  ['demo://item/{id}', 'demo://item/1/2', false],
  ['demo://item/{id}/edit', 'demo://item/1/edit', true],
  ['file:///{+path}', 'file:///a/b/c.txt', true],
  ['file:///{+path}.txt', 'file:///a/b.txt', true],
  ['file:///{+path}.txt', 'file:///a/b.md', false],
  ['x://a{/b,c}', 'x://a/b/c', true],
  ['x://a{/b,c}', 'x://a', true],
  ['x://a{/b}', 'x://ab', false],
  ['x://a{?q,limit}', 'x://a?q=1&limit=2', true],
  ['x://a{?q}', 'x://a', true],
  ['x://a?fixed=1{&q}', 'x://a?fixed=1&q=2', true],
  ['x://a{#part}', 'x://a#b/c?d', true],
  ['x://a{.ext}', 'x://a.json', true],
  ['x://a{;v}', 'x://a;v=1', true],
  ['x://{a}-{b}', 'x://1-2-3', true],
  ['x://{a}{b}', 'x://1', false],
  ['x://literal', 'x://literal', true],
  ['x://literal', 'x://literal2', false],
  ['x://{a', 'x://{a', true],
  ['日本://{a}', '日本://東', true],
])('%s and %s: %s', (template, uri, fits) => {
  expect(compileTemplate(template).matches(uri)).toBe(fits)
})

test('a template of many expressions takes no longer than its size', () => {
  const { matches } = compileTemplate(`x://${'{+a}'.repeat(60)}!`)
  expect(matches(`x://${'a'.repeat(4000)}`)).toBe(false)
})

test('a URI of absurd length fits none', () => {
  expect(compileTemplate('x://{+a}').matches(`x://${'a'.repeat(9000)}`)).toBe(false)
})

test('what a template makes of any value, it matches', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), value => {
      const encoded = encodeURIComponent(value)
      expect(compileTemplate('x://a/{v}/b').matches(`x://a/${encoded}/b`)).toBe(true)
      expect(compileTemplate('x://a{?v}').matches(`x://a?v=${encoded}`)).toBe(true)
    }),
  )
})

test('the template with the most literal characters wins, the first of equals', () => {
  const of = (template: string) => ({ template, matcher: compileTemplate(template) })
  const all = ['file:///{+path}', 'file:///public/{name}', 'file:///{a}/{name}'].map(of)
  expect(closest(all, 'file:///public/x')?.template).toBe('file:///public/{name}')
  expect(closest(all, 'file:///x/y')?.template).toBe('file:///{a}/{name}')
  expect(closest(all, 'file:///x')?.template).toBe('file:///{+path}')
  expect(closest([of('x://{a}'), of('x://{b}')], 'x://1')?.template).toBe('x://{a}')
  expect(closest(all, 'http://x')).toBeUndefined()
})
