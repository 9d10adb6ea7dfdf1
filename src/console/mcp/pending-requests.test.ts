import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { McpClientEvents, McpRequestOptions, QuestionAnswer } from './mcp-client.ts'
import { type JsonObject, McpError, readMessages } from './messages.ts'
import { fetchAll } from './open-client.ts'
import { PendingRequests } from './pending-requests.ts'

let sent: JsonObject[] = []
const events = {
  onListChanged: vi.fn(),
  onResourceUpdated: vi.fn(),
  onLog: vi.fn(),
  onQuestion: vi.fn(async (): Promise<QuestionAnswer> => ({ kind: 'refuse', message: 'no call' })),
  onLive: vi.fn(),
} satisfies McpClientEvents

let pending: PendingRequests
beforeEach(() => {
  sent = []
  vi.clearAllMocks()
  pending = new PendingRequests(events, message => sent.push(message))
})

const take = (message: object, via?: number): void => {
  for (const each of readMessages(JSON.stringify({ jsonrpc: '2.0', ...message }))) pending.take(each, via)
}

describe('answers', () => {
  test('go to the request with their id, in any order', async () => {
    const [first, second] = [pending.begin(1, {}), pending.begin(2, {})]
    take({ id: 2, result: { b: 1 } })
    take({ id: 1, error: { code: -32602, message: 'bad', data: { x: 1 } } })
    expect((await second).result).toEqual({ b: 1 })
    await expect(first).rejects.toMatchObject({ reason: 'rpc', code: -32602, message: 'bad', data: { x: 1 } })
  })

  test('of no request are left out', async () => {
    const first = pending.begin(1, {})
    take({ id: 9, result: {} })
    take({ id: '1', result: {} })
    pending.failAll(new McpError('network', 'gone'))
    await expect(first).rejects.toThrow('gone')
  })
})

describe('notifications', () => {
  test('progress belongs to its token, a log message to its stream', () => {
    const [one, two] = [options(), options()]
    void pending.begin(1, one)
    void pending.begin(2, two)
    take({ method: 'notifications/progress', params: { progressToken: 1, progress: 3, total: 4, message: 'm' } }, 2)
    take({ method: 'notifications/message', params: { level: 'warning', data: { a: 1 }, logger: 'l' } }, 1)
    expect(one.onProgress).toHaveBeenCalledWith({ progress: 3, total: 4, message: 'm' })
    expect(one.onLog).toHaveBeenCalledWith(expect.objectContaining({ level: 'warning', logger: 'l', data: { a: 1 } }))
    expect(two.onProgress).not.toHaveBeenCalled()
    expect(two.onLog).not.toHaveBeenCalled()
  })

  test('about lists and resources go to the page', () => {
    take({ method: 'notifications/tools/list_changed' })
    take({ method: 'notifications/resources/updated', params: { uri: 'a:b' } })
    take({ method: 'notifications/message', params: { level: 'info', data: 'x' } })
    take({ method: 'notifications/unknown' })
    expect(events.onListChanged).toHaveBeenCalledWith('tools')
    expect(events.onResourceUpdated).toHaveBeenCalledWith('a:b')
    expect(events.onLog).toHaveBeenCalledOnce()
  })
})

describe('requests of the server', () => {
  test('a question is answered under its id', async () => {
    const asked = options()
    void pending.begin(1, asked)
    take({ id: 'q', method: 'elicitation/create', params: { message: 'Who?' } }, 1)
    expect(asked.onQuestion).toHaveBeenCalledWith(expect.objectContaining({ params: { message: 'Who?' } }))
    await vi.waitFor(() => expect(sent).toEqual([{ jsonrpc: '2.0', id: 'q', result: { action: 'accept' } }]))
  })

  test('one outside of a call goes to the page, and a refusal is an error', async () => {
    take({ id: 5, method: 'sampling/createMessage', params: {} })
    await vi.waitFor(() => expect(sent).toEqual([{ jsonrpc: '2.0', id: 5, error: { code: -1, message: 'no call' } }]))
  })

  test('ping is answered, and an unknown method refused', () => {
    take({ id: 1, method: 'ping' })
    take({ id: 2, method: 'shell/run' })
    expect(sent).toEqual([
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 2, error: { code: -32601, message: 'Method not found: shell/run' } },
    ])
  })

  test('a question that the server withdraws gets no answer', async () => {
    let answer: (given: QuestionAnswer) => void = () => {}
    events.onQuestion.mockImplementationOnce(
      () =>
        new Promise(resolve => {
          answer = resolve
        }),
    )
    take({ id: 5, method: 'elicitation/create', params: {} })
    take({ method: 'notifications/cancelled', params: { requestId: 5 } })
    answer({ kind: 'refuse', message: 'late' })
    await new Promise(resolve => setTimeout(resolve))
    expect(sent).toEqual([])
  })
})

describe('lists', () => {
  test('are followed from page to page', async () => {
    const pages: number[] = []
    const send = async (_method: string, { cursor = '0' }: JsonObject) => ({
      result: { tools: [{ name: cursor }], ...(Number(cursor) < 3 && { nextCursor: String(Number(cursor) + 1) }) },
      text: '',
    })
    const { items } = await fetchAll(send, 'tools/list', 'tools', so => pages.push(so.length))
    expect(items.map(({ name }) => name)).toEqual(['0', '1', '2', '3'])
    expect(pages).toEqual([1, 2, 3])
  })

  test('that never end are cut', async () => {
    let page = 0
    const send = async () => ({ result: { tools: [{}], nextCursor: String(page++) }, text: '' })
    expect(await fetchAll(send, 'tools/list', 'tools', () => {})).toMatchObject({ isCut: true })
    const same = async () => ({ result: { tools: [{}, 1, null], nextCursor: 'same' }, text: '' })
    expect((await fetchAll(same, 'tools/list', 'tools', () => {})).items).toEqual([{}, {}])
  })
})

const options = () =>
  ({
    onProgress: vi.fn(),
    onLog: vi.fn(),
    onQuestion: vi.fn(async () => ({ kind: 'result', result: { action: 'accept' } }) as const),
  }) satisfies McpRequestOptions
