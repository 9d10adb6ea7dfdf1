import { createHmac } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { decodeProtectedHeader, exportSPKI, type JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startIssuer, type TestIssuer } from '../../../test/support/issuer.ts'
import { createTestLog } from '../../../test/support/log.ts'
import type { Issuer } from '../../config/snapshot.ts'
import type { GrantAccess, GrantReader } from '../../protocol/authorization-server.ts'
import { createGuardedFetch, type GuardedFetchOptions } from '../fetch/guarded-fetch.ts'
import type { VerifiedToken } from './verified-token.ts'
import { createVerifier, type TokenVerifier } from './verifier.ts'

const AUDIENCE = 'http://gateway.test'
const CLAIMS = { aud: AUDIENCE, scope: 'mcp mcp:write' }

let issuer: TestIssuer
const closing: (() => unknown)[] = []
beforeEach(async () => {
  issuer = await startIssuer('/realms/corp')
})
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  await issuer.close()
})

let clock = 0 // milliseconds ahead
const now = (): number => Date.now() + clock
beforeEach(() => {
  clock = 0
})

const open = (more: Partial<Issuer> = {}, fetching: GuardedFetchOptions = {}): TokenVerifier => {
  const { fetch, close } = createGuardedFetch(fetching)
  const verifier = createVerifier({
    issuers: new Map([['corp', issuer.config(more)]]),
    fetch,
    log: createTestLog().log,
    now,
  })
  closing.push(() => verifier.close(), close)
  return verifier
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const refused = (reason: string) => ({ kind: 'invalid', reason: expect.stringContaining(reason) })

describe('a JWT', () => {
  it('of the issuer is accepted, with what its claims and the grants say', async () => {
    const verifier = open({ grants: [{ where: { groups: ['dev'] }, workspaces: ['code'], policy: 'reading' }] })
    const token = await issuer.sign({ ...CLAIMS, groups: ['dev', 'ops'] })
    const check = (await verifier.check(token)) as VerifiedToken
    expect(check).toMatchObject({
      principal: 'corp:ada',
      audiences: [AUDIENCE],
      workspaces: ['code'],
      policy: 'reading',
      scopes: new Set(['mcp', 'mcp:write']),
    })
    expect(check.expires).toBeGreaterThan(Date.now() + 300_000)
    expect(issuer.requests).toEqual([
      '/.well-known/oauth-authorization-server/realms/corp',
      expect.stringContaining('/keys'),
    ])
  })

  it.each(['RS256', 'PS256', 'ES384', 'EdDSA'])('may be signed with %s', async alg => {
    await issuer.addKey('two', alg)
    expect(await open().check(await issuer.sign(CLAIMS, { kid: 'two' }))).toMatchObject({ principal: 'corp:ada' })
  })

  it('that names no key is tried with each that fits', async () => {
    await issuer.addKey('two')
    const verifier = open()
    expect(await verifier.check(await issuer.sign(CLAIMS, { kid: null }))).toMatchObject({ principal: 'corp:ada' })
    const [, ...rest] = (await issuer.sign(CLAIMS, { kid: 'two' })).split('.')
    expect(await verifier.check([encode({ alg: 'ES256' }), ...rest].join('.'))).toEqual(refused('signature'))
  })

  it.each<[string, string, JWTPayload, object?]>([
    ['expired', 'has expired', { exp: Math.floor(Date.now() / 1000) - 31 }],
    ['without an end', 'claim "exp"', { exp: undefined as unknown as number }],
    ['not valid yet', 'not valid yet', { nbf: Math.floor(Date.now() / 1000) + 90 }],
    ['of an unknown issuer', 'unknown issuer', { iss: 'https://elsewhere.test' }],
    ['of no issuer', 'unknown issuer', { iss: undefined as unknown as string }],
    ['without a subject', 'no claim "sub"', { sub: undefined as unknown as string }],
    ['that is an ID token (nonce)', 'ID token', { nonce: 'x' }],
    ['that is an ID token (at_hash)', 'ID token', { at_hash: 'x' }],
    ['that is an ID token of Keycloak', 'ID token', { typ: 'ID' }],
    ['bound to a key', 'bound to a key', { cnf: { jkt: 'x' } }],
    ['for a logout', 'no access token', {}, { typ: 'logout+jwt' }],
    ['that is an assertion', 'no access token', {}, { typ: 'oauth-id-jag+jwt' }],
  ])('%s is refused', async (_, reason, claims, header) => {
    expect(await open().check(await issuer.sign({ ...CLAIMS, ...claims }, header))).toMatchObject(refused(reason))
  })

  it('may be off by 30 seconds, because clocks differ', async () => {
    const seconds = Math.floor(Date.now() / 1000)
    const verifier = open()
    for (const claims of [{ exp: seconds - 25 }, { nbf: seconds + 25 }])
      expect(await verifier.check(await issuer.sign({ ...CLAIMS, ...claims }))).toMatchObject({ principal: 'corp:ada' })
  })

  it('without a signature is refused', async () => {
    const [, body] = (await issuer.sign(CLAIMS)).split('.')
    const verifier = open()
    for (const alg of ['none', 'None', 'NONE', ''])
      expect(await verifier.check(`${encode({ alg, kid: 'one' })}.${body}.`)).toEqual(refused('public-key algorithm'))
  })

  it.each(['HS256', 'HS512'])('signed by %s with the public key as the secret is refused', async alg => {
    const [, body] = (await issuer.sign(CLAIMS)).split('.')
    const spki = await exportSPKI(issuer.keys[0]?.pair.publicKey as never)
    const head = `${encode({ alg, kid: 'one' })}.${body}`
    const signature = createHmac(alg.replace('HS', 'sha'), spki).update(head).digest('base64url')
    expect(await open().check(`${head}.${signature}`)).toEqual(refused('public-key algorithm'))
  })

  it('with a changed claim, a foreign key, or a key of its own is refused', async () => {
    const verifier = open()
    const [header, body, signature] = (await issuer.sign(CLAIMS)).split('.')
    const claims = JSON.parse(Buffer.from(String(body), 'base64url').toString()) as object
    expect(await verifier.check(`${header}.${encode({ ...claims, sub: 'eve' })}.${signature}`)).toEqual(
      refused('signature'),
    )
    const other = await startIssuer()
    closing.push(other.close)
    const foreign = await other.sign({ ...CLAIMS, iss: issuer.url }, { kid: 'one' })
    expect(await verifier.check(foreign)).toEqual(refused('signature'))
    const { kid: _, ...rest } = { kid: 'one', alg: 'ES256', jku: `${other.url}/keys`, jwk: { kty: 'EC' } }
    expect(await verifier.check(await other.sign({ ...CLAIMS, iss: issuer.url }, rest))).toEqual(refused('signature'))
    expect(other.requests).toEqual([])
  })

  it('of one issuer is checked with its own keys only, also if the key of another one of the configuration has its name', async () => {
    const other = await startIssuer()
    const { fetch, close } = createGuardedFetch()
    const issuers = new Map([
      ['corp', issuer.config()],
      ['other', { ...other.config(), name: 'other' }],
    ])
    const verifier = createVerifier({ issuers, fetch, log: createTestLog().log, now })
    closing.push(() => verifier.close(), close, other.close)
    expect(await verifier.check(await issuer.sign(CLAIMS))).toMatchObject({ principal: 'corp:ada' })
    expect(await verifier.check(await other.sign(CLAIMS))).toMatchObject({ principal: 'other:ada' })
    for (const [claimed, by] of [
      [issuer, other],
      [other, issuer],
    ] as const) {
      const { kid } = decodeProtectedHeader(await claimed.sign(CLAIMS))
      const forged = await by.sign({ ...CLAIMS, iss: claimed.url })
      expect(decodeProtectedHeader(forged).kid).toBe(kid)
      expect(await verifier.check(forged)).toEqual(refused('signature'))
    }
  })

  it.each(['a.b.c', '..', 'e30.e30.', 'e30.e30.e30', 'W10.W10.W10', `${encode({ alg: 'ES256' })}.bnVsbA.AA`])(
    '%s is no JWT, and no key is fetched for it',
    async text => {
      expect(await open().check(text)).toMatchObject({ kind: 'invalid' })
      expect(issuer.requests).toEqual([])
    },
  )

  it('whose caller no grant fits is forbidden', async () => {
    const verifier = open({ grants: [{ where: { groups: ['dev'] }, workspaces: ['*'] }] })
    expect(await verifier.check(await issuer.sign(CLAIMS))).toEqual({
      kind: 'forbidden',
      reason: 'No grant of the issuer "corp" fits the claims of the token',
    })
  })

  it('is checked once a minute, and by one check for requests at the same time', async () => {
    const verifier = open()
    const token = await issuer.sign(CLAIMS)
    const [first, second] = [verifier.check(token), verifier.check(token)]
    expect(first).toBe(second)
    const check = await first
    expect(verifier.check(token)).toBe(check)
    clock = 61_000
    expect(verifier.check(token)).toBeInstanceOf(Promise)
    clock = 331_000
    expect(await verifier.check(token)).toEqual({ ...refused('has expired'), isExpired: true })
  })
})

describe('the keys of an issuer', () => {
  it('that has a new one are fetched again, at most once in 30 seconds', async () => {
    const verifier = open()
    expect(await verifier.check(await issuer.sign(CLAIMS))).toMatchObject({ principal: 'corp:ada' })
    await issuer.addKey('two')
    const token = await issuer.sign(CLAIMS, { kid: 'two' })
    expect(await verifier.check(token)).toEqual(refused('no key that fits'))
    clock = 30_000
    expect(await verifier.check(token)).toMatchObject({ principal: 'corp:ada' })
    expect(issuer.keyFetches()).toBe(2)
  })

  it('are fetched once for a thousand tokens that name unknown keys', async () => {
    const verifier = open()
    const body = (await issuer.sign(CLAIMS)).split('.').slice(1).join('.')
    await verifier.check(await issuer.sign(CLAIMS))
    clock = 31_000
    const checks = Array.from({ length: 1000 }, (_, at) =>
      verifier.check(`${encode({ alg: 'ES256', kid: `${at}` })}.${body}`),
    )
    for (const check of await Promise.all(checks)) expect(check).toEqual(refused('no key that fits'))
    expect(issuer.keyFetches()).toBe(2)
  })

  it('that it has withdrawn are refused after ten minutes', async () => {
    const verifier = open()
    await issuer.addKey('two')
    const token = await issuer.sign({ ...CLAIMS, exp: Math.floor(Date.now() / 1000) + 7200 }, { kid: 'two' })
    await verifier.check(token)
    issuer.keys.pop()
    clock = 601_000
    expect(await verifier.check(token)).toEqual(refused('no key that fits'))
  })

  it('are kept while it cannot be reached', async () => {
    const verifier = open()
    const token = await issuer.sign({ ...CLAIMS, exp: Math.floor(Date.now() / 1000) + 7200 })
    await verifier.check(token)
    issuer.faults.keys = (_, response) => response.writeHead(503).end()
    clock = 601_000
    expect(await verifier.check(token)).toMatchObject({ principal: 'corp:ada' })
  })

  it('are used at once while it is tried again', async () => {
    const verifier = open()
    const sign = (jti: string) => issuer.sign({ ...CLAIMS, jti, exp: Math.floor(Date.now() / 1000) + 7200 })
    await verifier.check(await sign('1'))
    issuer.faults.metadata = (_, response) => response.writeHead(503).end()
    clock = 601_000
    expect(await verifier.check(await sign('2'))).toMatchObject({ principal: 'corp:ada' })
    issuer.faults.metadata = () => {} // it hangs
    clock = 607_000
    expect(await verifier.check(await sign('3'))).toMatchObject({ principal: 'corp:ada' })
  })

  it('are not used as a secret, even if the issuer publishes one', async () => {
    issuer.faults.keys = (_, response) =>
      response.end(JSON.stringify({ keys: [{ kty: 'oct', kid: 'one', k: 'c2VjcmV0', alg: 'HS256' }] }))
    expect(await open().check(await issuer.sign(CLAIMS))).toEqual(refused('no key that fits'))
  })

  it('are at the configured place, without discovery', async () => {
    const verifier = open({ jwks: `${issuer.url}/keys` })
    expect(await verifier.check(await issuer.sign(CLAIMS))).toMatchObject({ principal: 'corp:ada' })
    expect(issuer.requests).toEqual(['/realms/corp/keys'])
  })

  const html: RequestListener = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
  it.each<[string, 'keys' | 'metadata', RequestListener, string]>([
    ['hangs', 'keys', () => {}, 'did not answer within'],
    ['hangs at its metadata', 'metadata', () => {}, 'did not answer within'],
    ['breaks off', 'keys', (_, response) => response.socket?.destroy(), 'did not answer'],
    ['sends a page', 'keys', html, 'no JSON object'],
    ['sends a page as its metadata', 'metadata', html, 'has no metadata'],
    ['has none', 'metadata', (_, response) => response.writeHead(404).end(), 'has no metadata'],
    ['sends no keys', 'keys', (_, response) => response.end('{"keys":"x"}'), 'sent no keys'],
    [
      'sends 10 MB',
      'keys',
      (_, response) => response.end(`{"keys":[],"x":"${'x'.repeat(10_000_000)}"}`),
      'more than 256',
    ],
    [
      'redirects to a private address',
      'keys',
      (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/keys' }).end(),
      'status 302',
    ],
    [
      'lies about its name',
      'metadata',
      (_, response) => response.end(JSON.stringify({ issuer: 'https://other.test', jwks_uri: 'https://other.test/k' })),
      'is of another issuer than "corp"',
    ],
    [
      'names keys at a private address of another machine',
      'metadata',
      (_, response) =>
        response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: 'http://169.254.169.254/latest/meta-data' })),
      'not encrypted',
    ],
  ])('that %s are missing, and the token is not called wrong', async (_, what, fault, reason) => {
    issuer.faults[what] = fault
    const verifier = open({}, { timeoutMs: reason.includes('within') ? 500 : 10_000 })
    const token = await issuer.sign(CLAIMS)
    expect(await verifier.check(token)).toEqual({ kind: 'unavailable', reason: expect.stringContaining(reason) })
    const asked = issuer.requests.length
    await Promise.all(Array.from({ length: 20 }, () => verifier.check(token)))
    expect(issuer.requests.length).toBe(asked) // it is left alone for a while
    issuer.faults[what] = undefined
    clock = 5_000
    expect(await verifier.check(token)).toMatchObject({ principal: 'corp:ada' })
  })
})

describe('an opaque token', () => {
  const introspection = { clientId: 'rs', clientSecret: 's&cret' }
  const active = { active: true, sub: 'ada', aud: AUDIENCE, scope: 'mcp', exp: Math.floor(Date.now() / 1000) + 300 }

  it('is checked at the issuer, once a minute', async () => {
    issuer.opaque.set('good', active)
    const verifier = open({ introspection })
    const check = await verifier.check('good')
    expect(check).toMatchObject({ principal: 'corp:ada', audiences: [AUDIENCE], scopes: new Set(['mcp']) })
    expect(verifier.check('good')).toBe(check)
    clock = 61_000
    issuer.opaque.delete('good')
    expect(await verifier.check('good')).toEqual(refused('unknown, revoked or has expired'))
    expect(issuer.requests.filter(each => each === 'token good')).toHaveLength(2)
  })

  it('without an end is checked again every hour at the latest', async () => {
    issuer.opaque.set('good', { ...active, exp: undefined })
    expect(((await open({ introspection }).check('good')) as VerifiedToken).expires).toBeLessThanOrEqual(
      now() + 3_600_000,
    )
  })

  it.each<[object, string]>([
    [{ ...active, active: 'true' }, 'unknown, revoked'],
    [{ ...active, iss: 'https://other.test' }, 'another issuer'],
    [{ ...active, token_type: 'refresh_token' }, 'refresh token'],
    [{ ...active, exp: 1 }, 'has expired'],
    [{ ...active, cnf: { jkt: 'x' } }, 'bound to a key'],
    [{ ...active, token_type: 'DPoP' }, 'bound to a key'],
    [{ active: true, aud: AUDIENCE }, 'no claim "sub"'],
  ])('about which the issuer says %j is refused', async (answer, reason) => {
    issuer.opaque.set('bad', answer)
    expect(await open({ introspection }).check('bad')).toMatchObject(refused(reason))
  })

  it('is refused without introspection, and secrets of this gateway are shown to no issuer', async () => {
    expect(await open().check('good')).toEqual(refused('unknown or revoked'))
    const verifier = open({ introspection })
    for (const secret of ['drr_abc', 'drk_abc', 'dro_abc', 'drg_abc', 'with"quotes', 'x'.repeat(20_000)])
      expect(await verifier.check(secret)).toEqual(refused('unknown or revoked'))
    expect(issuer.requests).toEqual([])
  })

  it.each<[string, RequestListener]>([
    ['hangs', () => {}],
    ['does not know the gateway', (_, response) => response.writeHead(401).end()],
    ['sends a page', (_, response) => response.end('<html>')],
  ])('cannot be checked if the issuer %s', async (_, fault) => {
    issuer.faults.introspection = fault
    const verifier = open({ introspection }, { timeoutMs: 200 })
    expect(await verifier.check('good')).toMatchObject({ kind: 'unavailable' })
  })

  it('waits in a bounded queue', async () => {
    issuer.faults.introspection = () => {}
    const verifier = open({ introspection }, { timeoutMs: 300 })
    const checks = await Promise.all(Array.from({ length: 200 }, (_, at) => verifier.check(`t${at}`)))
    expect(
      checks.filter(check => 'reason' in check && check.reason.includes('Too many tokens')).length,
    ).toBeGreaterThan(50)
  })
})

describe('a token of the embedded server', () => {
  const SECRET = `dro_${'x'.repeat(64)}`
  const access: GrantAccess = {
    id: 'g1',
    client: 'app',
    principal: 'ada',
    workspaces: ['code'],
    policy: 'reading',
    scopes: ['mcp'],
    expires: Date.now() + 60_000,
    tokenId: 't1',
  }
  const openWith = (findGrant: GrantReader['findGrant']) => {
    let end: (grant: string) => void = () => {}
    const verifier = open()
    verifier.acceptGrants({
      findGrant,
      onGrantEnded: listener => {
        end = listener
        return () => {}
      },
    })
    return { verifier, end: (grant: string) => end(grant) }
  }

  it('is found, kept, and forgotten when its grant ends', async () => {
    let found: GrantAccess | undefined = access
    const { verifier, end } = openWith(async () => found)
    const ended: string[] = []
    verifier.onGrantEnded(grant => ended.push(grant))
    const check = await verifier.check(SECRET)
    expect(check).toEqual({
      principal: 'ada',
      workspaces: ['code'],
      policy: 'reading',
      scopes: new Set(['mcp']),
      expires: access.expires,
      grant: { id: 'g1', tokenId: 't1' },
    })
    expect(verifier.check(SECRET)).toBe(check)
    found = undefined
    end('g1')
    expect(ended).toEqual(['g1'])
    expect(await verifier.check(SECRET)).toEqual({ ...refused('unknown, revoked or has expired'), isExpired: true })
  })

  it('whose grant ends while it is being checked is refused', async () => {
    const answers = [access, undefined] // read before the end, and after it
    const { verifier, end } = openWith(async () => answers.shift())
    const checking = verifier.check(SECRET)
    end('g1')
    expect(await checking).toMatchObject(refused('unknown, revoked or has expired'))
    expect(answers).toEqual([])
  })

  it('cannot be checked while the store is away', async () => {
    const { verifier } = openWith(() => Promise.reject(new Error('away')))
    expect(await verifier.check(SECRET)).toMatchObject({ kind: 'unavailable' })
  })

  it('is refused if there is no embedded server, and of another form', async () => {
    expect(await open().check(SECRET)).toEqual(refused('unknown or revoked'))
    const { verifier } = openWith(async () => access)
    expect(await verifier.check('dro_short')).toEqual(refused('unknown or revoked'))
  })
})
