import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ALL_CAPABILITIES, obliging } from '../../support/client.ts'
import { startReplicas } from '../../support/replicas.ts'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' } } as const

describe.each(Object.entries(MODES))(
  '`dragoman stdio` for a %s client, each request at another of three replicas',
  (_, mode) => {
    let cluster: Awaited<ReturnType<typeof startReplicas>>
    let data: string
    const client = new Client(
      { name: 'stdio', version: '1' },
      { capabilities: ALL_CAPABILITIES, versionNegotiation: { mode } },
    )
    const asked: string[] = []
    // The client drops progress that it reads together with the result, so the messages themselves are looked at.
    const received: unknown[] = []
    for (const method of ['elicitation/create', 'sampling/createMessage'] as const)
      client.setRequestHandler(method, async ({ params = {} }) => {
        asked.push(method)
        return (await obliging({ method, params })) as never
      })

    beforeAll(async () => {
      cluster = await startReplicas({ size: 3 })
      data = await mkdtemp(join(tmpdir(), 'dragoman-stdio-'))
      const daemon = { origin: cluster.balancer.origin, pid: process.pid, token: 'none is needed' }
      await writeFile(join(data, 'daemon.json'), JSON.stringify(daemon))
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [MAIN, 'stdio', '--data', data],
        stderr: 'ignore',
      })
      await client.connect(transport)
      const { onmessage } = transport
      transport.onmessage = message => {
        received.push(message)
        onmessage?.(message)
      }
    })
    afterAll(async () => {
      await client.close()
      await cluster.close()
      await rm(data, { recursive: true, force: true })
    })
    const call = async (name: string, args: Record<string, unknown> = {}, options = {}): Promise<string> =>
      JSON.stringify((await client.callTool({ name, arguments: args }, options)).content)

    test('calls', async () => {
      const texts = await Promise.all(
        Array.from({ length: 12 }, (_, at) => call('example-echo', { message: `m${at}.` })),
      )
      expect(texts).toEqual(texts.map((_, at) => expect.stringContaining(`m${at}.`)))
    })

    test('progress', async () => {
      await call('test_tool_with_progress', {}, { onprogress: () => {} })
      const ofProgress = [0, 50].map(progress =>
        expect.objectContaining({
          method: 'notifications/progress',
          params: expect.objectContaining({ progress }),
        }),
      )
      expect(received).toEqual(expect.arrayContaining(ofProgress))
    })

    test('elicitation and sampling', async () => {
      for (let at = 0; at < 3; at++) {
        expect(await call('test_elicitation', { message: 'Who?' })).toContain('Ada')
        expect(await call('test_sampling', { prompt: 'Where?' })).toContain('Paris')
      }
      expect(asked).toHaveLength(6)
    })

    test('cancellation', async () => {
      for (let at = 0; at < 3; at++) {
        const stop = new AbortController()
        const cancelled = expect(call('test_reconnection', {}, { signal: stop.signal })).rejects.toThrow()
        await expect.poll(() => cluster.replicas.some(({ gateway }) => gateway.load().calls > 0)).toBe(true)
        stop.abort()
        await cancelled
        await expect.poll(() => cluster.replicas.map(({ gateway }) => gateway.load().calls)).toEqual([0, 0, 0])
      }
    })
  },
)
