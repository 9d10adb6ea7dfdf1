import { expect, it } from 'vitest'
import {
  createGrantId,
  createGrantSecret,
  createRefreshToken,
  deriveSuccessor,
  isIssuedRefreshToken,
  judgeRefresh,
  parseGrantSecret,
  RETIRED_MS,
  type RefreshChain,
  rotateChain,
} from './grant-tokens.ts'

const id = createGrantId()

it('a secret names its grant and has 240 random bits besides', () => {
  const secrets = Array.from({ length: 50 }, () => createGrantSecret('dro_', id))
  expect(new Set(secrets).size).toBe(50)
  for (const secret of secrets) {
    expect(secret).toMatch(/^dro_[\w-]{64}$/)
    expect(parseGrantSecret(secret, 'dro_')).toMatchObject({ kind: 'dro_', grant: id })
  }
})

it('a secret of one kind is none of another kind, and no other text is one', () => {
  const secret = createGrantSecret('dro_', id)
  expect(parseGrantSecret(secret, 'drr_')).toBeUndefined()
  for (const text of ['', 'dro_', secret.slice(1), `${secret}a`, secret.slice(0, -1), ` ${secret}`, `${secret}\n`])
    expect(parseGrantSecret(text, 'dro_')).toBeUndefined()
})

it('the successor of a refresh token is always the same, and cannot be derived with another seed', () => {
  const token = createRefreshToken('c2VlZA', id)
  const successor = deriveSuccessor('c2VlZA', token)
  expect(parseGrantSecret(successor, 'drr_')?.grant).toBe(id)
  expect(deriveSuccessor('c2VlZA', token)).toBe(successor)
  expect(deriveSuccessor('b3RoZXI', token)).not.toBe(successor)
  expect(deriveSuccessor('c2VlZA', successor)).not.toBe(token)
})

it('a refresh token shows that it was issued for its grant', () => {
  const token = createRefreshToken('c2VlZA', id)
  for (const issued of [token, deriveSuccessor('c2VlZA', token)]) {
    expect(isIssuedRefreshToken('c2VlZA', issued)).toBe(true)
    expect(isIssuedRefreshToken('b3RoZXI', issued)).toBe(false)
    expect(isIssuedRefreshToken('c2VlZA', issued.slice(0, 30) + createGrantSecret('drr_', id).slice(30))).toBe(false)
  }
})

it('a rotated token is good until its successor is used, for a minute more for access only, and then was stolen', () => {
  const now = 1_000_000
  let chain: RefreshChain = { current: 'r1' }
  expect(judgeRefresh(chain, 'r1', now)).toBe('rotate')
  chain = rotateChain(chain, 'r2', now)
  expect(judgeRefresh(chain, 'r1', now + 24 * 3600_000)).toBe('repeat')
  expect(judgeRefresh(chain, 'r2', now)).toBe('rotate')
  chain = rotateChain(chain, 'r3', now)
  expect(judgeRefresh(chain, 'r1', now + RETIRED_MS - 1)).toBe('access-only')
  expect(judgeRefresh(chain, 'r1', now + RETIRED_MS)).toBe('reused')
  expect(judgeRefresh(chain, 'r2', now + 24 * 3600_000)).toBe('repeat')
  chain = rotateChain(chain, 'r4', now)
  expect(judgeRefresh(chain, 'r1', now)).toBe('reused')
  expect(judgeRefresh(chain, 'r2', now)).toBe('access-only')
  expect(judgeRefresh(chain, 'unknown', now)).toBe('reused')
})
