import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { findForeignSignIn, findForgery } from './same-origin.ts'

const HOST = '127.0.0.1:8765'
const CSRF = 'the-right-one'
const request = (headers: Readonly<Record<string, string>>, method = 'POST') =>
  ({ method, headers: { host: HOST, ...headers } }) as unknown as IncomingMessage
const withToken = (headers: Readonly<Record<string, string>>) => request({ 'x-dragoman-csrf': CSRF, ...headers })

it.each([
  [{ origin: `http://${HOST}` }],
  [{ origin: `http://${HOST}`, 'sec-fetch-site': 'same-origin' }],
  [{ 'sec-fetch-site': 'same-origin' }],
  [{ origin: 'https://gw.example' }],
])('%j may change things', headers => {
  expect(findForgery(withToken(headers), CSRF, 'https://gw.example')).toBeUndefined()
  expect(findForeignSignIn(request(headers), 'https://gw.example')).toBeUndefined()
})

it.each([
  [{ origin: 'http://127.0.0.1:3000' }],
  [{ origin: 'http://localhost:8765' }],
  [{ origin: 'https://evil.example' }],
  [{ origin: 'null' }],
  [{ origin: `foo://${HOST}` }],
  [{ origin: `http://${HOST}.evil.example` }],
  [{ origin: `http://${HOST}`, 'sec-fetch-site': 'cross-site' }],
  [{ 'sec-fetch-site': 'same-site' }],
  [{ 'sec-fetch-site': 'none' }],
])('%j is refused, with the right token, too', headers => {
  expect(findForgery(withToken(headers), CSRF, undefined)).toMatchObject({ status: 403 })
  expect(findForeignSignIn(request(headers), undefined)).toMatchObject({ status: 403 })
})

it.each([[{}], [{ 'x-dragoman-csrf': '' }], [{ 'x-dragoman-csrf': 'the-wrong-one' }], [{ 'x-dragoman-csrf': 'x' }]])(
  'the token %j is refused',
  headers => {
    const refusal = findForgery(request({ origin: `http://${HOST}`, ...headers }), CSRF, undefined)
    expect(refusal).toMatchObject({ status: 403, message: expect.stringContaining('x-dragoman-csrf') })
  },
)

it('a request that names no origin is refused with the cookie, and may sign in', () => {
  expect(findForgery(withToken({}), CSRF, undefined)).toMatchObject({ status: 403 })
  expect(findForeignSignIn(request({}), undefined)).toBeUndefined()
})

it('reading needs no token', () => {
  for (const method of ['GET', 'HEAD']) expect(findForgery(request({}, method), CSRF, undefined)).toBeUndefined()
})
