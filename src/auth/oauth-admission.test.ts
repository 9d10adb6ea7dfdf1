import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { absentPolicy } from '../protocol/policy.ts'
import { createOAuthAdmission, isOAuthToken } from './oauth-admission.ts'
import { createProtectedResource } from './resource.ts'
import type { TokenCheck, VerifiedToken } from './verify/verified-token.ts'
import type { TokenVerifier } from './verify/verifier.ts'

const OF_ISSUER: VerifiedToken = {
  principal: 'corp:ada',
  audiences: ['https://gw.test'],
  workspaces: ['*'],
  scopes: new Set(),
  expires: Date.now() + 60_000,
}
const GRANTED: VerifiedToken = {
  principal: 'ada',
  workspaces: ['*'],
  scopes: new Set(),
  expires: Date.now() + 60_000,
  grant: { id: 'g1', tokenId: 't1' },
}

let checks: Map<string, TokenCheck>
let endGrant: (grant: string) => void
let forgotten: string[]
let revocations: Map<string, () => void>
beforeEach(() => {
  checks = new Map<string, TokenCheck>([
    ['jwt', OF_ISSUER],
    ['granted', GRANTED],
  ])
  forgotten = []
  revocations = new Map()
})

const protectedResource = () =>
  createProtectedResource({
    auth: { issuers: new Map([['corp', {} as never]]) },
    listen: { publicUrl: 'https://gw.test' },
    port: () => 1,
  })

const open = (resource = protectedResource()) => {
  const verifier: TokenVerifier = {
    check: secret => checks.get(secret) ?? { kind: 'invalid', reason: 'The token is unknown or revoked' },
    acceptGrants: () => {},
    onGrantEnded: listener => {
      endGrant = listener
    },
    forget: grant => void forgotten.push(grant),
    close: () => {},
  }
  return createOAuthAdmission({
    verifier,
    resource,
    policyFor: (_, name) => absentPolicy(name),
    recordFailure: rejection => rejection,
    onRevoked: (id, end) => {
      revocations.set(String(id), end)
      return () => revocations.delete(String(id))
    },
  })
}

const requestOf = () => ({ headers: {}, socket: new Socket() })
const responseTo = (request: { readonly socket: Socket }) =>
  Object.assign(new EventEmitter(), { req: request }) as unknown as ServerResponse

describe('a token of an issuer', () => {
  it('remembers a bounded number of the workspaces that its caller names: they need not exist', () => {
    const resource = protectedResource()
    const isMeantFor = vi.spyOn(resource, 'isMeantFor')
    const { check } = open(resource)
    for (let at = 0; at < 2000; at++) expect(check('jwt', requestOf(), `w${at}`)).toMatchObject({ kind: 'in' })
    isMeantFor.mockClear()
    check('jwt', requestOf(), 'w0')
    expect(isMeantFor).toHaveBeenCalledTimes(0)
    check('jwt', requestOf(), 'w1999')
    expect(isMeantFor).toHaveBeenCalledTimes(1)
  })

  it('costs no promise and keeps no trace once it is checked', () => {
    const { check, tokens } = open()
    const [request, response] = [requestOf(), responseTo(requestOf())]
    const admission = check('jwt', request, 'default', response)
    expect(admission).toMatchObject({
      kind: 'in',
      principal: 'corp:ada',
      scopes: new Set(),
      expires: OF_ISSUER.expires,
    })
    expect(response.listenerCount('close')).toBe(0)
    expect(isOAuthToken((admission as { token: string }).token)).toBe(true)
    let isEnded = false
    tokens.onRevoked((admission as { token: string }).token, () => {
      isEnded = true
    })
    endGrant('g1')
    expect(isEnded).toBe(false)
  })

  it('is rejected with the reason', () => {
    const { check } = open()
    checks.set('forbidden', { kind: 'forbidden', reason: 'No grant fits' })
    checks.set('away', { kind: 'unavailable', reason: 'The issuer is away' })
    expect(check('x', requestOf(), 'default')).toMatchObject({ status: 401 })
    expect(check('forbidden', requestOf(), 'default')).toMatchObject({ status: 403, headers: {} })
    expect(check('away', requestOf(), 'default')).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  })
})

describe('a request like the one before it on its connection', () => {
  const requestWith = (authorization: string, socket = new Socket()) => ({ headers: { authorization }, socket })

  it('is admitted in the same way, for five seconds', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { check, readmit } = open()
    const request = requestWith('Bearer jwt')
    expect(readmit(request, 'default')).toBeUndefined()
    const admission = check('jwt', request, 'default')
    expect(readmit(request, 'default')).toBe(admission)
    expect(readmit(request, 'other')).toBeUndefined()
    expect(readmit(requestWith('Bearer other', request.socket), 'default')).toBeUndefined()
    expect(readmit(requestWith('Bearer jwt'), 'default')).toBeUndefined()
    vi.setSystemTime(Date.now() + 5_000)
    expect(readmit(request, 'default')).toBeUndefined()
    vi.useRealTimers()
  })

  it('is not, once it was rejected or its grant has ended', () => {
    const { check, readmit } = open()
    const rejected = requestWith('Bearer x')
    check('x', rejected, 'default')
    expect(readmit(rejected, 'default')).toBeUndefined()
    const request = requestWith('Bearer granted')
    check('granted', request, 'default')
    const [socket, response] = [request.socket, responseTo(request)]
    expect(readmit(request, 'default', response)).toMatchObject({ principal: 'ada' })
    endGrant('g1')
    expect([readmit(request, 'default'), socket.destroyed]).toEqual([undefined, true])
  })

  it('gets the policy of that moment', () => {
    checks.set('limited', { ...OF_ISSUER, policy: 'reading' })
    const { check, readmit } = open()
    const request = requestWith('Bearer limited')
    const admission = check('limited', request, 'default')
    expect(readmit(request, 'default')).toEqual(admission)
    expect(readmit(request, 'default')).not.toBe(admission)
  })
})

describe('a token of a grant', () => {
  const openGranted = () => {
    const admission = open()
    const request = requestOf()
    const response = responseTo(request)
    const admitted = admission.check('granted', request, 'default', response) as { token: string }
    let ended = 0
    admission.tokens.onRevoked(admitted.token, () => void ended++)
    return { ...admission, request, response, ended: () => ended }
  }

  it('ends its connections and sessions when the grant ends', () => {
    const { request, ended } = openGranted()
    endGrant('other')
    expect([request.socket.destroyed, ended()]).toEqual([false, 0])
    endGrant('g1')
    expect([request.socket.destroyed, ended()]).toEqual([true, 1])
    expect(revocations.size).toBe(0)
  })

  it('ends them when the API token is revoked that the grant was given with', () => {
    const { request, ended } = openGranted()
    revocations.get('t1')?.()
    expect([request.socket.destroyed, ended(), forgotten]).toEqual([true, 1, ['g1']])
  })

  it('leaves connections alone that were closed before', () => {
    const { request, response } = openGranted()
    response.emit('close')
    endGrant('g1')
    expect(request.socket.destroyed).toBe(false)
  })
})
