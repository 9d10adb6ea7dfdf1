import { describe, expect, it } from 'vitest'
import { resolveRedirect, targetOf, withoutSecretHeaders } from './redirect.ts'

const from = (url: string) => ({ target: targetOf(url), keepsSecrets: true })

describe('following a Location', () => {
  it.each([
    ['http://a.test/mcp', '/mcp/', 'http://a.test', '/mcp/', true],
    ['http://a.test/mcp', 'next?x=1', 'http://a.test', '/next?x=1', true],
    ['http://a.test/mcp', 'https://a.test/mcp', 'https://a.test', '/mcp', true],
    ['http://a.test:8080/mcp', 'https://a.test:8080/mcp', 'https://a.test:8080', '/mcp', true],
    ['http://a.test/mcp', 'https://a.test:9999/mcp', 'https://a.test:9999', '/mcp', false],
    ['https://a.test/mcp', 'http://a.test/mcp', 'http://a.test', '/mcp', false],
    ['https://a.test/mcp', 'https://b.test/mcp', 'https://b.test', '/mcp', false],
    ['http://a.test/mcp', 'http://a.test:81/mcp', 'http://a.test:81', '/mcp', false],
    ['http://a.test/mcp', '//b.test/mcp', 'http://b.test', '/mcp', false],
  ])('%s → %s', (url, location, origin, path, keepsSecrets) => {
    expect(resolveRedirect(from(url), location)).toEqual({ target: { origin, path }, keepsSecrets })
  })

  it('never gives secrets back once they were dropped', () => {
    const away = resolveRedirect(from('https://a.test/mcp'), 'https://b.test/mcp')
    expect(away && resolveRedirect(away, 'https://b.test/other')?.keepsSecrets).toBe(false)
  })

  it.each(['ftp://a.test/', 'javascript:alert(1)', 'http://['])('refuses %s', location => {
    expect(resolveRedirect(from('http://a.test/mcp'), location)).toBeUndefined()
  })
})

it('drops secret headers whatever their case and keeps the others in order', () => {
  const headers = ['Authorization', 'Bearer x', 'accept', 'a', 'X-Api-Key', 'k', 'mcp-method', 'ping']
  expect(withoutSecretHeaders(headers, new Set(['authorization', 'x-api-key']))).toEqual([
    'accept',
    'a',
    'mcp-method',
    'ping',
  ])
})
