import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClientKind, ClientOptions, TestClient } from '../../support/client.ts'
import { obliging, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startTestGateway } from '../../support/gateway.ts'
import type { Journal } from '../../support/servers/journal.ts'
import { start } from '../../support/servers/sdk-v1-sse.ts'

const SESSIONS: readonly ClientKind[] = ['SDK v1', 'SDK v2 legacy']

/** A server on SSEServerTransport of SDK v1, and the gateway before it. */
const startBoth = async (kind: ClientKind) => {
  const server = await start()
  const gateway = await startTestGateway(server.url)
  const clients: TestClient[] = []
  const connect = async (options: Partial<ClientOptions> = {}): Promise<TestClient> => {
    const all = { url: gateway.url, ...options }
    const client = await (kind === 'SDK v1' ? connectV1(all) : connectV2(kind, all))
    clients.push(client)
    return client
  }
  const close = async (): Promise<void> => {
    await Promise.all(clients.map(client => client.close().catch(() => undefined)))
    await gateway.close()
    await server.close()
  }
  return { journal: server.journal, connect, close }
}

describe.each<ClientKind>([...SESSIONS, 'SDK v2 modern'])('%s', kind => {
  let both: Awaited<ReturnType<typeof startBoth>>
  let journal: Journal
  let client: TestClient
  beforeAll(async () => {
    both = await startBoth(kind)
    journal = both.journal
    client = await both.connect()
  })
  afterAll(() => both.close())

  it('lists, reads and calls', async () => {
    expect(client.serverName).toBe('everything-v1')
    expect(await client.toolNames()).toContain('test_simple_text')
    expect(await client.resourceUris()).toContain('test://static-text')
    expect(await client.read('test://static-text')).toContain('"text":')
    expect(textOf(await client.call('test_simple_text'))).toContain('simple text')
    expect((await client.call('test_error_handling')).isError).toBe(true)
  })

  it('hears of progress', async () => {
    const heard: number[] = []
    await client.call('test_tool_with_progress', {}, { onProgress: ({ progress }) => heard.push(progress) })
    expect(heard).toEqual([0, 50, 100])
  })

  it('is asked by a tool, in as many rounds as it takes', async () => {
    const asking = await both.connect({
      answer: asked =>
        String(asked.params.message).startsWith('Step 2')
          ? { action: 'accept', content: { color: 'blue' } }
          : obliging(asked),
    })
    expect(textOf(await asking.call('test_input_required_result_elicitation'))).toContain('Ada')
    expect(textOf(await asking.call('test_input_required_result_sampling'))).toContain('Paris')
    expect(textOf(await asking.call('test_input_required_result_list_roots'))).toContain('file:///home/ada')
    expect(textOf(await asking.call('test_input_required_result_multi_round'))).toContain('blue')
    expect(asking.asked.map(({ method }) => method)).toEqual([
      'elicitation/create',
      'sampling/createMessage',
      'roots/list',
      'elicitation/create',
      'elicitation/create',
    ])
  })

  it('runs many calls at once on one channel', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => client.call('test_simple_text')))
    expect(results.map(textOf)).toEqual(Array(20).fill('This is a simple text response for testing.'))
  })

  it('hears of changes', async () => {
    await client.watch('test://watched-resource')
    await journal.seen({ kind: 'subscribed', uri: 'test://watched-resource' })
    await client.call('change_watched_resource')
    const { params } = await client.notices.next('notifications/resources/updated')
    expect(params.uri).toBe('test://watched-resource')
  })
})

it.each(SESSIONS)('the channel of %s ends when it leaves', async kind => {
  const { connect, journal, close } = await startBoth(kind)
  const client = await connect()
  await client.toolNames()
  const last = journal.entries.findLast(entry => entry.kind === 'opened')
  await client.close()
  expect(
    await journal.seen({ kind: 'ended', session: String(last && 'session' in last && last.session) }),
  ).toBeDefined()
  await close()
})
