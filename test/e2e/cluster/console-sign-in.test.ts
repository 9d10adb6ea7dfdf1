import { expect, onTestFinished, test } from 'vitest'
import type { SessionInfo } from '../../../src/admin/api/session.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'

const signIn = async ({ gateway: { origin } }: TestReplica, code: string) => {
  const headers = { origin, 'content-type': 'application/json' }
  const response = await fetch(`${origin}/admin/session`, { method: 'POST', headers, body: JSON.stringify({ code }) })
  const { csrf = '' } = (await response.json()) as SessionInfo
  const value = /=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1] ?? ''
  return { status: response.status, csrf, value }
}

test('links and sign-outs of the console hold at every replica', async () => {
  const { replicas, close } = await startReplicas({ size: 2 })
  onTestFinished(close)
  const [first, second] = replicas as [TestReplica, TestReplica]
  const code = new URLSearchParams(first.gateway.createConsoleLink().url.split('?')[1]).get('code') ?? ''
  const { status, csrf, value } = await signIn(second, code)
  expect(status).toBe(200)
  expect((await signIn(first, code)).status).toBe(401)

  // Without a public URL the name of the cookie contains the port of the replica.
  const cookieFor = ({ gateway: { origin } }: TestReplica) => `dragoman-console-${new URL(origin).port}=${value}`
  const roleAt = async (replica: TestReplica): Promise<string> => {
    const headers = { cookie: cookieFor(replica) }
    const response = await fetch(`${replica.gateway.origin}/admin/session`, { headers })
    return ((await response.json()) as SessionInfo).role
  }
  expect([await roleAt(first), await roleAt(second)]).toEqual(['owner', 'owner'])
  const headers = { cookie: cookieFor(first), origin: first.gateway.origin, 'x-dragoman-csrf': csrf }
  const signedOut = await fetch(`${first.gateway.origin}/admin/session`, { method: 'DELETE', headers })
  expect(signedOut.status).toBe(204)
  expect(await roleAt(first)).toBe('viewer')
  await expect.poll(() => roleAt(second)).toBe('viewer')
})
