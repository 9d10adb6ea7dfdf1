import { expect, test } from 'vitest'
import { fillTemplate, templateVariables } from './template-uri.ts'

test.each([
  ['test://x/{id}/data', ['id']],
  ['file:///{+path}{?q,limit*}', ['path', 'q', 'limit']],
  ['a:{x:3}/{x}', ['x']],
  ['a:b', []],
  ['a:{', []],
])('%s has the variables %j', (template, names) => {
  expect(templateVariables(template)).toEqual(names)
})

test.each<[string, Record<string, string>, string]>([
  ['test://x/{id}/data', { id: 'a b/c' }, 'test://x/a%20b%2Fc/data'],
  ['file:///{+path}', { path: 'a b/c' }, 'file:///a%20b/c'],
  ['x:y{?q,n}', { q: 'ü&', n: '2' }, 'x:y?q=%C3%BC%26&n=2'],
  ['x:{a}/{b}', { a: '1' }, 'x:1/{b}'],
])('%s with %j is %s', (template, values, uri) => {
  expect(fillTemplate(template, values)).toBe(uri)
})
