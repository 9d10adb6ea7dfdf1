import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { closestTemplate, compileTemplate, createVariableReader, expandTemplate } from './uri-template.ts'

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
  expect(closestTemplate(all, 'file:///public/x')?.template).toBe('file:///public/{name}')
  expect(closestTemplate(all, 'file:///x/y')?.template).toBe('file:///{a}/{name}')
  expect(closestTemplate(all, 'file:///x')?.template).toBe('file:///{+path}')
  expect(closestTemplate([of('x://{a}'), of('x://{b}')], 'x://1')?.template).toBe('x://{a}')
  expect(closestTemplate(all, 'http://x')).toBeUndefined()
})

describe('reading the variables of a URI', () => {
  test.each<[string, string, Record<string, string> | undefined]>([
    ['a://{id}', 'a://7', { id: '7' }],
    ['a://{id}/data', 'a://7/data', { id: '7' }],
    ['a://{x}/{y}', 'a://1/2', { x: '1', y: '2' }],
    ['a://{id}', 'a://%C3%A9', { id: 'é' }],
    ['a://{+path}', 'a://b/c/d', { path: 'b/c/d' }],
    ['a://plain', 'a://plain', {}],
    ['a://b.c+d?e={id}', 'a://b.c+d?e=1', { id: '1' }],
    ['a://{id}', 'a://', undefined],
    ['a://{id}', 'a://7/8', undefined],
    ['a://{id}', 'a://7?x', undefined],
    ['a://{id}', 'b://7', undefined],
    ['a://{id}', 'xa://7', undefined],
    ['a://b.c/{id}', 'a://bxc/7', undefined],
    ['a://{id}', 'a://%zz', undefined],
  ])('%s and %s', (template, uri, variables) => {
    expect(createVariableReader(template)(uri)).toEqual(variables)
  })

  test.each(['a://{?q}', 'a://{a,b}', 'a://{open', 'a://{#x}'])('%s cannot be read back', template => {
    expect(() => createVariableReader(template)).toThrow(template)
  })
})

test.each([
  ['x://{a}/{b}', 'x://1/{b}'],
  ['x://{+a}', 'x://1'],
  ['x://{a,c}', 'x://1,3/4'],
  ['x://{a:3}', 'x://1'],
  ['x://y{?a,b,c}', 'x://y?a=1&c=3/4'],
  ['x://y?z{&a}', 'x://y?z&a=1'],
  ['x://y{/a,c*}', 'x://y/1/3/4'],
  ['x://y{;a}{.a}{#a}', 'x://y;a=1.1#1'],
  ['x://{open', 'x://{open'],
])('%s expands to %s', (template, uri) => {
  expect(expandTemplate(template, name => ({ a: '1', c: '3/4' })[name])).toBe(uri)
})
