import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRawChannel, type RawChannel } from '../../support/channel.ts'
import { send } from '../../support/raw.ts'
import { type Served, serve } from './served.ts'

/** Seed 002: a daemon with `GET /sse` and `POST /messages/`, and a query client with a state machine. We are the daemon. */

let served: Served
let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'dragoman-seed-'))
  await writeFile(join(root, 'main.py'), 'print("hello")\n')
  served = await serve({
    sse: { endpoint: 'absolute' },
    mcpServers: { serena: { builtin: 'files', root }, demo: { builtin: 'demo' } },
    workspaces: { default: { servers: ['serena'] }, demo: { servers: ['demo'] } },
  })
})
afterAll(async () => {
  await served.close()
  await rm(root, { recursive: true, force: true })
})

type State = 'DISCONNECTED' | 'CONNECTING' | 'INITIALIZING' | 'READY' | 'WAITING' | 'DONE'
interface Reply {
  readonly id?: unknown
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

const textOf = ({ result }: Reply): string => String((result?.content as { text: string }[] | undefined)?.[0]?.text)

/** The client of the document: it knows only lines that begin with `data:`, and matches answers by id. */
class QueryClient {
  readonly states: State[] = ['DISCONNECTED']
  #channel: RawChannel | undefined
  #endpoint = ''
  #id = 0
  readonly #answers = new Map<unknown, (reply: Reply) => void>()

  get sessionId(): string {
    return /session_id=(\w+)/.exec(this.#endpoint)?.[1] ?? ''
  }

  get endpoint(): string {
    return this.#endpoint
  }

  get lastId(): number {
    return this.#id
  }

  async connect(url: string): Promise<Reply> {
    this.states.push('CONNECTING')
    this.#channel = await openRawChannel(url)
    this.#endpoint = (await this.#channel.next())?.data ?? ''
    void this.#read(this.#channel)
    this.states.push('INITIALIZING')
    const clientInfo = { name: 'serena-query', version: '0.1.0' }
    const reply = await this.request('initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo })
    expect(await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({ status: 202 })
    this.states.push('READY')
    return reply
  }

  async call(name: string, given: object): Promise<Reply> {
    this.states.push('WAITING')
    const reply = await this.request('tools/call', { name, arguments: given })
    this.states.push('DONE')
    return reply
  }

  async request(method: string, params: object): Promise<Reply> {
    const id = ++this.#id
    const answer = new Promise<Reply>(resolve => this.#answers.set(id, resolve))
    const posted = await this.#post({ jsonrpc: '2.0', id, method, params })
    expect([posted.status, posted.text]).toEqual([202, 'Accepted'])
    return answer
  }

  notify(method: string, params: object): Promise<unknown> {
    return this.#post({ jsonrpc: '2.0', method, params })
  }

  close(): void {
    this.#channel?.close()
  }

  #post(body: object) {
    return send(this.#endpoint, { body, headers: { accept: '*/*' } })
  }

  async #read(channel: RawChannel): Promise<void> {
    for (let event = await channel.next(); event; event = await channel.next()) {
      if (event.data === '') continue
      const message = JSON.parse(event.data) as Reply
      this.#answers.get(message.id)?.(message)
    }
  }
}

it('the first data line is the endpoint, with the session id to cut out', async () => {
  const channel = await openRawChannel(`${served.origin}/sse`)
  await channel.nextOf('endpoint')
  const [first] = channel.text().match(/^data: .*$/m) ?? []
  expect(first).toMatch(new RegExp(`^data: ${served.origin}/messages/\\?session_id=[0-9a-f]+$`))
  channel.close()
})

it('the state machine runs from DISCONNECTED to DONE', async () => {
  const client = new QueryClient()
  const { result } = await client.connect(`${served.origin}/sse`)
  expect(result).toMatchObject({ protocolVersion: '2024-11-05', capabilities: { tools: {} } })
  expect(result?.serverInfo).toMatchObject({ name: expect.any(String), version: expect.any(String) })
  const reply = await client.call('list_dir', { relative_path: '.', recursive: false })
  expect(reply.result).toMatchObject({ content: [{ type: 'text' }] })
  expect(JSON.parse(textOf(reply))).toEqual({ dirs: [], files: ['main.py'] })
  expect([reply.result?.isError ?? false, client.states]).toEqual([
    false,
    ['DISCONNECTED', 'CONNECTING', 'INITIALIZING', 'READY', 'WAITING', 'DONE'],
  ])
  client.close()
})

describe('a client that is ready', () => {
  let client: QueryClient
  beforeAll(async () => {
    client = new QueryClient()
    await client.connect(`${served.origin}/sse?workspace=demo`)
  })
  afterAll(() => client.close())

  it('has many requests in flight, and each gets its own answer', async () => {
    const texts = Array.from({ length: 20 }, (_, i) => `message ${i}`)
    const slow = client.request('tools/call', { name: 'test_tool_with_progress', arguments: {} })
    const replies = await Promise.all(
      texts.map(message => client.request('tools/call', { name: 'example-echo', arguments: { message } })),
    )
    expect(replies.map(textOf)).toEqual(texts.map(text => `Echo: ${text}`))
    expect((await slow).result).toMatchObject({ content: [{ type: 'text' }] })
  })

  it('lists tools, reads a resource', async () => {
    expect((await client.request('tools/list', {})).result?.tools).toContainEqual(
      expect.objectContaining({ name: 'example-echo' }),
    )
    expect((await client.request('resources/read', { uri: 'test://static-text' })).result).toHaveProperty('contents')
  })

  it.each([
    ['no/such', {}, -32601],
    ['tools/call', { name: 'no_such_tool', arguments: {} }, -32602],
    ['tools/call', { arguments: {} }, -32602],
  ])('gets an error for %s %j on the channel', async (method, params, code) => {
    expect((await client.request(method, params)).error?.code).toBe(code)
  })

  it('may cancel', async () => {
    let answers = 0
    void client.request('tools/call', { name: 'test_reconnection', arguments: {} }).then(() => answers++)
    await expect.poll(() => served.load().calls).toBe(1)
    await client.notify('notifications/cancelled', { requestId: client.lastId, reason: 'enough' })
    expect(served.load().calls).toBe(0)
    await client.request('ping', {})
    expect(answers).toBe(0)
  })
})

it('each connection is a session of its own, and closing it invalidates it', async () => {
  const one = new QueryClient()
  const two = new QueryClient()
  await Promise.all([one.connect(`${served.origin}/sse`), two.connect(`${served.origin}/sse`)])
  expect(one.sessionId).not.toBe(two.sessionId)
  const before = served.load().channels
  one.close()
  await expect.poll(() => served.load().channels).toBe(before - 1)
  const body = { jsonrpc: '2.0', id: 9, method: 'tools/list' }
  const late = await send(one.endpoint, { body })
  expect([late.status, late.json.id, late.json.error?.code]).toEqual([404, 9, -32600])
  expect((await two.request('tools/list', {})).result).toHaveProperty('tools')
  two.close()
})
