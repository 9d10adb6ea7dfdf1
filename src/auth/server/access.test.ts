import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import type { Shared } from '../../stores/state/state-store.ts'
import { createInboundAuth, type InboundAuth } from '../inbound-auth.ts'
import { changeSharedTokens } from '../shared-tokens.ts'
import { createSecret, hashSecret, type Token } from '../token.ts'
import { createAccessOf } from './access.ts'
import { createGrantId } from './grant-tokens.ts'
import { Grants, type IssuedTokens } from './grants.ts'
import { OAuthRejection } from './oauth-rejection.ts'

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const SECRET = createSecret()
const TOKEN: Token = {
  ...{ id: 't1', name: 'laptop', hash: hashSecret(SECRET), principal: 'ada', workspaces: ['*'] },
  created: new Date().toISOString(),
}
const VERIFIER = 'v'.repeat(43)
const CONTENT = {
  ...{ client: 'c', redirectUri: 'https://app.example/cb', principal: 'ada' },
  subject: { kind: 'token', id: 't1' },
  ...{ scopes: ['mcp'], challenge: createHash('sha256').update(VERIFIER).digest('base64url') },
} as const
const PROOF = { client: 'c', redirectUri: undefined, verifier: VERIFIER, workspace: undefined }
const WISH = { client: 'c', scopes: undefined, baseScopes: ['mcp'], workspace: undefined }

/** Two replicas; `off` says what the second one does not get from the store. */
const start = async () => {
  const cluster = new MemoryCluster()
  const off = { documents: false, notices: false }
  const replica = async (isSecond: boolean) => {
    const store = cluster.join()
    const shared: Shared = {
      count: (...args) => store.shared.count(...args),
      document: name =>
        isSecond && off.documents ? Promise.reject(new Error('no answer')) : store.shared.document(name),
      writeDocument: (...args) => store.shared.writeDocument(...args),
      notify: topic => store.shared.notify(topic),
      on: (topic, listener) => store.shared.on(topic, () => (isSecond && off.notices ? undefined : listener())),
    }
    const { log } = createTestLog()
    const inbound: InboundAuth = await createInboundAuth({
      ...{ host: '127.0.0.1', isLoopback: true, documents: store.shared, log },
      cluster: { shared, hasTokens: true, replicas: () => 2 },
    })
    const accessOf = createAccessOf(inbound.apiTokens, { accessOf: async () => undefined })
    const sessions = { renew: async () => 'valid' as const }
    const grants = new Grants({ store, accessOf, sessions, record: () => {}, log })
    closing.push(
      () => inbound.close(),
      () => grants.close(),
    )
    return { store, accessOf, grants }
  }
  const first = await replica(false)
  const joinSecond = () => replica(true)
  const change = (tokens: readonly Token[]) => changeSharedTokens(first.store.shared, () => tokens)
  const connect = async (): Promise<IssuedTokens> =>
    first.grants.redeem(await first.grants.create(createGrantId(), CONTENT), PROOF)
  return { first, joinSecond, off, change, connect }
}

describe('a grant of an API token', () => {
  it('is kept by a replica that could not read the tokens yet, and is checked later', async () => {
    const { joinSecond, off, change, connect } = await start()
    await change([TOKEN])
    const { refresh = '', access } = await connect()
    off.documents = true
    const second = await joinSecond()
    for (const work of [() => second.grants.refresh(refresh, WISH), () => second.grants.findGrant(access)]) {
      const error: unknown = await work().catch((reason: unknown) => reason)
      expect(error).toMatchObject({ name: 'StateError', reason: 'away' })
    }
    off.documents = false
    expect(await second.grants.findGrant(access)).toMatchObject({ principal: 'ada' })
    expect(await second.grants.refresh(refresh, WISH)).toMatchObject({ scopes: ['mcp'] })
  })

  it('is valid at a replica that has not been told of the token yet', async () => {
    const { joinSecond, off, change, connect } = await start()
    await change([{ ...TOKEN, id: 'before', hash: hashSecret(createSecret()) }])
    const second = await joinSecond()
    off.notices = true
    await change([TOKEN])
    const { refresh = '', access } = await connect()
    expect(await second.grants.findGrant(access)).toMatchObject({ principal: 'ada' })
    expect(await second.grants.refresh(refresh, WISH)).toMatchObject({ scopes: ['mcp'] })
  })

  it('ends when the token was revoked', async () => {
    const { joinSecond, change, connect } = await start()
    await change([TOKEN])
    const { refresh = '', access } = await connect()
    const second = await joinSecond()
    await change([])
    expect(await second.grants.findGrant(access)).toBeUndefined()
    await expect(second.grants.refresh(refresh, WISH)).rejects.toBeInstanceOf(OAuthRejection)
    await change([TOKEN])
    await expect(second.grants.refresh(refresh, WISH)).rejects.toBeInstanceOf(OAuthRejection)
  })
})
