import { setTimeout as sleep } from 'node:timers/promises'
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CELLS, type RunningCell, startCell } from '../../support/cells.ts'
import { type TestClient, textOf } from '../../support/client.ts'
import { startRelay } from '../../support/relay.ts'

const LEGACY = CELLS.filter(({ client }) => client === 'SDK v1' || client === 'SDK v2 legacy')
const PATHS = ['/sse', '/mcp', '/mcp/default/sse']

describe.each(LEGACY.flatMap(cell => PATHS.map(path => ({ ...cell, path }))))(
  '$client over SSE at $path with $server',
  cell => {
    let running: RunningCell
    let client: TestClient
    let url: string
    beforeAll(async () => {
      running = await startCell(cell)
      url = new URL(cell.path, running.url).href
      client = await running.connect({ sse: true, url })
    })
    afterAll(() => running.close())

    it('lists and calls', async () => {
      expect(await client.toolNames()).toContain('test_simple_text')
      expect(textOf(await client.call('test_simple_text'))).toContain('simple text')
      expect((await client.call('test_error_handling')).isError).toBe(true)
      await expect(client.call('no_such_tool')).rejects.toMatchObject({ code: -32602 })
      expect(await client.read('test://static-text')).toContain('"text":')
    })

    it('hears of progress before the result', async () => {
      const heard: number[] = []
      await client.call('test_tool_with_progress', {}, { onProgress: ({ progress }) => heard.push(progress) })
      // Both SDKs stop listening for progress when they see the answer, and they see all of a chunk at once.
      expect(heard.slice(0, 2)).toEqual([0, 50])
    })

    it('is asked, and its answers reach the tool', async () => {
      const asked = await running.connect({ sse: true, url })
      expect(textOf(await asked.call('test_input_required_result_elicitation'))).toContain('Ada')
      expect(textOf(await asked.call('test_input_required_result_sampling'))).toContain('Paris')
      expect(asked.asked.map(({ method }) => method)).toEqual(['elicitation/create', 'sampling/createMessage'])
    })

    it('hears of what it watches', async () => {
      await client.watch('test://watched-resource')
      const trigger = cell.server === 'demo' ? 'test_trigger_resource_update' : 'change_watched_resource'
      await client.call(trigger)
      const { params } = await client.notices.next('notifications/resources/updated')
      expect(params.uri).toBe('test://watched-resource')
    })

    it('cancels', async () => {
      const leaving = new AbortController()
      const call = client.call(
        'test_tool_with_progress',
        {},
        {
          signal: leaving.signal,
          onProgress: () => leaving.abort(),
        },
      )
      await expect(call).rejects.toThrow()
      expect(textOf(await client.call('test_simple_text'))).toContain('simple text')
    })
  },
)

describe('an SDK client over SSE', () => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell({ client: 'SDK v1', server: 'demo' })
  })
  afterAll(() => running.close())

  it.concurrent.for(['/sse', '/mcp'])(
    'that is cut off from %s comes back without a handshake and goes on where it was',
    async (path, { expect }) => {
      const relay = await startRelay(new URL(path, running.url).href)
      const client = await running.connect({ sse: true, url: relay.url })
      expect(await client.toolNames()).toContain('test_structured_content')
      const opened = () => client.requests.filter(({ method }) => method === 'GET').length
      relay.cut()
      await expect.poll(opened, { timeout: 10_000 }).toBe(2)
      // It knows the output schema of that tool and would not take a result in the manner of an older revision.
      // One sent before the new endpoint is known goes to the channel that was cut, and nobody hears its answer.
      const called = () =>
        Promise.race([client.call('test_structured_content').then(textOf, () => 'not yet'), sleep(500, 'not yet')])
      await expect.poll(called, { timeout: 8000 }).toContain('sunny')
      await client.close()
      await relay.close()
    },
  )

  it.each(['legacy', 'auto'] as const)('of the second generation, mode %s, falls back to SSE at /sse', async mode => {
    const url = new URL('/sse', running.url)
    const make = () => new Client({ name: 'falls-back', version: '1' }, { versionNegotiation: { mode } })
    const streamable = make()
    await expect(streamable.connect(new StreamableHTTPClientTransport(url))).rejects.toThrow()
    await streamable.close()
    const client = make()
    await client.connect(new SSEClientTransport(url))
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('example-ping')
    expect((await client.callTool({ name: 'example-ping' })).content).toEqual([{ type: 'text', text: 'pong' }])
    await client.close()
  })
})
