import { expect, it } from 'vitest'
import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { loadWhenOpened } from './load-when-opened.ts'

const CALLER = {} as Caller
const PEER = {} as Peer

/** A server that counts how often it is loaded and closed. */
const counted = () => {
  const counts = { loads: 0, closes: 0 }
  const upstream: Upstream = {
    open: async () => PEER,
    close: async () => {
      counts.closes++
    },
  }
  const load = async (): Promise<Upstream> => {
    counts.loads++
    return upstream
  }
  return { counts, server: loadWhenOpened('demo', load) }
}

it('is loaded once, by the first of several callers', async () => {
  const { counts, server } = counted()
  expect(counts.loads).toBe(0)
  expect(await Promise.all([server.open(CALLER), server.open(CALLER)])).toEqual([PEER, PEER])
  expect(counts.loads).toBe(1)
})

it('is closed if it was loaded, and not loaded to be closed', async () => {
  const { counts, server } = counted()
  await server.close()
  expect(counts).toEqual({ loads: 0, closes: 0 })
  const other = counted()
  await other.server.open(CALLER)
  await other.server.close()
  expect(other.counts).toEqual({ loads: 1, closes: 1 })
})

it('is closed if it was being loaded', async () => {
  const { counts, server } = counted()
  const opening = server.open(CALLER)
  await server.close()
  expect(counts).toEqual({ loads: 1, closes: 1 })
  await expect(opening).resolves.toBe(PEER)
})

it('is not loaded after it was closed', async () => {
  const { counts, server } = counted()
  await server.close()
  await expect(server.open(CALLER)).rejects.toThrow('Server "demo" is being disconnected')
  expect(counts).toEqual({ loads: 0, closes: 0 })
})

it('rejects as the module does that cannot be loaded, tries again, and can be closed then', async () => {
  let loads = 0
  const server = loadWhenOpened('demo', async () => {
    if (++loads < 3) throw new Error('no such file')
    return { open: async () => PEER, close: async () => {} }
  })
  await expect(server.open(CALLER)).rejects.toThrow('no such file')
  const again = Promise.allSettled([server.open(CALLER), server.open(CALLER)])
  expect((await again).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(loads).toBe(2)
  await expect(server.open(CALLER)).resolves.toBe(PEER)
  await expect(server.close()).resolves.toBeUndefined()
})
