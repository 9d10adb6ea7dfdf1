import { mkdtemp, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestLog, type TestLog } from '../../test/support/log.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import { createInboundAuth, type InboundAuth } from './inbound-auth.ts'
import { changeSharedTokens, openSharedTokenStore, readSharedTokens } from './shared-tokens.ts'
import { createSecret, hashSecret, type Token } from './token.ts'
import { changeTokens, tokenFilePath } from './token-file.ts'

let log: TestLog
let cluster: MemoryCluster
let stores: StateStore[]
const opened: InboundAuth[] = []
beforeEach(() => {
  log = createTestLog()
  cluster = new MemoryCluster()
  stores = [cluster.join(), cluster.join()]
})
afterEach(async () => {
  for (const inbound of opened.splice(0)) await inbound.close()
})

const tokenOf = (secret: string, id = 'one'): Token => ({
  ...{ id, name: 'test', hash: hashSecret(secret), principal: id, workspaces: ['*'] },
  created: new Date().toISOString(),
})
const first = (): StateStore => stores[0] as StateStore
const { shared: noSignIns } = new MemoryCluster().join()
const openAll = (data?: string): Promise<InboundAuth[]> =>
  Promise.all(
    stores.map(async ({ shared, members }) => {
      const about = { host: '127.0.0.1', isLoopback: true, data, documents: noSignIns, log: log.log }
      const inbound = await createInboundAuth({
        ...about,
        cluster: { shared, hasTokens: true, replicas: () => members.all().length },
      })
      opened.push(inbound)
      return inbound
    }),
  )
const request = (secret?: string) => ({
  headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` },
  socket: new Socket(),
})
const kinds = (gateways: readonly InboundAuth[], secret?: string): unknown[] =>
  gateways.map(({ admit }) => (admit(request(secret), 'default') as { kind: string }).kind)

describe('tokens in the store', () => {
  it('that could not be read at the start are read when the store is back: without any, callers are admitted', async () => {
    const { shared, members } = first()
    let isAway = true
    const document: typeof shared.document = name =>
      isAway ? Promise.reject(new Error('no answer')) : shared.document(name)
    const slow = { ...shared, document, on: shared.on.bind(shared), writeDocument: shared.writeDocument.bind(shared) }
    const about = { host: '127.0.0.1', isLoopback: true, data: undefined, documents: shared, log: log.log }
    const cluster = { shared: slow as typeof shared, hasTokens: true, replicas: () => members.all().length }
    const inbound = await createInboundAuth({ ...about, cluster })
    opened.push(inbound)
    expect(kinds([inbound])).toEqual(['out'])
    isAway = false
    await vi.waitFor(() => expect(kinds([inbound])).toEqual(['in']), 3000)
  })

  it('are required at every replica as soon as there is one, and revoked everywhere', async () => {
    const gateways = await openAll()
    expect(kinds(gateways)).toEqual(['in', 'in'])
    const secret = createSecret()
    await changeSharedTokens(first().shared, tokens => [...tokens, tokenOf(secret)])
    await vi.waitFor(() => expect(kinds(gateways)).toEqual(['out', 'out']))
    expect(kinds(gateways, secret)).toEqual(['in', 'in'])
    const ended = vi.fn()
    for (const { tokens, admit } of gateways)
      tokens.onRevoked((admit(request(secret), 'default') as { token: string }).token, ended)
    await changeSharedTokens(first().shared, () => [])
    await vi.waitFor(() => expect(kinds(gateways, secret)).toEqual(['out', 'out']))
    expect(ended).toHaveBeenCalledTimes(2)
  })

  it('are those of the data directory at first, and never again', async () => {
    const data = await mkdtemp(join(tmpdir(), 'dragoman-shared-tokens-'))
    try {
      const secret = createSecret()
      await changeTokens(tokenFilePath(data), () => [tokenOf(secret)])
      expect(kinds(await openAll(data), secret)).toEqual(['in', 'in'])
      await changeSharedTokens(first().shared, () => [])
      expect(kinds(await openAll(data), secret)).toEqual(['out', 'out'])
    } finally {
      await rm(data, { recursive: true })
    }
  })

  it('keep the changes of programs that change them at the same time', async () => {
    const ids = Array.from({ length: 8 }, (_, at) => `t${at}`)
    await Promise.all(
      ids.map((id, at) =>
        changeSharedTokens((stores[at % 2] as StateStore).shared, tokens => [...tokens, tokenOf(createSecret(), id)]),
      ),
    )
    expect((await readSharedTokens(first().shared))?.map(({ id }) => id).sort()).toEqual(ids)
  })

  it('stay valid while the store cannot be read, and follow it afterwards', async () => {
    const secret = createSecret()
    await changeSharedTokens(first().shared, () => [tokenOf(secret)])
    const { shared } = first()
    const store = await openSharedTokenStore(shared, log.log, undefined)
    const read = vi.spyOn(shared, 'document').mockRejectedValue(new Error('the store is away'))
    shared.notify('tokens')
    await log.saw(({ level }) => level === 'error')
    expect(store.tokens.size).toBe(1)
    read.mockRestore()
    await changeSharedTokens(shared, () => [])
    await vi.waitFor(() => expect(store.tokens.size).toBe(0))
    expect(store.exists).toBe(true)
    store.close()
  })

  it('admit no caller if they could not be read at the start', async () => {
    for (const { shared } of stores) vi.spyOn(shared, 'document').mockRejectedValueOnce(new Error('the store is away'))
    const gateways = await openAll()
    for (const { admit } of gateways)
      for (const secret of [undefined, createSecret()])
        expect(admit(request(secret), 'default')).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
    expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(2)
  })

  it('that are damaged stop the start with a message, without their content', async () => {
    await first().shared.writeDocument('tokens', Buffer.from('{"version":1,"tokens":[{"hash":"secret"}]}'), 0)
    await expect(openAll()).rejects.toThrow('the token document of the store is broken at tokens.0.id')
  })
})
