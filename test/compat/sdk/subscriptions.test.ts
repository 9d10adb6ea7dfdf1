import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CELLS, FIXTURE_CELLS, type RunningCell, startCell } from '../../support/cells.ts'

const WATCHED = 'test://watched-resource'

describe.each(CELLS)('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell)
  })
  afterAll(() => running.close())

  it('hears that the tools changed, and so does every other client', async () => {
    const [client, other] = [await running.connect(), await running.connect()]
    await Promise.all([client.watch(WATCHED), other.watch(WATCHED)])
    await client.call('test_trigger_tool_change')
    expect(await client.notices.next('notifications/tools/list_changed')).toBeDefined()
    expect(await other.notices.next('notifications/tools/list_changed')).toBeDefined()
  })

  it('hears that the prompts changed, and nothing of tools', async () => {
    const client = await running.connect()
    await client.watch(WATCHED)
    await client.call('test_trigger_prompt_change')
    expect(await client.notices.next('notifications/prompts/list_changed')).toBeDefined()
    expect(client.notices.pending('notifications/tools/list_changed')).toEqual([])
  })
})

describe.each(FIXTURE_CELLS)('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell)
  })
  afterAll(() => running.close())

  it('hears of the resource it watches, and reads what it became', async () => {
    const client = await running.connect()
    await client.watch(WATCHED)
    const before = await client.read(WATCHED)
    await client.call('change_watched_resource')
    const notice = await client.notices.next('notifications/resources/updated')
    expect(notice.params.uri).toBe(WATCHED)
    expect(await client.read(WATCHED)).not.toBe(before)
  })

  it('sees the tool that was added when it lists again', async () => {
    const client = await running.connect()
    await client.watch(WATCHED)
    const before = await client.toolNames()
    await client.call('test_trigger_tool_change')
    await client.notices.next('notifications/tools/list_changed')
    expect(await client.toolNames()).toEqual([...before, 'test_added_tool'])
  })

  it('hears nothing of a resource it does not watch', async () => {
    const client = await running.connect()
    const other = await running.connect()
    await client.watch('test://static-text')
    await other.watch(WATCHED)
    await client.call('change_watched_resource')
    await other.notices.next('notifications/resources/updated')
    // A later notice on the same stream proves that an earlier one would have arrived.
    await client.call('test_trigger_prompt_change')
    await client.notices.next('notifications/prompts/list_changed')
    expect(client.notices.pending('notifications/resources/updated')).toEqual([])
  })
})
