import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import type { SubjectAccess } from './access.ts'
import { createGrantId, RETIRED_MS } from './grant-tokens.ts'
import { Grants, type IssuedTokens, type NewGrant } from './grants.ts'
import { OAuthRejection } from './oauth-rejection.ts'

const VERIFIER = 'v'.repeat(43)
const HOUR = 3600_000
const CONTENT: NewGrant = {
  client: 'client-1',
  redirectUri: 'https://app.example/cb',
  workspace: undefined,
  subject: { kind: 'token', id: 't1' },
  principal: 'ada',
  scopes: ['mcp', 'mcp:write'],
  challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
}
const PROOF = { client: 'client-1', redirectUri: 'https://app.example/cb', verifier: VERIFIER, workspace: undefined }
const WISH = { client: 'client-1', scopes: undefined, baseScopes: ['mcp'], workspace: undefined }

let cluster: MemoryCluster
let access: SubjectAccess | undefined
let issuer: 'valid' | 'ended' | 'unavailable'
let events: unknown[]
let grants: Grants
let other: Grants // on another replica

const create = (): Grants =>
  new Grants({
    store: cluster.join(),
    accessOf: async () => access,
    sessions: { renew: async () => issuer },
    record: (event, fields) => void events.push([event, fields.reason]),
    log: createTestLog().log,
  })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
  cluster = new MemoryCluster()
  access = { principal: 'ada', name: 'Ada', workspaces: ['*'], policy: 'reading' }
  issuer = 'valid'
  events = []
  grants = create()
  other = create()
})
afterEach(() => {
  grants.close()
  other.close()
  vi.useRealTimers()
})

const wait = (ms: number): void => void vi.setSystemTime(Date.now() + ms)
const start = async (more: Partial<NewGrant> = {}): Promise<IssuedTokens> =>
  other.redeem(await grants.create(createGrantId(), { ...CONTENT, ...more }), PROOF)
const refreshed = ({ refresh = '' }: IssuedTokens, by = grants): Promise<IssuedTokens> => by.refresh(refresh, WISH)
const rejectionOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(OAuthRejection)
  return (error as OAuthRejection).code
}
const isValid = async ({ access: secret }: IssuedTokens, at = grants): Promise<boolean> =>
  (await at.findGrant(secret)) !== undefined

describe('the limit of 200 grants of a principal', () => {
  const startMany = async (count: number, more: Partial<NewGrant> = {}): Promise<readonly IssuedTokens[]> => {
    const made: IssuedTokens[] = []
    while (made.length < count) made.push(await start(more))
    return made
  }
  const idOf = async (): Promise<string> => (await grants.list('ada'))[0]?.id ?? ''

  it('ends the oldest one', async () => {
    const [first, second] = await startMany(201)
    expect(first && (await isValid(first))).toBe(false)
    expect(second && (await isValid(second))).toBe(true)
    expect(await grants.list('ada')).toHaveLength(200)
  })

  it('does not count those that were ended', async () => {
    const live = await start()
    for (let count = 0; count < 201; count++) {
      await start()
      await grants.end(await idOf(), 'disconnected')
    }
    expect(await isValid(live)).toBe(true)
    expect(await grants.isRemembered('ada', CONTENT, ['mcp'])).toBe(true)
  })

  it('does not count those that have expired', async () => {
    let live = await start()
    await startMany(199)
    wait(20 * 24 * HOUR)
    live = await refreshed(live)
    wait(20 * 24 * HOUR)
    await startMany(50)
    live = await refreshed(live)
    expect(await isValid(live)).toBe(true)
    expect(await grants.list('ada')).toHaveLength(51)
  })
})

describe('a code', () => {
  it('gives tokens on any replica, to the client that has the verifier', async () => {
    const tokens = await start()
    expect(tokens).toMatchObject({ expiresInMs: HOUR, scopes: ['mcp', 'mcp:write'] })
    expect(await grants.findGrant(tokens.access)).toEqual({
      id: expect.stringMatching(/^grant-[0-9a-f]{16}$/),
      client: 'client-1',
      principal: 'ada',
      workspaces: ['*'],
      policy: 'reading',
      scopes: ['mcp', 'mcp:write'],
      expires: Date.now() + HOUR,
      tokenId: 't1',
    })
  })

  it.each([
    ['another client', { client: 'client-2' }],
    ['another redirect URI', { redirectUri: 'https://app.example/cb2' }],
    ['another verifier', { verifier: 'w'.repeat(43) }],
    ['no verifier', { verifier: '' }],
  ])('gives nothing to %s, and stays good for its own client', async (_who, more) => {
    const code = await grants.create(createGrantId(), CONTENT)
    expect(await rejectionOf(grants.redeem(code, { ...PROOF, ...more }))).toBe('invalid_grant')
    expect(await isValid(await grants.redeem(code, PROOF))).toBe(true)
  })

  it('that is used twice ends what it gave', async () => {
    const code = await grants.create(createGrantId(), CONTENT)
    const tokens = await grants.redeem(code, PROOF)
    expect(await rejectionOf(other.redeem(code, PROOF))).toBe('invalid_grant')
    expect(await isValid(tokens)).toBe(false)
    expect(await rejectionOf(refreshed(tokens))).toBe('invalid_grant')
  })

  it('is used once, by however many requests at the same time', async () => {
    const code = await grants.create(createGrantId(), CONTENT)
    const results = await Promise.allSettled([grants, other, grants, other].map(each => each.redeem(code, PROOF)))
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1)
  })

  it('expires after five minutes', async () => {
    const code = await grants.create(createGrantId(), CONTENT)
    wait(5 * 60_000)
    expect(await rejectionOf(grants.redeem(code, PROOF))).toBe('invalid_grant')
  })

  it('of a grant id that was used before is not given', async () => {
    const id = createGrantId()
    await grants.create(id, CONTENT)
    await expect(other.create(id, CONTENT)).rejects.toMatchObject({ reason: 'exists' })
  })

  it('for one workspace opens no other', async () => {
    const code = await grants.create(createGrantId(), { ...CONTENT, workspace: 'one' })
    expect(await rejectionOf(grants.redeem(code, { ...PROOF, workspace: 'two' }))).toBe('invalid_target')
    const tokens = await grants.redeem(code, { ...PROOF, workspace: 'one' })
    expect(await grants.findGrant(tokens.access)).toMatchObject({ workspaces: ['one'] })
    access = { principal: 'ada', name: 'Ada', workspaces: ['two'] }
    expect(await grants.findGrant(tokens.access)).toMatchObject({ workspaces: [] })
  })
})

describe('a refresh token', () => {
  it('gives the same successor again while that was not used: the response may have been lost', async () => {
    const first = await start()
    const [second, again] = await Promise.all([refreshed(first), refreshed(first, other)])
    expect(second.refresh).not.toBe(first.refresh)
    expect(again.refresh).toBe(second.refresh)
    wait(24 * HOUR)
    const late = await refreshed(first)
    expect(late.refresh).toBe(second.refresh)
    expect(await isValid(late)).toBe(true)
  })

  it('gives access only for a minute after its successor was used', async () => {
    const first = await start()
    const second = await refreshed(first)
    const third = await refreshed(second)
    wait(RETIRED_MS - 1)
    const again = await refreshed(first)
    expect(again.refresh).toBeUndefined()
    expect(await isValid(again)).toBe(true)
    expect((await refreshed(third)).refresh).toBeDefined()
  })

  it('that is replayed after 61 seconds ends the grant, for the thief and for the client', async () => {
    const ended: string[] = []
    const first = await start()
    const name = (await grants.findGrant(first.access))?.id
    const told = new Promise<void>(resolve => {
      other.onGrantEnded(id => {
        ended.push(id)
        resolve()
      })
    })
    const third = await refreshed(await refreshed(first))
    wait(61_000)
    expect(await rejectionOf(refreshed(first))).toBe('invalid_grant')
    expect(await rejectionOf(refreshed(third))).toBe('invalid_grant')
    expect(await isValid(third, other)).toBe(false)
    await told
    expect(ended).toEqual([name])
    expect(events).toContainEqual(['refresh_token_reused', undefined])
  })

  it('of another client, with more scopes or for another workspace gives nothing, and nothing ends', async () => {
    const tokens = await start({ workspace: 'one' })
    const { refresh = '' } = tokens
    expect(await rejectionOf(grants.refresh(refresh, { ...WISH, client: 'client-2' }))).toBe('invalid_grant')
    expect(await rejectionOf(grants.refresh(refresh, { ...WISH, scopes: ['mcp', 'admin'] }))).toBe('invalid_scope')
    expect(await rejectionOf(grants.refresh(refresh, { ...WISH, workspace: 'two' }))).toBe('invalid_target')
    const narrow = await grants.refresh(refresh, { ...WISH, scopes: ['mcp'] })
    expect(await grants.findGrant(narrow.access)).toMatchObject({ scopes: ['mcp'] })
    expect((await refreshed(narrow)).scopes).toEqual(['mcp', 'mcp:write'])
  })

  it('is good for 30 days without use', async () => {
    let tokens = await start()
    for (let month = 0; month < 3; month++) {
      wait(29 * 24 * HOUR)
      tokens = await refreshed(tokens)
    }
    wait(30 * 24 * HOUR)
    expect(await rejectionOf(refreshed(tokens))).toBe('invalid_grant')
  })

  it('gives at most ten access tokens that are valid at the same time', async () => {
    let tokens = await start()
    const all = [tokens]
    for (let count = 0; count < 12; count++) {
      tokens = await refreshed(tokens)
      all.push(tokens)
    }
    expect((await Promise.all(all.map(each => isValid(each)))).filter(Boolean)).toHaveLength(10)
  })
})

describe('a grant', () => {
  it('ends with its API token', async () => {
    const tokens = await start()
    access = undefined
    expect(await isValid(tokens)).toBe(false)
    expect(await rejectionOf(refreshed(tokens))).toBe('invalid_grant')
    access = { principal: 'ada', name: 'Ada', workspaces: ['*'] }
    expect(await isValid(tokens)).toBe(false)
  })

  it('does not outlive its API token', async () => {
    access = { principal: 'ada', name: 'Ada', workspaces: ['*'], expires: Date.now() + 10_000 }
    expect(await start()).toMatchObject({ expiresInMs: 10_000 })
  })

  it('has what its visitor may use now', async () => {
    const tokens = await start()
    access = { principal: 'ada', name: 'Ada', workspaces: ['one'], policy: 'other' }
    expect(await grants.findGrant(tokens.access)).toMatchObject({ workspaces: ['one'], policy: 'other' })
    access = { principal: 'ben', name: 'Ben', workspaces: ['*'] }
    expect(await isValid(tokens)).toBe(false)
  })

  it('of a person at an issuer is refreshed there first', async () => {
    const tokens = await start({ subject: { kind: 'issuer', session: 's1' } })
    expect((await grants.findGrant(tokens.access))?.tokenId).toBeUndefined()
    issuer = 'unavailable'
    expect(await rejectionOf(refreshed(tokens))).toBe('temporarily_unavailable')
    issuer = 'valid'
    const next = await refreshed(tokens)
    issuer = 'ended'
    expect(await rejectionOf(refreshed(next))).toBe('invalid_grant')
    expect(await isValid(next)).toBe(false)
  })

  it('ends when its client revokes one of its tokens, and not for another client or an unknown token', async () => {
    const tokens = await start()
    await grants.revoke(tokens.access, 'client-2')
    await grants.revoke(`${tokens.access.slice(0, -4)}AAAA`, 'client-1')
    await grants.revoke('nonsense', 'client-1')
    expect(await isValid(tokens)).toBe(true)
    await other.revoke(tokens.refresh ?? '', 'client-1')
    expect(await isValid(tokens)).toBe(false)
  })

  it('is remembered for the same client, redirect URI, workspace and scopes', async () => {
    const tokens = await start({ workspace: 'one' })
    const consent = { client: 'client-1', redirectUri: 'https://app.example/cb', workspace: 'one' }
    const isRemembered = (more: object, scopes = ['mcp'], principal = 'ada') =>
      grants.isRemembered(principal, { ...consent, ...more }, scopes)
    expect(await isRemembered({})).toBe(true)
    expect(await isRemembered({ client: 'client-2' })).toBe(false)
    expect(await isRemembered({ redirectUri: 'https://app.example/cb2' })).toBe(false)
    expect(await isRemembered({ workspace: undefined })).toBe(false)
    expect(await isRemembered({}, ['mcp', 'admin'])).toBe(false)
    expect(await isRemembered({}, ['mcp'], 'ben')).toBe(false)
    await grants.revoke(tokens.access, 'client-1')
    expect(await isRemembered({})).toBe(false)
  })
})
