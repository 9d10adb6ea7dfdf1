import { describe, expect, it } from 'vitest'
import { canAccess, createSecret, createTokenId, findToken, hashSecret, isExpired, type Token } from './token.ts'

const tokenOf = (secret: string, more: Partial<Token> = {}): Token => ({
  id: 'a1',
  name: 'test',
  hash: hashSecret(secret),
  principal: 'ada',
  workspaces: ['*'],
  created: '2026-01-01T00:00:00.000Z',
  ...more,
})

describe('a secret', () => {
  it('has 256 bits after a prefix that scanners know, and is unique', () => {
    const secrets = Array.from({ length: 100 }, createSecret)
    for (const secret of secrets) {
      expect(secret).toMatch(/^drg_[A-Za-z0-9_-]{43}$/)
      expect(Buffer.from(secret.slice(4), 'base64url')).toHaveLength(32)
    }
    expect(new Set(secrets).size).toBe(100)
    expect(new Set(Array.from({ length: 100 }, createTokenId)).size).toBe(100)
  })

  it('is found by its hash, and nothing else is', () => {
    const secret = createSecret()
    const token = tokenOf(secret)
    const tokens = new Map([[token.hash, token]])
    expect(findToken(tokens, secret)).toBe(token)
    for (const wrong of [
      createSecret(),
      secret.slice(0, -1),
      `${secret}A`,
      secret.toLowerCase(),
      token.hash,
      '',
      ` ${secret}`,
    ])
      expect(findToken(tokens, wrong)).toBeUndefined()
  })

  it('is not found through a store with a wrong hash', () => {
    const secret = createSecret()
    expect(findToken(new Map([[hashSecret(secret), tokenOf(createSecret())]]), secret)).toBeUndefined()
  })
})

describe('a token', () => {
  const end = Date.parse('2026-02-01T00:00:00.000Z')

  it('ends when it expires, and not before', () => {
    const token = tokenOf(createSecret(), { expires: '2026-02-01T00:00:00.000Z' })
    expect(isExpired(token, end - 1)).toBe(false)
    expect(isExpired(token, end)).toBe(true)
    expect(isExpired(tokenOf(createSecret()), end)).toBe(false)
  })

  it('opens its workspaces only', () => {
    expect(canAccess(tokenOf(createSecret()), 'any')).toBe(true)
    const token = tokenOf(createSecret(), { workspaces: ['a', 'b'] })
    expect(['a', 'b', 'c', 'A', '*', ''].filter(name => canAccess(token, name))).toEqual(['a', 'b'])
    expect(canAccess(tokenOf(createSecret(), { workspaces: [] }), 'a')).toBe(false)
  })
})
