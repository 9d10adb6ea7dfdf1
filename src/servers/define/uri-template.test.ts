import { describe, expect, test } from 'vitest'
import { uriMatcher } from './uri-template.ts'

describe('matching a URI against a template', () => {
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
    expect(uriMatcher(template)(uri)).toEqual(variables)
  })

  test.each(['a://{?q}', 'a://{a,b}', 'a://{open', 'a://{#x}'])(
    '%s is not a template it could turn around',
    template => {
      expect(() => uriMatcher(template)).toThrow(template)
    },
  )
})
