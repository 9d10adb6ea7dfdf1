import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CELLS, FIXTURE_CELLS, type RunningCell, startCell } from '../../support/cells.ts'
import { textOf } from '../../support/client.ts'
import { type Relay, startRelay } from '../../support/relay.ts'

const WATCHED = 'test://watched-resource'
const isLegacy = (client: string): boolean => client === 'SDK v1' || client === 'SDK v2 legacy'

const openCell = (cell: (typeof CELLS)[number]) => {
  const state = {} as { running: RunningCell; relay: Relay }
  beforeAll(async () => {
    state.running = await startCell(cell)
  })
  afterAll(() => state.running.close())
  beforeEach(async () => {
    state.relay = await startRelay(state.running.url)
  })
  afterEach(() => state.relay.close())
  return state
}

describe.each(FIXTURE_CELLS.filter(({ client }) => isLegacy(client)))('$client with $server, cut off', cell => {
  const state = openCell(cell)

  it('comes back for the result of a call that went on without it', async () => {
    const client = await state.running.connect({ url: state.relay.url })
    const result = await client.call('wait', { ms: 500 }, { onProgress: () => state.relay.cut() })
    expect(textOf(result)).toBe('Waited')
    const entries = state.running.journal.entries.filter(entry => 'name' in entry && entry.name === 'wait')
    expect(entries.map(({ kind }) => kind)).toEqual(['called', 'answered'])
    expect(client.requests.some(({ headers }) => headers.has('last-event-id'))).toBe(true)
  })

  it('polls for its result, as without the gateway, where the server closes its stream in the middle of the call', async () => {
    const client = await state.running.connect()
    expect(textOf(await client.call('test_reconnection'))).toBe('Answered after the stream was closed')
    expect(client.requests.some(({ headers }) => headers.has('last-event-id'))).toBe(true)
  })

  it('hears of what changed while it was away', async () => {
    const client = await state.running.connect({ url: state.relay.url })
    const other = await state.running.connect()
    await client.watch(WATCHED)
    await other.call('change_watched_resource')
    await client.notices.next('notifications/resources/updated')
    state.relay.cut()
    await other.call('change_watched_resource')
    expect((await client.notices.next('notifications/resources/updated')).params.uri).toBe(WATCHED)
  })

  it('is asked a question that was open when it was cut off, once', async () => {
    const client = await state.running.connect({
      url: state.relay.url,
      answer: async () => {
        state.relay.cut()
        return { action: 'accept', content: { name: 'Ada' } }
      },
    })
    expect(textOf(await client.call('test_input_required_result_elicitation'))).toContain('Ada')
    expect(client.asked).toHaveLength(1)
  })
})

describe.each(CELLS.filter(({ client, server }) => isLegacy(client) && server === 'demo'))(
  '$client with demo',
  cell => {
    const state = openCell(cell)

    it('comes back for its result where the server ends its stream during the call', async () => {
      const client = await state.running.connect()
      expect(textOf(await client.call('test_reconnection'))).toBe('Reconnection test completed successfully')
      expect(client.requests.some(({ headers }) => headers.has('last-event-id'))).toBe(true)
    })
  },
)

describe.each(FIXTURE_CELLS.filter(({ client }) => !isLegacy(client)))('$client with $server, cut off', cell => {
  const state = openCell(cell)

  it('has its call cancelled on the server, and can go on', async () => {
    const client = await state.running.connect({ url: state.relay.url })
    // This SDK leaves the call pending until its own timeout, so only the server's side can be waited for.
    void client.call('wait', {}, { onProgress: () => state.relay.cut() }).catch(() => undefined)
    expect(await state.running.journal.seen({ kind: 'cancelled', name: 'wait' })).toBeDefined()
    expect(textOf(await client.call('test_simple_text'))).toContain('simple text')
  })

  it('knows that it no longer listens, and can listen again', async () => {
    const client = await state.running.connect({ url: state.relay.url })
    const { lost } = await client.watch(WATCHED)
    state.relay.cut()
    await lost
    await client.watch(WATCHED)
    await client.call('change_watched_resource')
    expect((await client.notices.next('notifications/resources/updated')).params.uri).toBe(WATCHED)
  })
})
