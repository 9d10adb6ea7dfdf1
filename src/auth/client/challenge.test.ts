import { describe, expect, test } from 'vitest'
import { readBearerChallenge } from './challenge.ts'

const METADATA = 'https://a.example/.well-known/oauth-protected-resource'

describe('a Bearer challenge', () => {
  test.each([
    [`Bearer resource_metadata="${METADATA}"`, { resourceMetadata: METADATA, scopes: [] }],
    [`bearer  realm="x",scope="a b  a" ,error=invalid_token`, { scopes: ['a', 'b'], error: 'invalid_token' }],
    ['Bearer', { scopes: [] }],
    [`Basic realm="a, Bearer scope=no", Bearer scope="yes"`, { scopes: ['yes'] }],
    [`Negotiate abc==, Bearer scope="yes"`, { scopes: ['yes'] }],
    ['Bearer scope="yes", Basic realm="x", scope="no"', { scopes: ['yes'] }],
    ['Bearer scope="a\\"b"', { scopes: ['a"b'] }],
    ['Bearer scope="first", scope="second"', { scopes: ['first'] }],
    ['Bearer Scope = "a"', { scopes: ['a'] }],
    ['Bearer scope="open', { scopes: [] }],
    ['=;" Bearer scope=a', { scopes: ['a'] }],
  ])('%s', (header, challenge) => {
    expect(readBearerChallenge(header)).toMatchObject(challenge)
  })

  test('may be in any of several headers', () => {
    expect(readBearerChallenge(['Basic realm="x"', 'Bearer scope="a"'])).toMatchObject({ scopes: ['a'] })
  })

  test.each([undefined, '', 'Basic realm="Bearer"', [], 'DPoP algs="ES256"'])('is not in %j', header => {
    expect(readBearerChallenge(header)).toBeUndefined()
  })

  test('is read quickly, however malformed the header is', () => {
    const started = performance.now()
    for (const part of ['"', '\\', 'a=', ', ', 'Bearer ', 'a="\\'])
      readBearerChallenge(`Bearer x=${part.repeat(16_000 / part.length)}`)
    expect(performance.now() - started).toBeLessThan(2000)
  })
})
