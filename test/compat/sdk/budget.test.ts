import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CELLS, FIXTURE_CELLS, type RunningCell, startCell } from '../../support/cells.ts'
import { type TestClient, textOf } from '../../support/client.ts'

// Real clients find and call tools that the budget of a workspace hides.

const RULES = { budget: { tokens: 500, favourites: ['server/test_simple_text'] } }
const ELICITATION = 'test_input_required_result_elicitation'

describe.each(CELLS)('$client with $server', cell => {
  let running: RunningCell
  let client: TestClient
  beforeAll(async () => {
    running = await startCell(cell, RULES)
    client = await running.connect()
  })
  afterAll(() => running.close())

  const through = (name: string, given: Record<string, unknown> = {}) => ({ name, arguments: given })

  it('lists the tools of the gateway and the favourites', async () => {
    expect(await client.toolNames()).toEqual(['search_tools', 'describe_tool', 'call_tool', 'test_simple_text'])
  })

  it('finds a hidden tool, reads its definition and calls it', async () => {
    const found = textOf(await client.call('search_tools', { query: 'report progress while a tool works' }))
    expect(found).toContain('test_tool_with_progress')
    const described = textOf(await client.call('describe_tool', { name: 'test_tool_with_progress' }))
    expect(JSON.parse(described)).toMatchObject({ name: 'test_tool_with_progress', inputSchema: { type: 'object' } })
    expect(await client.call('call_tool', through('test_simple_text'))).toEqual(await client.call('test_simple_text'))
  })

  it('hears of progress in order and before the result', async () => {
    const heard: number[] = []
    await client.call('call_tool', through('test_tool_with_progress'), {
      onProgress: ({ progress }) => heard.push(progress),
    })
    expect(heard.length).toBeGreaterThan(1)
    expect(heard).toEqual([...heard].sort((a, b) => a - b))
  })

  it('is asked, and its answers reach the tool', async () => {
    const asked = await running.connect()
    expect(textOf(await asked.call('call_tool', through(ELICITATION)))).toContain('Ada')
    expect(asked.asked.map(({ method }) => method)).toEqual(['elicitation/create'])
    const hidden = await running.connect()
    expect(textOf(await hidden.call(ELICITATION))).toContain('Ada')
  })

  it('reads a failure of the tool as a result', async () => {
    expect((await client.call('call_tool', through('test_error_handling'))).isError).toBe(true)
  })

  it('is told the nearest names of a tool that does not exist', async () => {
    await expect(client.call('call_tool', through('test_simple_txt'))).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Did you mean test_simple_text'),
    })
  })
})

describe.each(FIXTURE_CELLS)('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell, RULES)
  })
  afterAll(() => running.close())

  it('cancels a call through the gateway, and the server sees it', async () => {
    const client = await running.connect()
    const giveUp = new AbortController()
    const options = { signal: giveUp.signal, onProgress: () => giveUp.abort('no longer needed') }
    await expect(client.call('call_tool', { name: 'wait', arguments: {} }, options)).rejects.toThrow('no longer needed')
    expect(await running.journal.seen({ kind: 'cancelled', name: 'wait' })).toBeDefined()
  })
})
