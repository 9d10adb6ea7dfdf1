import { describe, expect, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { clientOf, SERVERS, serverOf } from '../../matrix/cells.ts'
import { remoteConfig, type Tool } from '../../matrix/server.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { amongMany } from './many.ts'

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
const TEXT = { content: [{ type: 'text', text: 'done' }] }
const MODERN = clientOf('2026-07-28')

/** A server as it is, except for what its entry says. */
const startWith = (start: (typeof SERVERS)[number]['start'], changes: Partial<ServerConfig>) => async () => {
  const server = await start()
  return { ...server, config: { ...server.config, ...changes } as ServerConfig }
}

// At the same time: most of each is silence.
describe.concurrent('a call through a workspace is given up after the silence its server is allowed, and progress is no silence', () => {
  test.each(SERVERS)('$name', async ({ start }) => {
    const servers = { patient: startWith(start, { timeoutMs: 1000 }), other: serverOf('2026-07-28').start }
    await amongMany(servers, {}, async ({ servers, client }) => {
      const progressing: Tool = async call => {
        for (let i = 1; i <= 7; i++) {
          await pause(200)
          call.progress(i)
        }
        return TEXT
      }
      servers.patient?.tools.set('progressing', progressing)
      servers.patient?.tools.set('silent', () => new Promise(() => {}))
      const caller = await client(MODERN)
      const meta = { progressToken: 'mine' }
      const call = (tool: string) => caller.call('tools/call', { name: `patient__${tool}`, arguments: {} }, { meta })
      const [well, ill] = await Promise.all([call('progressing'), call('silent')])
      expect(well.result).toMatchObject(TEXT)
      expect(well.notices.length).toBeGreaterThan(0)
      expect(ill.error).toMatchObject({
        code: -32603,
        message: 'Server "patient" was silent for 1 s after tools/call',
        data: { reason: 'upstream_timeout', upstream: 'patient' },
      })
    })
  })
})

describe('a server with a limit', () => {
  test('never has more calls at a time, and all are answered', async () => {
    const servers = {
      narrow: startWith(serverOf('2025-06-18').start, { concurrency: 2 }),
      b: serverOf('2026-07-28').start,
    }
    await amongMany(servers, {}, async ({ servers, client, gateway }) => {
      let [running, most] = [0, 0]
      servers.narrow?.tools.set('work', async () => {
        most = Math.max(most, ++running)
        await pause(20)
        running--
        return TEXT
      })
      const caller = await client(clientOf('2025-11-25'))
      const calls = Array.from({ length: 20 }, () => caller.call('tools/call', { name: 'narrow__work', arguments: {} }))
      for (const { result } of await Promise.all(calls)) expect(result).toMatchObject(TEXT)
      expect([most, running]).toEqual([2, 0])
      const [status] = (await gateway()).status()
      expect(status?.servers[0]?.figures).toMatchObject({ running: 0, waiting: 0 })
    })
  })

  /** Asks a person by both manners; settles when the question is with the client, which does not answer it. */
  const ASKERS = {
    modern: async (url: string) => {
      const params = { name: 'narrow__asking', arguments: {} }
      const { json } = await send(url, modern(1, 'tools/call', params, { capabilities: { elicitation: {} } }))
      expect(json.result?.resultType).toBe('input_required')
      return () => {}
    },
    legacy: async (url: string) => {
      const { headers } = await openSession(url, '2025-06-18', { elicitation: {} })
      const params = { name: 'narrow__asking', arguments: {} }
      const stream = await openStream(url, { headers, body: { jsonrpc: '2.0', id: 7, method: 'tools/call', params } })
      expect((await stream.next())?.json.method).toBe('elicitation/create')
      return () => stream.close()
    },
  }

  test.each(['modern', 'legacy'] as const)('may be called while a person is asked (%s)', async manner => {
    const narrow = startWith(serverOf('2025-06-18').start, { concurrency: 1 })
    await amongMany({ narrow, b: serverOf('2026-07-28').start }, {}, async ({ servers, client, gateway }) => {
      const question = { message: 'well?', requestedSchema: { type: 'object', properties: {} } }
      servers.narrow?.tools.set('quick', () => TEXT)
      servers.narrow?.tools.set('asking', async call => {
        await call.ask('q', 'elicitation/create', question)
        return TEXT
      })
      const leave = await ASKERS[manner]((await gateway()).url())
      const other = await client(MODERN)
      expect((await other.call('tools/call', { name: 'narrow__quick', arguments: {} })).result).toMatchObject(TEXT)
      leave()
    })
  })
})

describe('what an operator sees', () => {
  test('the state of each server, why and since when, and what was counted', async () => {
    const configs = [remoteConfig('http://127.0.0.1:1/mcp', 'gone')]
    await amongMany({ a: serverOf('2026-07-28').start }, { configs }, async ({ gateway }) => {
      const get = async (path: string) => (await send((await gateway()).origin + path, { method: 'GET' })).text
      const ready = JSON.parse(await get('/readyz'))
      expect(ready.status).toBe('ready')
      expect(ready.servers).toEqual([
        {
          name: 'a',
          state: 'ready',
          since: expect.stringMatching(TIME),
          revision: '2026-07-28',
          tools: 0,
          toolSize: { bytes: 0, tokens: 0 },
          largestTools: [],
        },
        {
          name: 'gone',
          state: 'down',
          since: expect.stringMatching(TIME),
          reason: expect.stringContaining('ECONNREFUSED'),
          retryAt: expect.stringMatching(TIME),
        },
      ])
      const lines = (await get('/metrics')).split('\n')
      expect(lines).toEqual(
        expect.arrayContaining([
          'dragoman_server_state{server="a",state="ready"} 1',
          'dragoman_server_state{server="a",state="down"} 0',
          'dragoman_server_state{server="gone",state="down"} 1',
          'dragoman_server_breaker_openings_total{server="gone"} 1',
          'dragoman_server_retries_total{server="a"} 0',
          'dragoman_server_calls_waiting{server="a"} 0',
        ]),
      )
    })
  })
})

const TIME = /^\d{4}-\d\d-\d\dT.*Z$/
