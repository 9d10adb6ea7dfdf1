import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, jwtVerify } from 'jose'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type FakeIssuer, sendJson, startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import type { Issuer, ServerOAuth } from '../../config/snapshot.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'

afterEach(() => void vi.useRealTimers())

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

const start = async (oauth: ServerOAuth, options: Parameters<typeof startLoginClient>[1] = {}) => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  return { issuer, server, ...startLoginClient(remoteServer(server.url, oauth), options) }
}

const lastForm = (issuer: FakeIssuer) =>
  Object.fromEntries(issuer.requests.findLast(({ path }) => path === '/token')?.form ?? [])

describe('client credentials', () => {
  const SECRET = { grant: 'client_credentials', clientId: 'gw', clientSecret: 's-1' } as const

  test('with a secret serve every caller with one token', async () => {
    const { issuer, server, call } = await start({ ...SECRET, scopes: ['a'] })
    const outcomes = await Promise.all(['ada', 'ben', undefined].map(principal => call(principal)))
    expect(outcomes).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }])
    expect(issuer.count('/token')).toBe(1)
    expect(lastForm(issuer)).toEqual({ grant_type: 'client_credentials', scope: 'a', resource: server.url })
    expect(issuer.requests.at(-1)?.headers.authorization).toBe(`Basic ${Buffer.from('gw:s-1').toString('base64')}`)
  })

  test('are requested again when the token ends', async () => {
    const { issuer, call } = await start(SECRET)
    await call('ada')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    expect(issuer.count('/token')).toBe(2)
  })

  test('that the configuration has replaced get another token when the former one ends', async () => {
    const store = new MemoryCluster().join()
    const { issuer, server, call } = await start(SECRET, { store })
    await call('ada')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
    const replaced = startLoginClient(remoteServer(server.url, { ...SECRET, clientId: 'other' }), { store })
    expect(await replaced.call('ada')).toMatchObject({ status: 200 })
    expect(issuer.count('/token')).toBe(2)
    expect(issuer.requests.at(-1)?.headers.authorization).toBe(`Basic ${Buffer.from('other:s-1').toString('base64')}`)
  })

  test('that are refused are not sent again and again', async () => {
    const { issuer, call } = await start(SECRET)
    issuer.answers.set('/token', (_, response) => sendJson(response, { error: 'unauthorized_client' }, 400))
    const refused = {
      kind: 'failed',
      reason: 'login_impossible',
      text: `cannot be called: ${issuer.origin} refused to issue a token (unauthorized_client); check its "oauth".`,
    }
    expect([await call('ada'), await call('ben')]).toEqual([refused, refused])
    expect(issuer.count('/token')).toBe(1)
    issuer.answers.clear()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 })
    expect(await call('ada')).toMatchObject({ status: 200 })
  })

  test('that are refused when the token ends are not sent for each call', async () => {
    const { issuer, call } = await start(SECRET)
    await call('ada')
    issuer.answers.set('/token', (_, response) => sendJson(response, { error: 'invalid_client' }, 401))
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
    for (let i = 0; i < 3; i++)
      expect(await call('ada')).toMatchObject({ kind: 'failed', text: expect.stringContaining('(invalid_client)') })
    expect(issuer.count('/token')).toBe(2)
  })

  test('whose token the server refuses at once do not loop', async () => {
    const { issuer, server, call } = await start(SECRET)
    server.answers.set('/mcp', (_, response) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end())
    expect(await call('ada')).toEqual({
      kind: 'failed',
      reason: 'login_impossible',
      text: `refuses a token that ${issuer.origin} has just issued: check its "oauth", and that both belong together.`,
    })
    expect(issuer.count('/token')).toBe(2) // the first may have been revoked since
    expect(await call('ada')).toMatchObject({ kind: 'failed' })
    expect(issuer.count('/token')).toBe(2)
  })

  test('whose token was revoked just after it was issued get another', async () => {
    const { issuer, call } = await start(SECRET)
    expect(await call('ada')).toMatchObject({ status: 200 })
    issuer.accessTokens.clear()
    expect(await call('ada')).toMatchObject({ status: 200 })
    expect(issuer.count('/token')).toBe(2)
  })

  test.each(['ec', 'rsa', 'ed25519'] as const)('with a key of the kind %s are signed', async kind => {
    const { privateKey, publicKey } =
      kind === 'ec'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : kind === 'rsa'
          ? generateKeyPairSync('rsa', { modulusLength: 2048 })
          : generateKeyPairSync('ed25519')
    const jwk = { ...(await exportJWK(privateKey)), kid: 'key-1' }
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    for (const text of [pem, JSON.stringify(jwk)]) {
      const { issuer, call } = await start({ grant: 'client_credentials', clientId: 'gw', privateKey: text })
      expect(await call('ada')).toMatchObject({ status: 200 })
      const { client_assertion: assertion = '', client_assertion_type: type, client_id: id } = lastForm(issuer)
      expect([type, id]).toEqual(['urn:ietf:params:oauth:client-assertion-type:jwt-bearer', 'gw'])
      const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, { audience: issuer.issuer() })
      expect(payload).toMatchObject({ iss: 'gw', sub: 'gw', jti: expect.any(String) })
      expect(protectedHeader.kid).toBe(text === pem ? undefined : 'key-1')
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60)
    }
  })

  test('are signed for the time of an authorization server whose clock differs', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const { issuer, call } = await start({
      grant: 'client_credentials',
      clientId: 'gw',
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    })
    const theirs = new Date(Date.now() - 300_000)
    issuer.answers.set('/token', (request, response) => {
      const assertion = request.form.get('client_assertion') ?? ''
      response.setHeader('date', theirs.toUTCString())
      jwtVerify(assertion, publicKey, { currentDate: theirs, clockTolerance: 5, maxTokenAge: 60 }).then(
        () => issuer.routes['/token']?.(request, response),
        () => sendJson(response, { error: 'invalid_client' }, 401),
      )
    })
    expect(await call('ada')).toMatchObject({ status: 200 })
    expect(issuer.count('/token')).toBe(2)
  })

  test('with an unusable key say so', async () => {
    const { call, issuer } = await start({ grant: 'client_credentials', clientId: 'gw', privateKey: '{"kty":"oct"}' })
    expect(await call('ada')).toMatchObject({ kind: 'failed', text: expect.stringContaining('unusable_key') })
    expect(issuer.count('/token')).toBe(0)
  })
})

describe('a JWT bearer grant', () => {
  test('sends the assertion of the configuration', async () => {
    const { issuer, server, call } = await start({ grant: 'jwt_bearer', assertion: 'a.b.c', clientId: 'gw' })
    expect(await call('ada')).toMatchObject({ status: 200 })
    expect(lastForm(issuer)).toEqual({
      grant_type: JWT_BEARER,
      assertion: 'a.b.c',
      resource: server.url,
      client_id: 'gw',
    })
  })

  test('reads the assertion from its file each time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-assertion-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const assertionFile = join(folder, 'token')
    const { issuer, call } = await start({ grant: 'jwt_bearer', assertionFile })
    expect(await call('ada')).toEqual({
      kind: 'failed',
      reason: 'login_unavailable',
      text: 'cannot be called: its "assertionFile" cannot be read (ENOENT).',
    })
    for (const text of ['first', 'second']) {
      await writeFile(assertionFile, `${text}\n`)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_700_000 })
      expect(await call('ada')).toMatchObject({ status: 200 })
      expect(lastForm(issuer).assertion).toBe(text)
    }
  })

  test('that is refused is final', async () => {
    const { issuer, call } = await start({ grant: 'jwt_bearer', assertion: 'a.b.c' })
    issuer.answers.set('/token', (_, response) => sendJson(response, { error: 'invalid_grant' }, 400))
    expect(await call('ada')).toMatchObject({ kind: 'failed', text: expect.stringContaining('(invalid_grant)') })
    await call('ada')
    expect(issuer.count('/token')).toBe(1)
  })
})

describe('an identity assertion', () => {
  const OAUTH = { grant: 'id_jag', idp: 'corp', clientId: 'gw', clientSecret: 'r' } as const

  const startWithIdp = async () => {
    const idp = await startFakeIssuer()
    const corp: Issuer = {
      name: 'corp',
      url: idp.issuer(),
      grants: [{ where: {}, workspaces: ['*'] }],
      clientId: 'dragoman',
      clientSecret: 'c',
    }
    const idTokens = new Map<string, string>()
    idp.answers.set('/token', ({ form }, response) =>
      sendJson(response, {
        access_token: `jag for ${form.get('subject_token')}`.replaceAll(' ', '-'),
        issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
        token_type: 'N_A',
        expires_in: 300,
      }),
    )
    const options = {
      store: new MemoryCluster().join(),
      issuers: () => new Map([['corp', corp]]),
      findIdToken: async (principal: string) => idTokens.get(principal),
    }
    const started = await start(OAUTH, options)
    const another = () => startLoginClient(remoteServer(started.server.url, OAUTH), options)
    return { idp, idTokens, another, ...started }
  }

  test('of a signed-in caller is exchanged and redeemed, for each caller', async () => {
    const { idp, idTokens, issuer, server, call } = await startWithIdp()
    idTokens.set('ada', 'id-of-ada').set('ben', 'id-of-ben')
    expect(await call('ada')).toMatchObject({ status: 200 })
    expect(lastForm(idp)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
      subject_token: 'id-of-ada',
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      audience: issuer.issuer(),
      resource: server.url,
    })
    expect(lastForm(issuer)).toMatchObject({ grant_type: JWT_BEARER, assertion: 'jag-for-id-of-ada' })
    expect(await call('ben')).toMatchObject({ status: 200 })
    expect(lastForm(issuer).assertion).toBe('jag-for-id-of-ben')
    const sent = server.requests.map(({ headers }) => headers.authorization).filter(header => header)
    expect(new Set(sent).size).toBe(2)
  })

  test('of a caller who has not signed in needs a sign-in only', async () => {
    const { idTokens, call, browse } = await startWithIdp()
    const asked = await call('ada')
    if (asked.kind !== 'login') throw new Error(asked.kind)
    expect(await browse(asked.link.id, { principal: undefined })).toEqual({ kind: 'sign_in', issuer: 'corp' })
    expect(await browse(asked.link.id, { principal: 'ada' })).toEqual({ kind: 'sign_in', issuer: 'corp' })
    expect(await browse(asked.link.id, { principal: 'ben' })).toMatchObject({ kind: 'refused', status: 403 })
    idTokens.set('ada', 'id-of-ada')
    expect(await browse(asked.link.id, { principal: 'ada' })).toMatchObject({ kind: 'done' })
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
  })

  test('after a sign-in is redeemed where the challenge of the server leads, at any replica', async () => {
    const { idTokens, issuer, server, call, browse, another } = await startWithIdp()
    server.state.metadataPath = '/metadata-of-mine' // only the challenge names it
    for (const [principal, open] of [
      ['ada', browse],
      ['ben', another().browse],
    ] as const) {
      const asked = await call(principal)
      if (asked.kind !== 'login') throw new Error(asked.kind)
      idTokens.set(principal, `id-of-${principal}`)
      expect(await open(asked.link.id, { principal })).toMatchObject({ kind: 'done' })
      expect(lastForm(issuer)).toMatchObject({ assertion: `jag-for-id-of-${principal}`, resource: server.url })
      expect(await call(principal)).toMatchObject({ status: 200 })
    }
  })

  test('that is refused is final', async () => {
    const { idp, idTokens, call } = await startWithIdp()
    idTokens.set('ada', 'id-of-ada')
    idp.answers.set('/token', (_, response) => sendJson(response, { error: 'access_denied' }, 400))
    expect(await call('ada')).toMatchObject({ kind: 'failed', text: expect.stringContaining('(access_denied)') })
    await call('ada')
    expect(idp.count('/token')).toBe(1)
  })

  test('is made again when its token ends, and needs a sign-in if that has ended', async () => {
    const { idTokens, issuer, call } = await startWithIdp()
    idTokens.set('ada', 'first')
    await call('ada')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
    idTokens.set('ada', 'second')
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    expect(lastForm(issuer).assertion).toBe('jag-for-second')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
    idTokens.clear()
    expect(await call('ada')).toMatchObject({ kind: 'login' })
  })

  test('needs a caller with a name', async () => {
    const { call } = await startWithIdp()
    expect(await call(undefined)).toMatchObject({ kind: 'failed', reason: 'no_credentials' })
  })
})

test('a login of a server that needs none says so', async () => {
  const { logins } = await start({ grant: 'client_credentials', clientId: 'gw', clientSecret: 's' })
  expect(await logins.begin('github', 'ada')).toMatchObject({
    text: 'needs no login: the gateway gets its tokens by itself.',
  })
  expect(await logins.begin('unknown', 'ada')).toMatchObject({
    kind: 'failed',
    text: expect.stringContaining('uses no OAuth'),
  })
  expect(await logins.status('unknown', 'ada')).toEqual({ kind: 'unneeded' })
})
