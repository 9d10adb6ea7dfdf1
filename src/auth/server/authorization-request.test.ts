import { describe, expect, it, test } from 'vitest'
import { readAuthorizationRequest, readResourceTarget } from './authorization-request.ts'
import type { OAuthClient } from './client-metadata.ts'

const CONTEXT = {
  origin: 'https://mcp.example.com',
  scopes: new Map([
    ['mcp', {}],
    ['mcp:write', { tools: ['*/create_*'] }],
  ]),
  workspaceAt: (path: string) => /^\/mcp(?:\/(\w+))?$/.exec(path)?.[1] ?? (path === '/mcp' ? 'default' : undefined),
}
const CLIENT: OAuthClient = {
  id: 'client-1',
  source: 'registered',
  name: 'App',
  redirectUris: ['https://app.example/cb', 'http://127.0.0.1/cb'],
}
const VALID = {
  response_type: 'code',
  client_id: 'client-1',
  redirect_uri: 'https://app.example/cb',
  code_challenge: 'c'.repeat(43),
  code_challenge_method: 'S256',
  state: 's',
}
const read = (change: Readonly<Record<string, string | undefined>> = {}, more = '') => {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...VALID, ...change })) if (value !== undefined) params.set(name, value)
  return readAuthorizationRequest(new URLSearchParams(`${params}${more}`), CLIENT, CONTEXT)
}

it('a valid request has everything', () => {
  expect(
    read({ resource: 'https://mcp.example.com/mcp/one', scope: 'mcp:write offline_access', prompt: 'consent' }),
  ).toEqual({
    kind: 'valid',
    request: {
      client: CLIENT,
      redirectUri: 'https://app.example/cb',
      state: 's',
      challenge: 'c'.repeat(43),
      scopes: ['mcp', 'mcp:write'],
      workspace: 'one',
      prompts: ['consent'],
    },
  })
})

it('a request without scopes and resource gets the scopes that any access needs, for every workspace', () => {
  expect(read()).toMatchObject({ kind: 'valid', request: { scopes: ['mcp'], workspace: undefined } })
})

describe('nothing is sent to a redirect URI that is not proven', () => {
  test.each([
    ['another one', { redirect_uri: 'https://evil.example/cb' }, ''],
    ['none, while the client has two', { redirect_uri: undefined }, ''],
    ['two', {}, '&redirect_uri=https%3A%2F%2Fevil.example'],
    ['two clients', {}, '&client_id=other'],
    ['two states', {}, '&state=t'],
  ])('%s', (_what, change, more) => {
    expect(read(change, more)).toMatchObject({ kind: 'shown' })
  })
})

describe('the client is told', () => {
  test.each([
    ['no response type', { response_type: undefined }, 'invalid_request'],
    ['another response type', { response_type: 'token' }, 'unsupported_response_type'],
    ['another response mode', { response_mode: 'fragment' }, 'invalid_request'],
    ['no PKCE', { code_challenge: undefined }, 'invalid_request'],
    ['plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['no PKCE method', { code_challenge_method: undefined }, 'invalid_request'],
    ['a short challenge', { code_challenge: 'c' }, 'invalid_request'],
    ['a challenge of other characters', { code_challenge: `${'c'.repeat(42)}+` }, 'invalid_request'],
    ['a request object', { request: 'e30.e30.' }, 'request_not_supported'],
    ['a request URI', { request_uri: 'https://evil.example' }, 'request_uri_not_supported'],
    ['a foreign resource', { resource: 'https://other.example/mcp' }, 'invalid_target'],
    ['an invalid scope', { scope: 'a"b' }, 'invalid_scope'],
    ['a state of 2,000 characters', { state: 's'.repeat(2000) }, 'invalid_request'],
  ])('%s', (_what, change, code) => {
    expect(read(change)).toMatchObject({ kind: 'answered', code, redirectUri: 'https://app.example/cb' })
  })

  it('a repeated parameter', () => {
    expect(read({}, '&scope=a&scope=b')).toMatchObject({ kind: 'answered', code: 'invalid_request' })
  })
})

describe('a resource', () => {
  const target = (...resources: string[]) => readResourceTarget(resources, CONTEXT)

  it('names a workspace, or all of them', () => {
    expect(target()).toEqual({ workspace: undefined })
    expect(target('https://mcp.example.com')).toEqual({ workspace: undefined })
    expect(target('https://mcp.example.com/')).toEqual({ workspace: undefined })
    expect(target('https://mcp.example.com/mcp')).toEqual({ workspace: 'default' })
    expect(target('https://mcp.example.com/mcp/one', 'https://mcp.example.com/mcp/one')).toEqual({ workspace: 'one' })
  })

  test.each([
    ['https://other.example/mcp'],
    ['http://mcp.example.com/mcp'],
    ['https://mcp.example.com:444/mcp'],
    ['https://mcp.example.com/other'],
    ['https://mcp.example.com/mcp#x'],
    ['mcp'],
    [''],
    ['https://mcp.example.com/mcp/one', 'https://mcp.example.com/mcp/two'],
  ])('is not %s', (...resources) => {
    expect(target(...resources)).toBeUndefined()
  })

  it('may call the loopback address by another name', () => {
    const local = { ...CONTEXT, origin: 'http://127.0.0.1:8765' }
    expect(readResourceTarget(['http://localhost:8765/mcp'], local)).toEqual({ workspace: 'default' })
    expect(readResourceTarget(['http://localhost:8766/mcp'], local)).toBeUndefined()
  })
})
