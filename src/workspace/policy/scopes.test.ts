import { expect, it } from 'vitest'
import { createScopeCheck } from './scopes.ts'

const check = createScopeCheck(
  new Map([
    ['any', {}],
    ['write', { tools: ['*/create_*', 'files/*'] }],
    ['admin', { tools: ['github/create_repo'] }],
  ]),
)
const lacks = (scopes: string[] | undefined, server: string, tools: string[] | undefined) =>
  check?.({ scopes: scopes && new Set(scopes) }, server, tools)?.missing ?? []

it.each<[string[] | undefined, string, string[] | undefined, string[]]>([
  [undefined, 'github', ['create_repo'], []], // an API token
  [[], 'github', ['list'], []],
  [[], 'github', ['create_repo'], ['write', 'admin']],
  [['write'], 'github', ['create_repo'], ['admin']],
  [['write', 'admin'], 'github', ['create_repo'], []],
  [[], 'files', ['read'], ['write']],
  [[], 'files', [], []],
  [['admin'], 'github', undefined, ['write']], // too many names to tell
])('with the scopes %j a call at %s of %j lacks %j', (scopes, server, tools, missing) => {
  expect(lacks(scopes, server, tools)).toEqual(missing)
})

it('there is nothing to check without rules for tools', () => {
  expect(createScopeCheck(undefined)).toBeUndefined()
  expect(createScopeCheck(new Map([['any', {}]]))).toBeUndefined()
})

it('names what is missing in its message and its data', () => {
  const missing = check?.({ scopes: new Set(['x']) }, 'github', ['create_repo'])
  expect(missing?.message).toBe('Forbidden: insufficient scope, the token lacks "write", "admin"')
  expect(String(missing?.data)).toBe('{"reason":"insufficient_scope","scopes":["write","admin"]}')
  expect(missing?.held).toEqual(new Set(['x']))
})
