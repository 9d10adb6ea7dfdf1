import { mkdtemp, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestLog, type TestLog } from '../../test/support/log.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { createInboundAuth, type InboundAuth, type InboundAuthOptions } from './inbound-auth.ts'
import { createSecret, hashSecret, type Token } from './token.ts'
import { changeTokens, tokenFilePath } from './token-file.ts'

let data: string
let log: TestLog
const opened: InboundAuth[] = []
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-inbound-'))
  log = createTestLog()
})
afterEach(async () => {
  vi.useRealTimers()
  for (const inbound of opened.splice(0)) await inbound.close()
  await rm(data, { recursive: true })
})

const open = async (options: Partial<InboundAuthOptions> = {}): Promise<InboundAuth> => {
  const { shared: documents } = new MemoryCluster().join()
  const about = { host: '127.0.0.1', isLoopback: true, data, documents, log: log.log }
  const inbound = await createInboundAuth({ ...about, ...options })
  opened.push(inbound)
  return inbound
}

const create = async (more: Partial<Token> = {}): Promise<string> => {
  const secret = createSecret()
  const token = { id: 'one', name: 'test', principal: 'ada', workspaces: ['*'], created: new Date().toISOString() }
  await changeTokens(tokenFilePath(data), tokens => [...tokens, { ...token, hash: hashSecret(secret), ...more }])
  return secret
}

const request = (authorization?: string, version?: string) => ({
  headers: { ...(authorization && { authorization }), ...(version && { 'mcp-protocol-version': version }) },
  socket: new Socket(),
})
const EXPOSED = { host: '0.0.0.0', isLoopback: false }

describe('without any token', () => {
  it('a caller on loopback has the local principal', async () => {
    expect((await open()).admit(request(), 'default')).toEqual({ kind: 'in', principal: 'local' })
  })

  it('with --insecure every caller is anonymous', async () => {
    for (const more of [{}, EXPOSED])
      expect((await open({ insecure: true, ...more })).admit(request(), 'default')).toEqual({
        kind: 'in',
        principal: undefined,
      })
  })

  it('listening on a network is rejected with a message that says what to do', async () => {
    await expect(open(EXPOSED)).rejects.toThrow(
      'refusing to listen on 0.0.0.0, where everybody who reaches it could use every server; ' +
        'create a token first (dragoman token create NAME), or listen on 127.0.0.1, or let everybody in with --insecure',
    )
    await expect(open({ ...EXPOSED, required: false })).rejects.toThrow('refusing to listen')
  })

  it('every caller is rejected if a token is required', async () => {
    const { admit } = await open({ ...EXPOSED, required: true })
    expect(admit(request(), 'default')).toMatchObject({ kind: 'out', status: 401 })
  })

  it('--insecure and auth.required together are rejected', async () => {
    await expect(open({ insecure: true, required: true })).rejects.toThrow('--insecure contradicts auth.required')
  })
})

describe('with a token', () => {
  it('a caller has the principal of the token, also beyond loopback', async () => {
    const secret = await create()
    for (const more of [{}, EXPOSED, { required: true }]) {
      const { admit } = await open(more)
      for (const scheme of ['Bearer', 'bearer', 'BEARER '])
        expect(admit(request(`${scheme} ${secret}`), 'default')).toEqual({ kind: 'in', principal: 'ada', token: 'one' })
    }
  })

  it.each<[string, (secret: string) => string | undefined]>([
    ['nothing', () => undefined],
    ['another scheme', secret => `Basic ${secret}`],
    ['no scheme', secret => secret],
    ['two tokens', secret => `Bearer ${secret} ${secret}`],
    ['an empty token', () => 'Bearer '],
  ])('%s is no token: 401 with a bare challenge', async (_name, header) => {
    const secret = await create()
    const { admit } = await open()
    expect(admit(request(header(secret)), 'default')).toMatchObject({
      status: 401,
      error: { code: -32001 },
      headers: { 'www-authenticate': 'Bearer realm="dragoman"' },
    })
  })

  it('an unknown token is 401 invalid_token, and is logged without its secret', async () => {
    await create()
    const { admit } = await open()
    const wrong = createSecret()
    expect(admit(request(`Bearer ${wrong}`), 'default')).toMatchObject({
      status: 401,
      error: { code: -32001, message: 'Unauthorized: The token is unknown or revoked' },
      headers: {
        'www-authenticate':
          'Bearer realm="dragoman", error="invalid_token", error_description="The token is unknown or revoked"',
      },
    })
    expect(log.lines.at(-1)).toMatchObject({
      level: 'warn',
      fields: { security: true, reason: 'Unauthorized: The token is unknown or revoked' },
    })
    expect(JSON.stringify(log.lines)).not.toContain(wrong)
  })

  it('an expired token is 401 from the moment it expires', async () => {
    const secret = await create({ expires: new Date(Date.now() + 60_000).toISOString() })
    const { admit } = await open()
    expect(admit(request(`Bearer ${secret}`), 'default')).toMatchObject({ kind: 'in' })
    vi.useFakeTimers({ now: Date.now() + 60_001, toFake: ['Date'] })
    expect(admit(request(`Bearer ${secret}`), 'default')).toMatchObject({
      status: 401,
      error: { message: 'Unauthorized: The token has expired' },
      headers: { 'www-authenticate': expect.stringContaining('error="invalid_token"') },
    })
  })

  it('a request like the one before it on its connection is admitted in the same way', async () => {
    const secret = await create({ workspaces: ['mine'], expires: new Date(Date.now() + 3_000).toISOString() })
    const { admit } = await open()
    const before = request(`Bearer ${secret}`)
    const next = (authorization: string) => ({ headers: { authorization }, socket: before.socket })
    expect(admit(before, 'mine')).toMatchObject({ kind: 'in' })
    expect(admit(next(`Bearer ${secret}`), 'mine')).toEqual(admit(before, 'mine'))
    expect(admit(next(`Bearer ${secret}`), 'other')).toMatchObject({ status: 403 })
    for (const other of [`Bearer ${secret.slice(0, -1)}`, `Bearer ${secret}x`, `Bearer x${secret.slice(1)}`])
      expect(admit(next(other), 'mine')).toMatchObject({ status: 401 })
    expect(admit(next(`Bearer ${secret}`), 'mine')).toMatchObject({ kind: 'in' })
    vi.useFakeTimers({ now: Date.now() + 3_001, toFake: ['Date'] })
    expect(admit(next(`Bearer ${secret}`), 'mine')).toMatchObject({ status: 401 })
  })

  it('that request is rejected once the token is revoked', async () => {
    const secret = await create()
    const { admit, storedTokens } = await open()
    const repeated = request(`Bearer ${secret}`)
    for (let at = 0; at < 2; at++) expect(admit(repeated, 'default')).toMatchObject({ kind: 'in' })
    await changeTokens(tokenFilePath(data), () => [])
    await storedTokens?.reload()
    expect(admit(repeated, 'default')).toMatchObject({ status: 401 })
  })

  it('a token of the console is rejected on its connection once the user has signed out', async () => {
    await create({ id: 'owner' })
    const { admit, consoleSessions } = await open()
    const session = consoleSessions.open('owner')
    if (!session) throw new Error('the token was not read')
    const repeated = request(`Bearer ${consoleSessions.createMcpToken(session)}`)
    for (let at = 0; at < 2; at++) expect(admit(repeated, 'default')).toMatchObject({ kind: 'in' })
    await consoleSessions.end(session)
    expect(admit(repeated, 'default')).toMatchObject({ status: 401 })
  })

  it('a token of another workspace is 403 insufficient_scope', async () => {
    const secret = await create({ workspaces: ['mine'] })
    const { admit } = await open()
    expect(admit(request(`Bearer ${secret}`), 'mine')).toMatchObject({ kind: 'in' })
    expect(admit(request(`Bearer ${secret}`), 'other')).toMatchObject({
      status: 403,
      error: { code: -32001, message: expect.stringContaining('insufficient scope') },
      headers: { 'www-authenticate': 'Bearer realm="dragoman", error="insufficient_scope", scope="other"' },
    })
    expect(admit(request(`Bearer ${secret}`), 'a"\r\nx: y')).toMatchObject({
      headers: { 'www-authenticate': expect.stringMatching(/scope="a%22%0D%0Ax%3A%20y"$/) },
    })
  })

  it('modern callers get a code that their revision allows', async () => {
    const secret = await create({ workspaces: ['mine'] })
    const { admit } = await open()
    for (const [version, code] of [
      ['2025-11-25', -32001],
      ['2026-07-28', -32603],
      ['2027-01-01', -32603],
      ['nonsense', -32603],
    ] as const) {
      expect(admit(request(undefined, version), 'mine')).toMatchObject({ status: 401, error: { code } })
      expect(admit(request(`Bearer ${secret}`, version), 'other')).toMatchObject({ status: 403, error: { code } })
    }
  })

  it('tokens can be turned off', async () => {
    await create()
    expect((await open({ required: false })).admit(request(), 'default')).toEqual({ kind: 'in', principal: 'local' })
    expect((await open({ insecure: true })).admit(request(), 'default')).toEqual({ kind: 'in', principal: undefined })
  })

  it('the local secret opens every workspace with the local principal', async () => {
    const { admit, localSecret } = await open({ required: true })
    expect(admit(request(`Bearer ${localSecret}`), 'any')).toEqual({ kind: 'in', principal: 'local', token: 'local' })
    const another = await open({ required: true })
    expect(another.admit(request(`Bearer ${localSecret}`), 'any')).toMatchObject({ status: 401 })
  })
})

describe('a workspace', () => {
  it('is visible with a valid token that opens it only', async () => {
    const secret = await create({ workspaces: ['b', 'x'] })
    const expired = await create({ id: 'two', expires: '2020-01-01T00:00:00Z' })
    const { accessible } = await open()
    expect(accessible(request(`Bearer ${secret}`), ['a', 'b', 'c'])).toEqual(['b'])
    for (const header of [undefined, `Bearer ${expired}`, `Bearer ${createSecret()}`])
      expect(accessible(request(header), ['b'])).toEqual([])
    expect(log.lines.filter(({ fields }) => fields.security)).toEqual([]) // looking is not coming in
  })

  it('is visible to all if no token is required', async () => {
    expect((await open()).accessible(request(), ['a'])).toEqual(['a'])
    expect((await open({ insecure: true })).accessible(request(), ['a'])).toEqual(['a'])
  })
})

describe('the rate', () => {
  const rate = { perPrincipal: { perSecond: 1, burst: 0 } }

  it('is counted by principal, and callers without one by address', async () => {
    const ada = await create()
    const bob = await create({ id: 'two', principal: 'bob' })
    const { admit } = await open({ rate })
    expect(await admit(request(`Bearer ${ada}`), 'default')).toMatchObject({ kind: 'in' })
    expect(await admit(request(`Bearer ${ada}`), 'default')).toMatchObject({ kind: 'out', status: 429 })
    expect(await admit(request(`Bearer ${bob}`), 'default')).toMatchObject({ kind: 'in' })

    const insecure = await open({ insecure: true, rate })
    const from = (value: string) => ({
      headers: {},
      socket: Object.defineProperty(new Socket(), 'remoteAddress', { value }),
    })
    expect(await insecure.admit(from('10.0.0.1'), 'default')).toMatchObject({ kind: 'in' })
    expect(await insecure.admit(from('10.0.0.1'), 'default')).toMatchObject({ status: 429 })
    expect(await insecure.admit(from('10.0.0.2'), 'default')).toMatchObject({ kind: 'in' })
    expect(await insecure.admit(from('2001:db8:1:2::1'), 'default')).toMatchObject({ kind: 'in' })
    expect(await insecure.admit(from('2001:db8:1:2::2'), 'default')).toMatchObject({ status: 429 })
    expect(await insecure.admit(from('2001:db8:1:3::1'), 'default')).toMatchObject({ kind: 'in' })
  })

  it('does not count rejected requests', async () => {
    const secret = await create()
    const { admit } = await open({ rate })
    for (let count = 0; count < 3; count++) expect(await admit(request(), 'default')).toMatchObject({ status: 401 })
    expect(await admit(request(`Bearer ${secret}`), 'default')).toMatchObject({ kind: 'in' })
  })
})

describe('an unknown workspace', () => {
  const hasWorkspace = (name: string): boolean => name === 'default'

  it('looks like every other one to a rejected caller', async () => {
    await create({ workspaces: ['elsewhere'] })
    const { admit } = await open({ hasWorkspace })
    expect(admit(request(), 'nowhere')).toEqual(admit(request(), 'default'))
    expect(admit(request(), 'nowhere')).toMatchObject({ kind: 'out', status: 401 })
  })

  it('looks like a forbidden one to a token of another workspace', async () => {
    const secret = await create({ workspaces: ['elsewhere'] })
    const { admit } = await open({ hasWorkspace })
    for (const name of ['default', 'nowhere'])
      expect(admit(request(`Bearer ${secret}`), name)).toMatchObject({ kind: 'out', status: 403 })
  })

  it('is 404 for an admitted caller', async () => {
    const secret = await create()
    const { admit } = await open({ hasWorkspace })
    const refused = {
      kind: 'out',
      status: 404,
      error: { message: 'There is no workspace "nowhere"; GET / lists them' },
    }
    expect(admit(request(`Bearer ${secret}`), 'nowhere')).toMatchObject(refused)
    expect(admit(request(`Bearer ${secret}`), 'default')).toMatchObject({ kind: 'in' })
  })
})

describe('the policy of a token', () => {
  it('is the one of that name in the current configuration', async () => {
    const secret = await create({ policy: 'reading' })
    let policy = { allow: {}, deny: {}, readOnly: true }
    const { admit } = await open({ policyOf: name => (name === 'reading' ? policy : undefined) })
    expect(admit(request(`Bearer ${secret}`), 'default')).toEqual({
      kind: 'in',
      principal: 'ada',
      policy,
      policyName: 'reading',
      token: 'one',
    })
    policy = { ...policy, readOnly: false }
    expect(admit(request(`Bearer ${secret}`), 'default')).toMatchObject({ policy: { readOnly: false } })
  })

  it('allows nothing if the configuration lacks it, which is logged once', async () => {
    const secret = await create({ policy: 'forgotten' })
    const { admit } = await open()
    for (let times = 0; times < 3; times++)
      expect(admit(request(`Bearer ${secret}`), 'default')).toMatchObject({ policy: { deny: { servers: ['*'] } } })
    const said = log.lines.filter(({ message }) =>
      message.includes('the policy of a token is not in the configuration'),
    )
    expect(said).toMatchObject([{ level: 'warn', fields: { security: true, token: 'one', policy: 'forgotten' } }])
  })
})
