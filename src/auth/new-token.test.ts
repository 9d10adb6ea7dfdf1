import { describe, expect, it } from 'vitest'
import { createToken, TokenWishError } from './new-token.ts'
import { hashSecret } from './token.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const KNOWN = { workspaces: ['default', 'demo'], policies: { file: 'x.json', names: ['reading'] }, tokens: ['taken'] }

describe('createToken', () => {
  it('makes a token for every workspace that never expires, or what was asked for', () => {
    const { token, secret } = createToken({ name: 'laptop' }, KNOWN, NOW)
    expect(token).toMatchObject({ name: 'laptop', workspaces: ['*'], principal: token.id, expires: undefined })
    expect(token.hash).toBe(hashSecret(secret))
    const wish = { name: 'ci', workspaces: ['demo', 'demo'], policy: 'reading', expires: '12h', principal: 'ann' }
    expect(createToken(wish, KNOWN, NOW).token).toMatchObject({
      workspaces: ['demo'],
      policy: 'reading',
      principal: 'ann',
      expires: '2026-01-01T12:00:00.000Z',
    })
  })

  it.each([
    [{ name: '' }, 'name', 'expected 1 to 100 printable characters'],
    [{ name: 'x'.repeat(10_000) }, 'name', 'expected 1 to 100 printable characters'],
    [{ name: 'a\u0007' }, 'name', 'expected 1 to 100 printable characters'],
    [{ name: 'taken' }, 'name', 'there is a token "taken" already; choose another name'],
    [{ name: 'x', workspaces: ['dmeo'] }, 'workspaces', 'the gateway has no workspace "dmeo"; did you mean "demo"?'],
    [{ name: 'x', workspaces: ['a b'] }, 'workspaces', '"a b" is not a valid workspace name'],
    [{ name: 'x', policy: 'raeding' }, 'policy', 'x.json defines no policy "raeding"; did you mean "reading"?'],
    [{ name: 'x', expires: '0d' }, 'expires', 'expected a time like 45m, 12h, 30d, 6w or 1y'],
    [{ name: 'x', expires: '-1d' }, 'expires', 'expected a time like'],
    [{ name: 'x', expires: '999999999y' }, 'expires', 'expected a time like'],
    [{ name: 'x', principal: '' }, 'principal', 'expected 1 to 100 printable characters'],
  ])('refuses %o', (wish, field, message) => {
    const run = () => createToken(wish, KNOWN, NOW)
    expect(run).toThrow(TokenWishError)
    expect(run).toThrow(message)
    expect(run).toThrow(expect.objectContaining({ field }))
  })

  it('checks only the names that are known', () => {
    expect(createToken({ name: 'taken', workspaces: ['later'], policy: 'any' }).token).toMatchObject({ policy: 'any' })
  })
})
