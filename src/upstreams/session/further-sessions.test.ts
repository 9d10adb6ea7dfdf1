import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FakeSession } from '../../../test/support/fake-session.ts'
import { closeAll, connectSmall } from '../../../test/support/processes.ts'
import {
  callerOf,
  exchangeWith,
  legacy,
  result,
  scriptedServer,
  sendJson,
} from '../../../test/support/scripted-server.ts'
import type { SessionPooling } from '../../config/snapshot.ts'
import { SILENT } from '../../telemetry/log.ts'
import { connectRemote } from '../connect-remote.ts'
import { poolPlace, SessionPool } from './pool.ts'

const MINUTE = 60_000
const ana = callerOf({ principal: 'ana' })

describe('a further session of the same kind', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const createPool = () => {
    const open: string[] = []
    const pool = new SessionPool({
      name: 'far',
      idleMs: 30 * MINUTE,
      placeOf: (caller, index) => poolPlace(caller, 'sticky', index),
      open: async ({ principal }, { index, onClosed }) => {
        const name = `${principal} ${index}`
        open.push(name)
        return new FakeSession(async () => {
          open.splice(open.indexOf(name), 1)
          onClosed(Promise.resolve())
        })
      },
    })
    return { pool, open }
  }

  it('is another one for each index, and the same one for the same index', async () => {
    const { pool } = createPool()
    const peers = [await pool.open(ana), await pool.open(ana, 1), await pool.open(ana, 2)]
    expect(new Set(peers).size).toBe(3)
    expect(await pool.open(ana, 1)).toBe(peers[1])
    expect(await pool.open(ana, 0)).toBe(peers[0])
    await pool.close()
  })

  it('is closed after a minute without use; the first session is not', async () => {
    const { pool, open } = createPool()
    await pool.open(ana)
    await pool.open(ana, 1)
    await vi.advanceTimersByTimeAsync(MINUTE)
    expect(open).toEqual(['ana 0', 'ana 1'])
    await vi.advanceTimersByTimeAsync(MINUTE)
    expect(open).toEqual(['ana 0'])
    await vi.advanceTimersByTimeAsync(30 * MINUTE)
    expect(open).toEqual([])
    await pool.close()
  })
})

it.each<SessionPooling>(['sticky', 'stateless'])('the key of a %s server tells further sessions apart', manner => {
  const keys = [0, 1, 2].map(index => poolPlace(ana, manner, index).key)
  expect(new Set(keys).size).toBe(3)
})

it('a further process is refused at once if the limit is reached, so that its caller can wait instead', async () => {
  const { open, upstream } = connectSmall({ era: 'legacy' }, { limits: { processes: 2 } })
  const peers = [await open(ana), await upstream.open(ana, 1)]
  for (const peer of peers) exchangeWith(peer, 'tools/call', { caller: ana, params: { name: 'wait' } })
  expect(upstream.status().processes).toHaveLength(2)
  await expect(upstream.open(ana, 2)).rejects.toThrow('2 processes already')
  await closeAll()
})

it('a server that grants only one session is not taken to be down', async () => {
  let greeted = 0
  const answers = legacy(({ body }, response) => {
    if (body.id === undefined) response.writeHead(202).end()
    else sendJson(response, result(body.id, { ok: true }))
  })
  const server = await scriptedServer((arrived, response) => {
    if (arrived.body.method === 'initialize' && ++greeted > 1) return void response.writeHead(503).end()
    answers(arrived, response)
  })
  const upstream = connectRemote(
    { name: 'far', kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'legacy', timeoutMs: 2000 },
    { log: SILENT },
  )
  await upstream.open(ana)
  await expect(upstream.open(ana, 1)).rejects.toThrow('503')
  const peer = await upstream.open(ana)
  expect(await exchangeWith(peer, 'tools/call', { caller: ana }).result()).toMatchObject({ ok: true })
  await upstream.close()
  await server.close()
})
