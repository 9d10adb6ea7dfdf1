import { afterEach, describe, expect, it, vi } from 'vitest'
import { callTool, closeAll, connectSmall } from '../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../test/support/scripted-server.ts'
import type { CallerValues } from '../config/caller-values.ts'
import type { Peer } from '../protocol/exchange.ts'
import { headerValueError } from '../std/header-text.ts'
import { Json } from '../wire/json/json.ts'
import { connectPerCaller } from './connect-per-caller.ts'
import { UpstreamFailure } from './failures.ts'

afterEach(async () => {
  vi.useRealTimers()
  await closeAll()
})

const NAME = { caller: 'name' } as const
const valuesOf = (token: string) => ({ kind: 'values', values: { authorization: [token] } }) as const

/** Upstreams that only record the credentials they were created with. */
const connect = (personal: CallerValues, limit?: number) => {
  const made: { values: Readonly<Record<string, string>>; isClosed: boolean; isIdle: boolean; peer: Peer }[] = []
  const upstream = connectPerCaller({
    name: 'far',
    personal,
    faultOf: headerValueError,
    ...(limit === undefined ? {} : { limit }),
    connect: values => {
      const peer: Peer = {
        revision: '2026-07-28',
        asks: false,
        dispatch: ({ sink }) => void sink({ kind: 'result', result: Json.of({ cacheScope: 'public', ttlMs: 5 }) }),
      }
      const one = { values, isClosed: false, isIdle: true, peer }
      made.push(one)
      return {
        open: async () => peer,
        knownPeer: () => peer,
        close: async () => {
          one.isClosed = true
        },
        isIdle: () => one.isIdle,
      }
    },
  })
  return { upstream, made }
}
const as = (principal: string | undefined, workspace = 'default') => callerOf({ principal, workspace })
const refusal = async (opening: Promise<Peer>) => {
  const thrown = await opening.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof UpstreamFailure)) throw new Error('expected a refusal')
  return { message: thrown.message, data: thrown.error.data?.toValue() }
}

describe('whose values are used', () => {
  const credentials = {
    alice: valuesOf('a'),
    '*': valuesOf('everyone'),
    bob: { kind: 'missing', reason: 'no BOB' },
  } as const

  it('the caller’s own, else those for all others, with the common ones', async () => {
    const { upstream, made } = connect({ values: { 'x-user': [NAME, '!'] }, credentials })
    for (const who of ['alice', 'carol', 'alice', '*', 'constructor']) await upstream.open(as(who))
    expect(made.map(({ values }) => values)).toEqual([
      { 'x-user': 'alice!', authorization: 'a' },
      { 'x-user': 'carol!', authorization: 'everyone' },
      { 'x-user': '*!', authorization: 'everyone' },
      { 'x-user': 'constructor!', authorization: 'everyone' },
    ])
  })

  it('none if the caller’s own are missing from the environment', async () => {
    const { upstream, made } = connect({ values: {}, credentials })
    expect(await refusal(upstream.open(as('bob')))).toEqual({
      message: 'Server "far" has no credentials for "bob" (no BOB)',
      data: { reason: 'no_credentials', upstream: 'far', principal: 'bob' },
    })
    expect(made).toEqual([])
  })

  it('none if none are configured', async () => {
    const { upstream, made } = connect({ values: {}, credentials: { alice: valuesOf('a') } })
    expect(await refusal(upstream.open(as('carol')))).toMatchObject({
      message: expect.stringMatching(/^Server "far" has no credentials for "carol": add an entry/),
      data: { reason: 'no_credentials', principal: 'carol' },
    })
    expect(await refusal(upstream.open(as(undefined)))).toMatchObject({ data: { reason: 'no_credentials' } })
    expect(await refusal(upstream.open(as('__proto__')))).toMatchObject({ data: { reason: 'no_credentials' } })
    expect(made).toEqual([])
  })

  it.each([
    ['a line break', 'eve\r\nAuthorization: Bearer stolen'],
    ['a line feed', 'eve\n'],
    ['a zero', 'e\0ve'],
    ['what is not Latin-1', 'イブ'],
    ['a blank at its end', 'eve '],
    ['a blank at its beginning', ' eve'],
  ])('fails for a name with %s', async (_what, name) => {
    const { upstream, made } = connect({ values: { 'x-user': [NAME] } })
    expect(await refusal(upstream.open(as(name)))).toMatchObject({
      message: expect.stringContaining('cannot be given the name'),
      data: { reason: 'no_credentials', principal: name },
    })
    expect(made).toEqual([])
  })

  it('none for an anonymous caller, if the name is sent', async () => {
    const { upstream } = connect({ values: { 'x-user': [NAME] } })
    expect(await refusal(upstream.open(as(undefined)))).toMatchObject({
      message: expect.stringContaining('an anonymous caller has none'),
    })
  })
})

describe('an upstream of one’s own', () => {
  it('is the same for every request of the caller, and for no other caller, even with equal values', async () => {
    const { upstream, made } = connect({ values: {}, credentials: { '*': valuesOf('same') } })
    const peers = [await upstream.open(as('a')), await upstream.open(as('b')), await upstream.open(as('a', 'other'))]
    expect(made).toHaveLength(2)
    expect(peers[0]).toBe(peers[2])
    expect(peers[0]).not.toBe(peers[1])
  })

  it('is one per workspace, if the workspace is sent', async () => {
    const { upstream, made } = connect({ values: { at: [{ caller: 'workspace' }] } })
    for (const workspace of ['one', 'two', 'one']) await upstream.open(as('a', workspace))
    expect(made.map(({ values }) => values)).toEqual([{ at: 'one' }, { at: 'two' }])
  })

  it('marks results as private that the server calls public', async () => {
    const { upstream } = connect({ values: { 'x-user': [NAME] } })
    const peer = await upstream.open(as('a'))
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ cacheScope: 'private', ttlMs: 5 })
    expect(await exchangeWith(peer, 'acme/do').result()).toMatchObject({ cacheScope: 'public' })
  })

  it('is evicted beyond the limit, if it is idle and was used least recently', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { upstream, made } = connect({ values: { 'x-user': [NAME] } }, 3)
    for (const who of ['a', 'b', 'c']) await upstream.open(as(who))
    if (made[1]) made[1].isIdle = false
    await upstream.open(as('a'))
    vi.setSystemTime(Date.now() + 1000)
    await upstream.open(as('d'))
    expect(made.map(({ isClosed }) => isClosed)).toEqual([false, false, true, false])
    await upstream.close()
    expect(made.every(({ isClosed }) => isClosed)).toBe(true)
    await expect(upstream.open(as('a'))).rejects.toThrow('being disconnected')
  })
})

describe('an upstream that was handed out just now', () => {
  it('is not evicted before its caller has had the time to send a request', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { upstream, made } = connect({ values: { 'x-user': [NAME] } }, 1)
    await Promise.all([upstream.open(as('a')), upstream.open(as('b'))])
    expect(made.map(({ isClosed }) => isClosed)).toEqual([false, false])
    vi.setSystemTime(Date.now() + 1000)
    await upstream.open(as('c')) // takes the place of both, for one is too many already
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, true, false])
  })
})

describe('a program', () => {
  const personal: CallerValues = {
    values: { WHO: [NAME] },
    credentials: {
      ann: { kind: 'values', values: { TOKEN: ['of-ann'] } },
      ben: { kind: 'values', values: { TOKEN: ['of-ben'] } },
    },
  }

  it.each(['legacy', 'modern'])('(%s) runs once for each caller, with his variables', async era => {
    const { open, upstream } = connectSmall({ era }, { server: { personal } })
    const told = async (principal: string) => {
      const caller = callerOf({ principal })
      const peer = await open(caller)
      return Promise.all(
        ['WHO', 'TOKEN'].map(name => callTool(peer, 'env', { name }, { ...caller, revision: peer.revision })),
      )
    }
    expect(await Promise.all([told('ann'), told('ben'), told('ann')])).toEqual([
      ['ann', 'of-ann'],
      ['ben', 'of-ben'],
      ['ann', 'of-ann'],
    ])
    expect(upstream.status().processes).toHaveLength(2)
    await expect(open(callerOf({ principal: 'eve' }))).rejects.toThrow('has no credentials for "eve"')
    expect(upstream.status().processes).toHaveLength(2)
  })

  it('counts for all callers together when there are too many', async () => {
    const { open } = connectSmall({ era: 'legacy' }, { server: { personal }, limits: { processes: 1 } })
    const [ann, ben] = [callerOf({ principal: 'ann' }), callerOf({ principal: 'ben' })]
    const peer = await open(ann)
    const call = exchangeWith(peer, 'tools/call', { caller: ann, params: { name: 'sleep', arguments: { ms: 60_000 } } })
    await expect(open(ben)).rejects.toThrow('1 processes already')
    call.abort.abort({ kind: 'gone' })
  })
})

it('the peer of a caller that has opened it is known without a promise, until it is disconnected', async () => {
  const { upstream } = connect({ values: { authorization: [NAME] } })
  expect(upstream.knownPeer?.(as('ann'))).toBeUndefined()
  const peer = await upstream.open(as('ann'))
  expect(upstream.knownPeer?.(as('ann'))).toBe(peer)
  expect(upstream.knownPeer?.(as('ben'))).toBeUndefined()
  upstream.disconnect('ann')
  expect(upstream.knownPeer?.(as('ann'))).toBeUndefined()
})
