import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { startServerEverything } from '../../support/server-everything.ts'

/** A client of the TypeScript SDK v1, with its experimental tasks. */
const connect = async (url: string): Promise<Client> => {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
    action: 'accept',
    content: params.message.includes('Delete') ? { confirm: true } : { interpretation: 'technical' },
  }))
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client['connect']>[0])
  onTestFinished(() => client.close())
  return client
}

/** The kinds of messages of a call as a stream, and the text of its result. */
const stream = async (client: Client, name: string, args: Record<string, unknown>) => {
  await client.listTools() // the client learns there which tools are tasks
  const kinds: string[] = []
  let text = ''
  const call = { name, arguments: args }
  const options = { task: { ttl: 60_000 } }
  for await (const message of client.experimental.tasks.callToolStream(call, CallToolResultSchema, options)) {
    if (kinds.at(-1) !== message.type) kinds.push(message.type)
    if (message.type === 'error') throw message.error
    if (message.type === 'result') text = JSON.stringify(message.result.content)
  }
  return { kinds, text }
}

describe('the TypeScript SDK v1', () => {
  test.each([
    ['slow_compute', { seconds: 1 }, 'Computed it in 1 seconds'],
    ['confirm_delete', { filename: 'a.txt' }, 'Deleted a.txt'],
    ['greet', { name: 'Ann' }, 'Hello, Ann!'],
  ])('calls %s of a modern server as a task', { timeout: 30_000 }, async (name, args, expected) => {
    const gateway = await startTestGateway()
    onTestFinished(() => gateway.close())
    const { kinds, text } = await stream(await connect(gateway.url), name, args)
    expect([kinds[0], kinds.at(-1)]).toEqual(['taskCreated', 'result'])
    expect(text).toContain(expected)
  })

  test.each([false, true])('uses a task of server-everything (asks: %s)', { timeout: 60_000 }, async ambiguous => {
    const everything = await startServerEverything('streamableHttp')
    const gateway = await startTestGateway(everything.url)
    onTestFinished(async () => {
      await gateway.close()
      await everything.close()
    })
    const args = { topic: 'python', ambiguous }
    const { kinds, text } = await stream(await connect(gateway.url), 'simulate-research-query', args)
    expect([kinds[0], kinds.at(-1)]).toEqual(['taskCreated', 'result'])
    expect(text).toContain('python')
  })
})
