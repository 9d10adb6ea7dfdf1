import { describe, expect, test } from 'vitest'
import { FetchFailed, type FetchResponse, type GuardedFetch } from '../fetch/guarded-fetch.ts'
import { LoginSteps } from './login-steps.ts'

const FROM = 'https://far.example/mcp'
const SECRET = 's3cret-value'

const answering = (status: number, document: unknown, headers: FetchResponse['headers'] = {}): GuardedFetch => {
  const body = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document))
  return async () => ({ status, headers, body })
}
const form = (params: Record<string, string>) => ({
  method: 'POST' as const,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(params).toString(),
  from: FROM,
})

test('a token request is kept without any of its secrets, also those of unknown members', async () => {
  const steps = new LoginSteps()
  const answer = { access_token: SECRET, refresh_token: SECRET, id_token: SECRET, novel: SECRET, expires_in: 60 }
  await steps.watch(answering(200, answer))(
    'https://auth.example/token?x=s3cret-value',
    form({ grant_type: 'authorization_code', code: SECRET, code_verifier: SECRET, client_assertion: SECRET }),
  )
  const [step] = steps.of(FROM)
  expect(step).toMatchObject({ kind: 'token', method: 'POST', url: 'https://auth.example/token', status: 200 })
  expect(JSON.parse(step?.answer ?? '')).toMatchObject({ access_token: '[redacted]', expires_in: 60 })
  expect(step?.sent).toContainEqual({ name: 'grant_type', value: 'authorization_code' })
  expect(JSON.stringify(step)).not.toContain(SECRET)
})

describe('an authorization server that repeats what it was sent, in members that are shown', () => {
  const client = 'a secret/with+signs"é'
  const encoded = new URLSearchParams({ client }).toString().replace('client=', '')
  const basic = Buffer.from(`gw:${encodeURIComponent(client)}`).toString('base64')
  const token = 'a-refresh-token'
  const repeats = [client, token, encoded, encodeURIComponent(client), basic, JSON.stringify(client).slice(1, -1)]

  /** The step of one refresh, whose answer repeats `text`. */
  const stepWith = async (sent: ReturnType<typeof form>, answer: object, challenge = ''): Promise<string> => {
    const steps = new LoginSteps()
    await steps.watch(answering(400, answer, { 'www-authenticate': challenge }))('https://auth.example/token', sent)
    const [step] = steps.of(FROM)
    return [step?.answer, step?.challenge].join()
  }

  test.each(repeats)('%s', async text => {
    const params = { grant_type: 'refresh_token', refresh_token: token, client_secret: client }
    const said = {
      error: text,
      error_description: `no: ${text}`,
      error_uri: `https://auth.example/?${text}`,
      scope: text,
    }
    const asPost = await stepWith(form(params), said, `Bearer error_description="${text}"`)
    const inHeader = { ...form(params), headers: { ...form({}).headers, authorization: `Basic ${basic}` } }
    const asBasic = await stepWith(inHeader, said)
    for (const kept of text === basic ? [asBasic] : [asPost, asBasic]) {
      expect(kept).toContain('no: [redacted]')
      expect(kept).not.toContain(text)
    }
  })

  test('its own tokens, and the secret of a client that it registers', async () => {
    const granted = await stepWith(form({ grant_type: 'x' }), { access_token: SECRET, scope: `a ${SECRET}` })
    expect(granted).toContain('"scope":"a [redacted]"')
    const steps = new LoginSteps()
    const made = {
      client_id: 'c1',
      client_secret: SECRET,
      client_name: `${SECRET}!`,
      jwks: { keys: [{ kid: SECRET }] },
    }
    await steps.watch(answering(201, made))('https://auth.example/register', {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}', from: FROM },
    })
    expect(steps.of(FROM)[0]?.answer).toContain('"client_name":"[redacted]!"')
    expect(JSON.stringify(steps.of(FROM))).not.toContain(SECRET)
  })

  test('a code and a state, in the address that a browser comes back to', () => {
    const steps = new LoginSteps()
    const said = new URLSearchParams({ state: SECRET, error: 'no', error_description: `no ${SECRET}` })
    steps.redirected(FROM, 'callback', `http://127.0.0.1/oauth/callback?${said}`)
    expect(steps.of(FROM)[0]?.sent).toContainEqual({ name: 'error_description', value: 'no [redacted]' })
  })
})

test('a registration is kept without the secret of the client', async () => {
  const steps = new LoginSteps()
  const made = { client_id: 'c1', client_secret: SECRET, registration_access_token: SECRET }
  await steps.watch(answering(201, made))('https://auth.example/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"client_name":"Dragoman"}',
    from: FROM,
  })
  expect(steps.of(FROM)).toMatchObject([{ kind: 'registration', status: 201, request: '{"client_name":"Dragoman"}' }])
  expect(steps.of(FROM)[0]?.answer).toContain('"client_id":"c1"')
  expect(JSON.stringify(steps.of(FROM))).not.toContain(SECRET)
})

test('browsers that go and come back are steps without state and code', () => {
  const steps = new LoginSteps()
  steps.redirected(FROM, 'authorization', `https://auth.example/authorize?client_id=c1&state=${SECRET}`)
  steps.redirected(FROM, 'callback', `http://127.0.0.1/oauth/callback?code=${SECRET}&state=${SECRET}&error=no`)
  expect(steps.of(FROM).map(({ kind, sent }) => [kind, sent?.[0]])).toEqual([
    ['authorization', { name: 'client_id', value: 'c1' }],
    ['callback', { name: 'code', value: '[redacted]' }],
  ])
  expect(JSON.stringify(steps.of(FROM))).not.toContain(SECRET)
})

test('the challenge of a server, pages that are no JSON, and servers that do not answer', async () => {
  const steps = new LoginSteps()
  const ping = { method: 'POST' as const, headers: { 'content-type': 'application/json' }, from: FROM }
  await steps.watch(answering(401, '', { 'www-authenticate': 'Bearer x="y"' }))(FROM, {
    ...ping,
    body: '{"jsonrpc":"2.0"}',
  })
  await steps.watch(answering(404, '<html>no</html>'))('https://far.example/.well-known/x', { from: FROM })
  const failing: GuardedFetch = async () => {
    throw new FetchFailed('unreachable', 'it did not answer')
  }
  await expect(steps.watch(failing)('https://auth.example/', { from: FROM })).rejects.toThrow('it did not answer')
  expect(steps.of(FROM)).toMatchObject([
    { kind: 'challenge', status: 401, challenge: 'Bearer x="y"' },
    { kind: 'discovery', status: 404 },
    { kind: 'discovery', error: 'it did not answer' },
  ])
  expect(JSON.stringify(steps.of(FROM))).not.toContain('<html>')
})

test('the latest steps of the latest servers are kept, and none without a server', async () => {
  const steps = new LoginSteps()
  const fetch = steps.watch(answering(200, { text: 'x'.repeat(100_000) }))
  for (let at = 0; at < 60; at++) for (let n = 0; n < 30; n++) await fetch('https://a.example/', { from: `f${at}` })
  await fetch('https://a.example/')
  expect(steps.of('f59')).toHaveLength(24)
  expect(steps.of('f59')[0]?.answer?.length).toBeLessThanOrEqual(8192)
  expect(steps.of('f0')).toEqual([])
  expect(steps.of(undefined)).toEqual([])
})
