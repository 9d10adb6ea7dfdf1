import { beforeEach, describe, expect, it } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import type { Issuer } from '../../config/snapshot.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { type IssuerIdentity, SignInFailed } from './issuer-login.ts'
import { createIssuerSessions, type IssuerSessions } from './issuer-sessions.ts'

const CORP: Issuer = {
  name: 'corp',
  url: 'https://corp.example',
  clientId: 'gateway',
  grants: [{ where: {}, workspaces: ['*'] }],
}
const idToken = (expires: number): string =>
  `x.${Buffer.from(JSON.stringify({ exp: expires / 1000 })).toString('base64url')}.y`

let cluster: MemoryCluster
let refreshes: string[]
let answer: (refreshToken: string) => Promise<IssuerIdentity>
let now: number
beforeEach(() => {
  cluster = new MemoryCluster()
  refreshes = []
  now = Date.now()
  answer = async token => ({ claims: { sub: 'u1' }, refreshToken: `${token}+`, idToken: idToken(now + 3600_000) })
})

const replica = (): IssuerSessions =>
  createIssuerSessions({
    store: cluster.join(),
    issuers: new Map([['corp', CORP]]),
    login: {
      refresh: async (_issuer, token) => {
        refreshes.push(token)
        return answer(token)
      },
    },
    accessOfClaims: ({ name }, { sub }) =>
      sub === undefined ? 'unknown' : { principal: `${name}:${sub}`, name: 'Ada', workspaces: ['*'] },
    log: createTestLog().log,
  })

/** A session whose last answer of the issuer is an hour old. */
const startOld = async (by: IssuerSessions, identity: Partial<IssuerIdentity> = {}): Promise<string> => {
  const created = { claims: { sub: 'u1' }, refreshToken: 'r1', idToken: idToken(now + 10_000), ...identity }
  const { id } = await by.create(CORP, created)
  for (const record of cluster.records.values()) {
    const body = JSON.parse(record.id === id ? record.body.toString() : '{}') as { checkedAt?: number }
    if (body.checkedAt) record.body = Buffer.from(JSON.stringify({ ...body, checkedAt: now - 3600_000 }))
  }
  return id
}

describe('a session', () => {
  it('is renewed once, by however many replicas at the same time', async () => {
    const replicas = [replica(), replica(), replica(), replica()]
    const id = await startOld(replicas[0] as IssuerSessions)
    const states = await Promise.all(replicas.flatMap(each => [each.renew(id), each.renew(id)]))
    expect(new Set(states)).toEqual(new Set(['valid']))
    expect(refreshes).toEqual(['r1'])
  })

  it('keeps the new refresh token, although another replica took the record while the issuer was asked', async () => {
    const [one, two] = [replica(), replica()]
    const id = await startOld(one)
    const store = cluster.join()
    const original = answer
    answer = async token => {
      await store.take('login', id)
      return original(token)
    }
    expect(await one.renew(id)).toBe('valid')
    for (const record of cluster.records.values())
      if (record.id === id)
        record.body = Buffer.from(record.body.toString().replace(/"checkedAt":\d+/, `"checkedAt":${now - 3600_000}`))
    expect(await two.renew(id)).toBe('valid')
    expect(refreshes).toEqual(['r1', 'r1+'])
  })

  it('ends when the issuer says so, and is kept when it does not answer', async () => {
    const [one, two] = [replica(), replica()]
    const id = await startOld(one)
    answer = () => Promise.reject(new SignInFailed('unavailable', 'down'))
    expect(await one.renew(id)).toBe('unavailable')
    expect(await two.accessOf(id)).toBeDefined()
    answer = () => Promise.reject(new SignInFailed('ended', 'invalid_grant'))
    expect(await two.renew(id)).toBe('ended')
    expect(await one.accessOf(id)).toBeUndefined()
    expect(await one.renew(id)).toBe('ended')
  })

  it('may use nothing any more when the new claims say so', async () => {
    const one = replica()
    const id = await startOld(one)
    answer = async () => ({ claims: {}, refreshToken: 'r2' })
    expect(await one.renew(id)).toBe('ended')
    expect(await one.accessOf(id)).toBeUndefined()
  })
})

describe('an ID token', () => {
  it('is found for its principal and issuer, and renewed before it expires', async () => {
    const one = replica()
    const fresh = idToken(now + 3600_000)
    await one.create(CORP, { claims: { sub: 'u1' }, refreshToken: 'r1', idToken: fresh })
    expect(await replica().findIdToken('corp:u1', 'corp')).toBe(fresh)
    expect(await one.findIdToken('corp:u2', 'corp')).toBeUndefined()
    expect(await one.findIdToken('corp:u1', 'other')).toBeUndefined()
    await startOld(one)
    expect(await one.findIdToken('corp:u1', 'corp')).toBe(idToken(now + 3600_000))
    expect(refreshes).toEqual(['r1'])
  })

  it('is not found after it has expired, if the issuer gives no new one', async () => {
    const one = replica()
    await startOld(one, { refreshToken: undefined })
    expect(await one.findIdToken('corp:u1', 'corp')).toBeUndefined()
  })
})
