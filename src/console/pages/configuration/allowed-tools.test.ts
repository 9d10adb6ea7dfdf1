import { expect, test } from 'vitest'
import { allowedTools, isToolAllowed, withAllowedTools } from './allowed-tools.ts'

test.each([
  [undefined, 'git/add', true],
  [[], 'git/add', false],
  [['git/add'], 'git/add', true],
  [['git/*'], 'git/add', true],
  [['*/add'], 'git/add', true],
  [['g*t/a*d'], 'git/add', true],
  [['git/add*add'], 'git/add', false],
  [['mail/*', 'git/a'], 'git/add', false],
])('the globs %j name %s: %s', (globs, path, isAllowed) => expect(isToolAllowed(globs, path)).toBe(isAllowed))

test('a pick changes the list of allowed tools only', () => {
  const entry = { servers: '*', policy: { deny: { tools: ['x/*'] }, allow: { servers: ['a'] } } }
  const picked = withAllowedTools(entry, ['a/b'])
  expect(picked).toEqual({
    servers: '*',
    policy: { deny: { tools: ['x/*'] }, allow: { servers: ['a'], tools: ['a/b'] } },
  })
  expect(allowedTools(picked)).toEqual(['a/b'])
  expect(allowedTools(entry)).toBeUndefined()
})
