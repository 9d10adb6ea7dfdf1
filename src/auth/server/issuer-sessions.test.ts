import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { breakable } from '../../../test/support/breakable-database.ts'
import { createTestLog } from '../../../test/support/log.ts'
import { createLocalWake, createSqlCluster } from '../../../test/support/sql-cluster.ts'
import type { Issuer } from '../../config/snapshot.ts'
import { openSqlite } from '../../stores/sqlite.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { prepareSqlite } from '../../stores/state/prepare-state.ts'
import { StateError, type StateStore } from '../../stores/state/state-store.ts'
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

const replica = (store: StateStore = cluster.join(), log = createTestLog().log): IssuerSessions =>
  createIssuerSessions({
    store,
    issuers: new Map([['corp', CORP]]),
    login: {
      refresh: async (_issuer, token) => {
        refreshes.push(token)
        return answer(token)
      },
    },
    accessOfClaims: ({ name }, { sub }) =>
      sub === undefined ? 'unknown' : { principal: `${name}:${sub}`, name: 'Ada', workspaces: ['*'] },
    log,
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

afterEach(() => void vi.useRealTimers())

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

  it('keeps no caller waiting while the store is away: it is unavailable, and renewed when the store is back', async () => {
    const store = cluster.join()
    const one = replica(store)
    const id = await startOld(one)
    vi.useFakeTimers()
    const original = answer
    answer = token => {
      vi.spyOn(store, 'take').mockRejectedValue(new StateError('away', 'The store cannot be used.'))
      return original(token)
    }
    const renewed = one.renew(id)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await renewed).toBe('unavailable')
    vi.mocked(store.take).mockRestore()
    await vi.advanceTimersByTimeAsync(2000)
    expect(await one.renew(id)).toBe('valid')
    expect(refreshes).toEqual(['r1'])
  })

  it('does not wait for a request of its own that never began, because storing its claim had no answer', async () => {
    const store = cluster.join()
    const one = replica(store)
    const id = await startOld(one)
    const write = store.write.bind(store)
    vi.spyOn(store, 'write').mockImplementationOnce(async (...args) => {
      await write(...args)
      throw new StateError('away', 'The store cannot be used.')
    })
    await expect(one.renew(id)).rejects.toMatchObject({ reason: 'away' })
    vi.useFakeTimers()
    const renewed = one.renew(id)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await renewed).toBe('valid')
    expect(refreshes).toEqual(['r1'])
  })

  it('may use nothing any more when the new claims say so', async () => {
    const one = replica()
    const id = await startOld(one)
    answer = async () => ({ claims: {}, refreshToken: 'r2' })
    expect(await one.renew(id)).toBe('ended')
    expect(await one.accessOf(id)).toBeUndefined()
  })
})

describe('a session on a database that goes away', () => {
  /** The clock moves on, so that the last answer of the issuer no longer counts. Timers are real. */
  const later = (): void => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3600_000 })

  const start = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-sessions-'))
    const open = () => openSqlite(join(folder, 'state.db'))
    const shared = await createSqlCluster({ open, prepare: prepareSqlite, wake: createLocalWake() })
    onTestFinished(async () => {
      await shared.close()
      await rm(folder, { recursive: true, force: true })
    })
    const { database, fault } = breakable(await open())
    const store = await shared.join(undefined, { database })
    const { log, lines } = createTestLog()
    const one = replica(store, log)
    const { id } = await one.create(CORP, { claims: { sub: 'u1' }, refreshToken: 'r1' })
    later()
    /** The issuer replaces the token, and the database goes away before the answer is stored. */
    const rotate = async (token: string): Promise<IssuerIdentity> => {
      fault.kind = 'fails'
      return { claims: { sub: 'u1' }, refreshToken: `${token}+` }
    }
    const isTried = () => vi.waitFor(() => expect(lines.filter(isUnstored).length).toBeGreaterThan(2), 5000)
    return { shared, store, fault, one, id, rotate, isTried }
  }
  const isUnstored = ({ message }: { readonly message: string }): boolean =>
    message === 'refreshed session at an issuer could not be stored yet'

  it('keeps the new refresh token, and uses it the next time', async () => {
    const { one, id, rotate, fault, isTried } = await start()
    answer = rotate
    const renewed = one.renew(id)
    await isTried()
    fault.kind = 'none'
    expect(await renewed).toBe('valid')
    later()
    answer = async token => ({ claims: { sub: 'u1' }, refreshToken: `${token}+` })
    expect(await one.renew(id)).toBe('valid')
    expect(refreshes).toEqual(['r1', 'r1+'])
  })

  it('does not end because another replica took over, and the issuer refuses the old token', async () => {
    const { shared, store, one, id, rotate, fault, isTried } = await start()
    const two = replica(await shared.join())
    answer = rotate
    const renewed = one.renew(id)
    await isTried()
    await shared.kill(store.members.self) // its lease has ended
    answer = async () => {
      fault.kind = 'none'
      throw new SignInFailed('ended', 'invalid_grant')
    }
    expect(await Promise.all([two.renew(id), renewed])).toEqual(['valid', 'valid'])
    later()
    answer = async token => ({ claims: { sub: 'u1' }, refreshToken: `${token}+` })
    expect(await two.renew(id)).toBe('valid')
    expect(refreshes).toEqual(['r1', 'r1', 'r1+'])
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
