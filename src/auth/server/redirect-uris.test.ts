import { describe, expect, it, test } from 'vitest'
import { addToRedirect, findRedirectProblem, isRegisteredRedirect } from './redirect-uris.ts'

describe('a redirect URI that clients may have', () => {
  test.each([
    'https://claude.ai/api/mcp/auth_callback',
    'https://example.com:8443/cb?tenant=1',
    'https://xn--bcher-kva.example/cb',
    'http://127.0.0.1:33418/',
    'http://127.0.0.1/',
    'http://localhost:3334/oauth/callback',
    'http://[::1]:8080/cb',
    'cursor://anysphere.cursor-mcp/oauth/callback',
    'com.example.app:/oauth',
    'vscode://vscode.microsoft-authentication',
  ])('%s', uri => {
    expect(findRedirectProblem(uri)).toBeUndefined()
  })
})

describe('a redirect URI that no client may have', () => {
  test.each([
    ['http://example.com/cb', 'https'],
    ['http://127.0.0.1.example.com/cb', 'https'],
    ['http://localhost.example.com/cb', 'https'],
    ['http://localhost@example.com/cb', 'user name'],
    ['https://user:pass@example.com/cb', 'user name'],
    ['https://example.com/cb#x', 'fragment'],
    ['https://example.com/cb#', 'fragment'],
    ['javascript:alert(1)', 'scheme'],
    ['JavaScript:alert(1)', 'scheme'],
    ['data:text/html,x', 'scheme'],
    ['vbscript:x', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['blob:https://example.com/1', 'scheme'],
    ['https://example.com/<script>', 'valid'],
    ['https://example.com\\@evil.example/', 'valid'],
    ['https://example.com/\r\nset-cookie:a=b', 'valid'],
    ['https://ex ample.com/', 'valid'],
    [' https://example.com/', 'valid'],
    ['/relative', 'valid'],
    ['', 'valid'],
    ['https://exa;mple.com/', 'host'],
    [`https://example.com/${'a'.repeat(1100)}`, 'longer'],
  ])('%s', (uri, reason) => {
    expect(findRedirectProblem(uri)).toContain(reason)
  })
})

describe('the redirect URI of a request', () => {
  const registered = [
    'https://app.example/cb',
    'http://127.0.0.1/',
    'http://localhost:3334/oauth/callback?x=1',
    'cursor://mcp/cb',
  ]

  test.each([
    'https://app.example/cb',
    'http://127.0.0.1/',
    'http://127.0.0.1:33418/',
    'http://localhost/oauth/callback?x=1',
    'http://localhost:9/oauth/callback?x=1',
    'cursor://mcp/cb',
  ])('is one of the client: %s', uri => {
    expect(isRegisteredRedirect(registered, uri)).toBe(true)
  })

  test.each([
    'https://app.example/cb/',
    'https://app.example/cb/../evil',
    'https://app.example/cb?x',
    'https://app.example/cb#',
    'https://app.example/CB',
    'https://App.example/cb',
    'https://app.example:443/cb',
    'https://app.example:444/cb',
    'https://app.example.evil.example/cb',
    'https://app.example@evil.example/cb',
    'https://evil.example/https://app.example/cb',
    'https://app.example%2f@evil.example/cb',
    'https://app.example\\.evil.example/cb',
    'http://app.example/cb',
    '//app.example/cb',
    'https:app.example/cb',
    'https://app.example/cb%0a',
    ' https://app.example/cb',
    'https://app.example/cb ',
    'http://127.0.0.1:33418/evil',
    'http://127.0.0.2:33418/',
    'http://localhost:33418/',
    'http://127.0.0.1:33418@evil.example/',
    'http://127.0.0.1:33418.evil.example/',
    'http://127.0.0.1:99999/',
    'http://127.0.0.1:/',
    'http://localhost:3334/oauth/callback?x=2',
    'http://localhost:3334/oauth/callback?x=1&y=2',
    'cursor://mcp/cb2',
    'cursor://evil/cb',
    'javascript:alert(1)',
  ])('is none of the client: %s', uri => {
    expect(isRegisteredRedirect(registered, uri)).toBe(false)
  })
})

it('keeps its query as it is when parameters are added', () => {
  expect(addToRedirect('https://a.example/cb?x=%20y&z', { code: 'a b', state: undefined, iss: 'https://g' })).toBe(
    'https://a.example/cb?x=%20y&z&code=a+b&iss=https%3A%2F%2Fg',
  )
  expect(addToRedirect('app:/cb', { error: 'x' })).toBe('app:/cb?error=x')
})
