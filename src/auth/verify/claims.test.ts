import { describe, expect, it } from 'vitest'
import type { Issuer } from '../../config/snapshot.ts'
import { audiencesIn, type Claims, readClaims, scopesIn } from './claims.ts'

const issuer = (more: Partial<Issuer> = {}): Issuer => ({
  name: 'corp',
  url: 'https://login.test',
  grants: [{ where: {}, workspaces: ['*'] }],
  ...more,
})

describe('the principal', () => {
  it.each<[string | undefined, Claims, string]>([
    [undefined, { sub: 'ada' }, 'corp:ada'],
    ['email', { sub: 'x', email: 'ada@test', email_verified: true }, 'ada@test'],
    ['oid', { oid: '1-2' }, '1-2'],
    ['id', { id: 42 }, '42'],
    ['user.name', { user: { name: 'ada' } }, 'ada'],
    ['https://corp.test/name', { 'https://corp.test/name': 'ada' }, 'ada'],
  ])('with the claim %s of %j is %s', (principal, claims, name) => {
    expect(readClaims(issuer({ principal }), claims)).toMatchObject({ kind: 'granted', principal: name })
  })

  it.each<[string | undefined, Claims]>([
    [undefined, {}],
    [undefined, { sub: '' }],
    [undefined, { sub: ['ada'] }],
    ['email', { email: 'ada@test' }],
    ['email', { email: 'ada@test', email_verified: 'true' }],
    ['name', { name: 'local' }], // the user of this machine
    ['name', { name: 'a\nb' }],
    ['name', { name: 'x'.repeat(300) }],
    ['toString', {}],
    ['user.constructor', { user: {} }],
  ])('with the claim %s cannot be read from %j', (principal, claims) => {
    expect(readClaims(issuer({ principal }), claims)).toMatchObject({ kind: 'invalid' })
  })

  it('from a claim cannot be that of a caller of another issuer', () => {
    const other = issuer({ name: 'public', principal: 'username', reservedNames: ['corp'] })
    expect(readClaims(other, { username: 'corp:ada' })).toMatchObject({ kind: 'invalid' })
    expect(readClaims(other, { username: 'corporate:ada' })).toMatchObject({ principal: 'corporate:ada' })
    expect(readClaims(issuer({ reservedNames: ['corp'] }), { sub: 'ada' })).toMatchObject({ principal: 'corp:ada' })
  })
})

describe('the grant', () => {
  const grants: Issuer['grants'] = [
    { where: { groups: ['eng', 'ops'], admin: [true] }, workspaces: ['first'] },
    { where: { 'realm_access.roles': ['dev'] }, workspaces: ['second'] },
    { where: { scope: ['read'] }, workspaces: ['third'] },
    { where: { scp: ['write'] }, workspaces: ['fourth'] },
    { where: { 'https://a.b/c': ['x'] }, workspaces: ['fifth'] },
    { where: { level: [3] }, workspaces: ['sixth'] },
    { where: { email: ['ada@test'] }, workspaces: ['seventh'] },
  ]
  it.each<[Claims, string | undefined]>([
    [{ groups: ['ops'], admin: true }, 'first'],
    [{ groups: 'eng', admin: true }, 'first'],
    [{ groups: ['ops'], admin: 'true' }, undefined],
    [{ groups: ['ops'] }, undefined],
    [{ groups: 'eng ops', admin: true }, undefined], // only scopes are lists of words
    [{ realm_access: { roles: ['x', 'dev'] } }, 'second'],
    [{ realm_access: null }, undefined],
    [{ scope: 'a read b' }, 'third'],
    [{ scope: 'readable' }, undefined],
    [{ scp: ['write'] }, 'fourth'],
    [{ 'https://a.b/c': 'x' }, 'fifth'],
    [{ level: 3 }, 'sixth'],
    [{ level: '3' }, undefined],
    [{ email: 'ada@test', email_verified: true }, 'seventh'],
    [{ email: 'ada@test', email_verified: false }, undefined], // many issuers let people write any address
    [{ email: 'ada@test' }, undefined],
  ])('for %j is %s', (claims, workspace) => {
    const reading = readClaims(issuer({ grants }), { sub: 'ada', ...claims })
    expect(reading.kind === 'granted' ? reading.grant.workspaces[0] : undefined).toBe(workspace)
  })
})

it('scopes and audiences are read in all their forms', () => {
  expect([...scopesIn({ scope: ' a  b ', scp: ['c', 7] })]).toEqual(['a', 'b', 'c', '7'])
  expect(scopesIn({}).size).toBe(0)
  expect(audiencesIn({ aud: ['https://a.test/', 'api://x', 7] })).toEqual(['https://a.test', 'api://x'])
  expect(audiencesIn({})).toEqual([])
})
