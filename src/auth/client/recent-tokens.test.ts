import { expect, it } from 'vitest'
import { RecentTokens } from './recent-tokens.ts'

it('keeps the tokens that were used last, each once', () => {
  const recent = new RecentTokens()
  recent.add({ access: 'first', refresh: 'renews first' })
  for (let at = 0; at < 98; at++) recent.add({ access: `a${at}`, refresh: undefined })
  const before = recent.list
  recent.add({ access: 'first', refresh: 'renews first' })
  expect(recent.list).toBe(before)
  recent.add({ access: 'last', refresh: undefined })
  expect(recent.list).not.toBe(before)
  expect(recent.list).toHaveLength(100)
  expect(recent.list.slice(-3)).toEqual(['first', 'renews first', 'last'])
  expect(recent.list).not.toContain('a0')
})
