import { describe, expect, it } from 'vitest'
import { Json, type Plain } from '../../../wire/json/json.ts'
import type { BodyPlan, OperationPlan, ParameterPlan } from '../plan.ts'
import { buildRequest } from './build-request.ts'

const BASE = { url: 'https://api.test/v1', query: {} }
const COLOR = ['blue', 'black', 'brown']
const RGB = { R: 100, G: 200, B: 150 }

const plan = (parts: Partial<OperationPlan>): OperationPlan => ({
  method: 'GET',
  path: '/x',
  parameters: [],
  accept: 'application/json',
  isJsonOnly: true,
  ...parts,
})
const parameter = (place: ParameterPlan['place'], style: ParameterPlan['style'], explode: boolean): ParameterPlan => ({
  argument: 'color',
  name: 'color',
  place,
  style,
  explode,
})
const request = (operation: OperationPlan, args: Record<string, Plain>) => buildRequest(operation, Json.of(args), BASE)

describe('parameters', () => {
  // The table of OpenAPI 3.1, 4.8.12.6.
  it.each<[ParameterPlan['style'], boolean, string, string, string]>([
    ['matrix', false, ';color=blue', ';color=blue,black,brown', ';color=R,100,G,200,B,150'],
    ['matrix', true, ';color=blue', ';color=blue;color=black;color=brown', ';R=100;G=200;B=150'],
    ['label', false, '.blue', '.blue,black,brown', '.R,100,G,200,B,150'],
    ['label', true, '.blue', '.blue.black.brown', '.R=100.G=200.B=150'],
    ['simple', false, 'blue', 'blue,black,brown', 'R,100,G,200,B,150'],
    ['simple', true, 'blue', 'blue,black,brown', 'R=100,G=200,B=150'],
  ])('in a path: %s, explode %s', (style, explode, ...expected) => {
    const operation = plan({ path: '/x{color}', parameters: [parameter('path', style, explode)] })
    const paths = ['blue', COLOR, RGB].map(color =>
      request(operation, { color }).url.slice('https://api.test/v1/x'.length),
    )
    expect(paths).toEqual(expected)
  })

  it.each<[ParameterPlan['style'], boolean, string, string, string]>([
    ['form', false, 'color=blue', 'color=blue,black,brown', 'color=R,100,G,200,B,150'],
    ['form', true, 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
    ['spaceDelimited', false, 'color=blue', 'color=blue%20black%20brown', 'color=R%20100%20G%20200%20B%20150'],
    ['pipeDelimited', false, 'color=blue', 'color=blue%7Cblack%7Cbrown', 'color=R%7C100%7CG%7C200%7CB%7C150'],
    ['tabDelimited', false, 'color=blue', 'color=blue%09black%09brown', 'color=R%09100%09G%09200%09B%09150'],
    [
      'deepObject',
      true,
      'color=blue',
      'color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown',
      'color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150',
    ],
  ])('in a query: %s, explode %s', (style, explode, ...expected) => {
    const operation = plan({ parameters: [parameter('query', style, explode)] })
    expect(['blue', COLOR, RGB].map(color => request(operation, { color }).url.split('?')[1])).toEqual(expected)
  })

  it('in headers and cookies; as JSON; encoded, or with reserved characters', () => {
    const parameters: ParameterPlan[] = [
      { ...parameter('header', 'simple', false), name: 'X-Color' },
      { ...parameter('cookie', 'form', true), argument: 'c', name: 'c' },
      { ...parameter('query', 'form', true), argument: 'j', name: 'j', isJson: true },
      { ...parameter('query', 'form', true), argument: 'q', name: 'q' },
      { ...parameter('query', 'form', true), argument: 'r', name: 'r', allowReserved: true },
    ]
    const args = { color: COLOR, c: 'a b', j: { a: [1] }, q: "a/b?c&d=ü'", r: 'a/b?c:d', unknown: 1 }
    const { url, headers } = request(plan({ parameters }), args)
    expect(url).toBe('https://api.test/v1/x?j=%7B%22a%22%3A%5B1%5D%7D&q=a%2Fb%3Fc%26d%3D%C3%BC%27&r=a/b?c:d')
    expect(headers).toEqual(['x-color', 'blue,black,brown', 'cookie', 'c=a%20b', 'accept', 'application/json'])
  })

  it('keep large numbers, leave out null and what is absent, and add the query of the entry last', () => {
    const operation = plan({
      parameters: [parameter('query', 'form', true), { ...parameter('query', 'form', true), argument: 'n', name: 'n' }],
    })
    const args = Json.parse(Buffer.from('{"n": 9007199254740993, "color": null}'))
    const { url, publicUrl } = buildRequest(operation, args, { ...BASE, query: { key: 's&s' } })
    expect(url).toBe('https://api.test/v1/x?n=9007199254740993&key=s%26s')
    expect(publicUrl).toBe('https://api.test/v1/x?n=9007199254740993')
  })

  it.each(['', '.', '..', undefined])('in a path never change the path: %j', color => {
    const operation = plan({ path: '/x/{color}/y', parameters: [parameter('path', 'simple', false)] })
    expect(() => request(operation, color === undefined ? {} : { color })).toThrow(/path/)
    expect(request(operation, { color: '../a?b#c' }).url).toBe('https://api.test/v1/x/..%2Fa%3Fb%23c/y')
  })

  it('in a header must be text for a header', () => {
    const operation = plan({ parameters: [parameter('header', 'simple', false)] })
    expect(() => request(operation, { color: 'a\r\nX: y' })).toThrow('Argument "color" cannot be sent as a header')
  })
})

describe('bodies', () => {
  const body = (kind: BodyPlan['kind'], mediaType: string, parts: BodyPlan['parts'] = {}) =>
    plan({ method: 'POST', body: { argument: 'body', kind, mediaType, parts } })
  const written = (operation: OperationPlan, value: Plain) => {
    const { body: bytes, headers } = request(operation, { body: value })
    return { text: bytes?.toString(), type: headers[headers.indexOf('content-type') + 1] }
  }
  const FORM = { style: 'form', explode: true } as const

  it('JSON, text and bytes are written as they are', () => {
    expect(written(body('json', 'application/vnd.x+json'), { a: 1 })).toEqual({
      text: '{"a":1}',
      type: 'application/vnd.x+json',
    })
    expect(written(body('text', 'text/csv'), 'a,b')).toEqual({ text: 'a,b', type: 'text/csv' })
    expect(written(body('binary', 'image/png'), 'aGk=')).toEqual({ text: 'hi', type: 'image/png' })
    expect(() => written(body('binary', 'image/png'), 'no base64!')).toThrow('Argument "body" must be base64')
    expect(request(body('json', 'application/json'), {}).body).toBeNull()
  })

  it('forms use the styles of their members', () => {
    const form = body('form', 'application/x-www-form-urlencoded', {
      deep: { style: 'deepObject', explode: true },
      list: { style: 'form', explode: false },
    })
    expect(
      written(form, { deep: { a: { b: [1] } }, list: [1, 2], more: [3, 4], object: { x: 1 }, none: null }).text,
    ).toBe('deep%5Ba%5D%5Bb%5D%5B0%5D=1&list=1,2&more=3&more=4&object=%7B%22x%22%3A1%7D')
    expect(() => written(form, 'text')).toThrow('Argument "body" must be an object')
  })

  it('multipart has a part for each member and file', () => {
    const multipart = body('multipart', 'multipart/form-data', {
      file: { ...FORM, isFile: true },
      meta: { ...FORM, isJson: true },
    })
    const value = {
      title: 'T',
      tags: ['a', 'b'],
      meta: { x: 1 },
      file: { data: 'aGk=', filename: 'a"\r\n.txt', mimeType: 'text/plain' },
    }
    const { text = '', type = '' } = written(multipart, value)
    const boundary = /^multipart\/form-data; boundary=(dragoman-\w+)$/.exec(type)?.[1] ?? ''
    const parts = text.split(`--${boundary}`).map(part => part.trim())
    expect(parts).toEqual([
      '',
      'Content-Disposition: form-data; name="title"\r\n\r\nT',
      'Content-Disposition: form-data; name="tags"\r\n\r\na',
      'Content-Disposition: form-data; name="tags"\r\n\r\nb',
      'Content-Disposition: form-data; name="meta"\r\nContent-Type: application/json\r\n\r\n{"x":1}',
      'Content-Disposition: form-data; name="file"; filename="a%22%0D%0A.txt"\r\nContent-Type: text/plain\r\n\r\nhi',
      '--',
    ])
    expect(() => written(multipart, { file: { data: 'aGk=', mimeType: 'x\r\ny' } })).toThrow('is no media type')
    expect(() => written(multipart, { file: {} })).toThrow('Argument "body.file" must have its bytes in "data"')
  })
})
