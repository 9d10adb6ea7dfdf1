import { describe, expect, test } from 'vitest'
import { authorizationUrl } from './authorize.ts'
import {
  coversUrl,
  isSafeForUsers,
  isSameIssuer,
  issuerLocations,
  readIssuerMetadata,
  resourceLocations,
} from './metadata.ts'
import { chooseScopes, repeatedScopes } from './scopes.ts'

const HOST = 'https://a.example'

describe('metadata is looked for', () => {
  test.each([
    [`${HOST}/mcp`, ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource']],
    [`${HOST}/`, ['/.well-known/oauth-protected-resource']],
    [`${HOST}/a/b/`, ['/.well-known/oauth-protected-resource/a/b', '/.well-known/oauth-protected-resource']],
    [`${HOST}/a?b=c`, ['/.well-known/oauth-protected-resource/a?b=c', '/.well-known/oauth-protected-resource']],
  ])('of the server %s by its path, then at the root', (url, paths) => {
    expect(resourceLocations(url)).toEqual(paths.map(path => HOST + path))
  })

  test.each([
    [HOST, ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']],
    [`${HOST}/`, ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration']],
    [
      `${HOST}/realms/x`,
      [
        '/.well-known/oauth-authorization-server/realms/x',
        '/.well-known/openid-configuration/realms/x',
        '/realms/x/.well-known/openid-configuration',
      ],
    ],
  ])('of the issuer %s', (issuer, paths) => {
    expect(issuerLocations(issuer)).toEqual(paths.map(path => HOST + path))
  })
})

test.each([
  [`${HOST}/mcp`, true],
  [HOST, true],
  [`${HOST}/`, true],
  [`${HOST}/mcp/`, true],
  [`${HOST}/mc`, false],
  [`${HOST}/mcp/more`, false],
  ['http://a.example/mcp', false],
  ['https://a.example:8443/mcp', false],
  ['https://a.example.evil.example/mcp', false],
  ['https://evil.example/mcp', false],
  ['no URL', false],
])('the resource %s covers https://a.example/mcp: %s', (resource, expected) => {
  expect(coversUrl(resource, `${HOST}/mcp`)).toBe(expected)
})

test.each([
  [HOST, `${HOST}/`, true],
  [`${HOST}/x`, `${HOST}/x/`, false],
  [HOST, 'https://A.example', false],
  [HOST, 'https://a.example:443', false],
])('the issuers %s and %s are the same: %s', (a, b, expected) => {
  expect(isSameIssuer(a, b)).toBe(expected)
})

test.each([
  [{ issuer: HOST }],
  [{ token_endpoint: `${HOST}/token` }],
  [{ issuer: HOST, token_endpoint: 'javascript:alert(1)' }],
  [{ issuer: 1, token_endpoint: `${HOST}/token` }],
])('%j describes no authorization server', document => {
  expect(readIssuerMetadata(document)).toBeUndefined()
})

test('members of a wrong type are left out', () => {
  const document = {
    issuer: HOST,
    token_endpoint: `${HOST}/t`,
    scopes_supported: 'a',
    authorization_endpoint: 'data:,',
  }
  expect(readIssuerMetadata(document)).toMatchObject({ scopes: undefined, authorizationEndpoint: undefined })
})

test.each([
  ['https://as.example/authorize', 'https://a.example/mcp', true],
  ['http://as.example/authorize', 'https://a.example/mcp', false],
  ['http://127.0.0.1:1/authorize', 'https://a.example/mcp', false],
  ['http://localhost:1/authorize', 'http://127.0.0.1:2/mcp', true],
  ['http://10.0.0.1/authorize', 'http://10.0.0.1/mcp', true],
  ['http://10.0.0.1:81/authorize', 'http://10.0.0.1/mcp', false],
])('users are led to %s by the server %s: %s', (endpoint, from, expected) => {
  expect(isSafeForUsers(endpoint, from)).toBe(expected)
})

describe('scopes', () => {
  const challenge = { scopes: ['asked'] }
  const stepUp = { scopes: ['more'], error: 'insufficient_scope' }
  test.each([
    ['none', {}, []],
    ['those of the challenge', { challenge, supported: ['a', 'b'] }, ['asked']],
    ['else those of the metadata', { challenge: { scopes: [] }, supported: ['a', 'b'] }, ['a', 'b']],
    ['those of the configuration first', { configured: ['c'], challenge, supported: ['a'] }, ['c']],
    ['also none of the configuration', { configured: [], challenge }, []],
    ['a step-up adds to them', { configured: ['c'], challenge: stepUp, requestedBefore: ['c'] }, ['c', 'more']],
    ['with those requested before', { challenge: stepUp, requestedBefore: ['b', 'more'] }, ['b', 'more']],
    ['offline access if it is offered', { challenge, offered: ['offline_access', 'x'] }, ['asked', 'offline_access']],
    ['no offline access otherwise', { challenge, offered: ['x'] }, ['asked']],
  ])('%s', (_, sources, expected) => {
    expect(chooseScopes(sources)).toEqual(expected)
  })

  test.each([
    [stepUp, ['a', 'more'], 'more'],
    [{ scopes: ['a', 'b'], error: 'insufficient_scope' }, ['a', 'b'], 'a b'],
    [{ scopes: [], error: 'insufficient_scope' }, ['a'], 'more scopes'],
    [stepUp, ['a'], undefined],
    [stepUp, undefined, undefined],
    [challenge, ['asked'], undefined],
    [undefined, ['a'], undefined],
  ])('after %j and a request for %j, %j is repeated', (asked, requested, expected) => {
    expect(repeatedScopes(asked, requested)).toBe(expected)
  })
})

test('an authorization URL keeps the query of its endpoint, and asks for consent with offline access', () => {
  const request = { endpoint: `${HOST}/auth?tenant=1`, clientId: 'c', redirectUri: 'http://127.0.0.1:1/cb' }
  const url = new URL(authorizationUrl({ ...request, scopes: ['a', 'offline_access'] }, 's', 'v'))
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    tenant: '1',
    state: 's',
    scope: 'a offline_access',
    prompt: 'consent',
  })
  const plain = new URL(authorizationUrl({ ...request, scopes: [] }, 's', 'v'))
  expect([...plain.searchParams.keys()]).not.toContain('scope')
  expect([...plain.searchParams.keys()]).not.toContain('prompt')
})
