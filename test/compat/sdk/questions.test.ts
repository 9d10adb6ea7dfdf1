import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CELLS, type RunningCell, startCell } from '../../support/cells.ts'
import { obliging, textOf } from '../../support/client.ts'

describe.each(CELLS)('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell)
  })
  afterAll(() => running.close())

  it('has the person asked, and their answer reaches the tool', async () => {
    const client = await running.connect()
    const result = await client.call('test_input_required_result_elicitation')
    expect(client.asked).toMatchObject([
      {
        method: 'elicitation/create',
        params: { message: 'What is your name?', requestedSchema: { properties: { name: { type: 'string' } } } },
      },
    ])
    expect(textOf(result)).toContain('Ada')
  })

  it('has its model asked', async () => {
    const client = await running.connect()
    const result = await client.call('test_input_required_result_sampling')
    expect(client.asked).toMatchObject([{ method: 'sampling/createMessage', params: { maxTokens: 100 } }])
    expect(textOf(result)).toContain('Paris')
  })

  it('is asked for its roots', async () => {
    const client = await running.connect()
    const result = await client.call('test_input_required_result_list_roots')
    expect(client.asked.map(({ method }) => method)).toEqual(['roots/list'])
    expect(textOf(result)).toContain('file:///home/ada')
  })

  it('is asked three things of one call', async () => {
    const client = await running.connect()
    const result = await client.call('test_input_required_result_multiple_inputs')
    const methods = client.asked.map(({ method }) => method).sort()
    expect(methods).toEqual(['elicitation/create', 'roots/list', 'sampling/createMessage'])
    expect(textOf(result)).toContain('Ada')
    expect(result.isError).toBe(false)
  })

  it('is asked again in a second round', async () => {
    const client = await running.connect({
      answer: asked =>
        String(asked.params.message).startsWith('Step 2')
          ? { action: 'accept', content: { color: 'blue' } }
          : obliging(asked),
    })
    const result = await client.call('test_input_required_result_multi_round')
    expect(client.asked.map(({ params }) => String(params.message).slice(0, 6))).toEqual(['Step 1', 'Step 2'])
    expect(textOf(result)).toContain('Ada')
    expect(textOf(result)).toContain('blue')
  })

  it('is asked while a prompt is being made', async () => {
    const client = await running.connect()
    expect(await client.prompt('test_input_required_result_prompt')).toContain('Ada')
    expect(client.asked).toHaveLength(1)
  })

  it('may take its time to answer while other calls go on', async () => {
    let release = () => {}
    const decided = new Promise<void>(resolve => {
      release = resolve
    })
    const client = await running.connect({
      answer: async asked => {
        await decided
        return obliging(asked)
      },
    })
    const slow = client.call('test_input_required_result_elicitation')
    expect(textOf(await client.call('test_simple_text'))).toContain('simple text')
    release()
    expect(textOf(await slow)).toContain('Ada')
  })

  it('answers for itself alone, however many ask at once', async () => {
    const names = ['Ada', 'Grace', 'Mary']
    const clients = await Promise.all(
      names.map(name => running.connect({ answer: () => ({ action: 'accept', content: { name } }) })),
    )
    const results = await Promise.all(clients.map(client => client.call('test_input_required_result_elicitation')))
    expect(results.map(textOf).map((text, index) => text.includes(String(names[index])))).toEqual([true, true, true])
  })

  it('may decline', async () => {
    const client = await running.connect({ answer: () => ({ action: 'decline' }) })
    const result = await client.call('test_input_required_result_elicitation')
    expect(textOf(result)).not.toContain('Ada')
    expect(client.asked).toHaveLength(1)
  })

  it('is not asked what it cannot answer', async () => {
    const client = await running.connect({ capabilities: { sampling: {} } })
    await client.call('test_input_required_result_capabilities')
    expect(client.asked.map(({ method }) => method)).toEqual(['sampling/createMessage'])
  })
})

describe.each(CELLS.filter(({ client }) => client === 'SDK v2 modern'))('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell)
  })
  afterAll(() => running.close())

  it('is told which capability it lacks', async () => {
    const client = await running.connect({ capabilities: {} })
    await expect(client.call('test_missing_capability')).rejects.toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { sampling: {} } },
    })
  })
})
