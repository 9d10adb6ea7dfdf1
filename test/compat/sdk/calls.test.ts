import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CELLS, type RunningCell, startCell } from '../../support/cells.ts'
import { type TestClient, textOf } from '../../support/client.ts'

describe.each(CELLS)('$client with $server', cell => {
  let running: RunningCell
  let client: TestClient
  beforeAll(async () => {
    running = await startCell(cell)
    client = await running.connect()
  })
  afterAll(() => running.close())

  it('connects in the era it was told to, or else in the newer one', () => {
    const isLegacy = cell.client === 'SDK v1' || cell.client === 'SDK v2 legacy'
    expect(client.era).toBe(isLegacy ? 'legacy' : 'modern')
    expect(client.serverName).toBeTruthy()
  })

  it('lists tools, prompts, resources and templates by the server’s own names', async () => {
    expect(await client.toolNames()).toContain('test_simple_text')
    expect(await client.promptNames()).toContain('test_prompt_with_arguments')
    expect(await client.resourceUris()).toContain('test://static-text')
    expect(await client.templates()).toEqual(['test://template/{id}/data'])
  })

  it('calls a tool without arguments', async () => {
    const result = await client.call('test_simple_text')
    expect(result).toEqual({
      content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
      isError: false,
    })
  })

  it('gets every kind of content', async () => {
    const { content } = await client.call('test_multiple_content_types')
    expect(content.map(({ type }) => type)).toEqual(['text', 'image', 'resource'])
    const [sound] = (await client.call('test_audio_content')).content
    expect(Buffer.from(String(sound?.data), 'base64').toString('latin1')).toMatch(/^RIFF/)
  })

  it('reads a tool’s failure as a result', async () => {
    expect((await client.call('test_error_handling')).isError).toBe(true)
  })

  it('is refused a tool that does not exist', async () => {
    const outcome = await client.call('no_such_tool').then(
      ({ isError }) => ({ isError }),
      error => ({ code: error.code }),
    )
    expect(outcome).toEqual({ code: -32602 })
  })

  it('reads text, bytes and templates', async () => {
    expect(await client.read('test://static-text')).toContain('"text":')
    expect(await client.read('test://static-binary')).toContain('"blob":"iVBORw0KGgo')
    expect(await client.read('test://template/4711/data')).toContain('4711')
  })

  it('is refused a resource that does not exist', async () => {
    // SDK v2 shows the older code of legacy servers as the newer one.
    const code = cell.client === 'SDK v1' ? -32002 : -32602
    await expect(client.read('test://nowhere')).rejects.toMatchObject({ code })
  })

  it('gets a prompt with its arguments and completes one', async () => {
    const prompt = await client.prompt('test_prompt_with_arguments', { arg1: 'one', arg2: 'two' })
    expect(prompt).toContain("arg1='one', arg2='two'")
    expect(await client.complete('test_prompt_with_arguments', 'arg1', 'no word begins so')).toEqual([])
  })

  it('hears of progress in order and before the result', async () => {
    const heard: (number | string)[] = []
    const result = await client.call(
      'test_tool_with_progress',
      {},
      { onProgress: ({ progress }) => heard.push(progress) },
    )
    heard.push(textOf(result) === '' ? 'nothing' : 'result')
    expect(heard).toEqual([0, 50, 100, 'result'])
  })

  it('keeps two calls at the same time apart', async () => {
    const heard: [number[], number[]] = [[], []]
    await Promise.all(
      heard.map(list =>
        client.call('test_tool_with_progress', {}, { onProgress: ({ progress }) => list.push(progress) }),
      ),
    )
    expect(heard).toEqual([
      [0, 50, 100],
      [0, 50, 100],
    ])
  })
})
