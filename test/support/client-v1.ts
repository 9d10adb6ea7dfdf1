import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  type Result,
} from '@modelcontextprotocol/sdk/types.js'
import {
  ALL_CAPABILITIES,
  type Asked,
  type CallResult,
  type ClientOptions,
  obliging,
  PERSISTENT,
  recordingFetch,
  type TestClient,
} from './client.ts'
import { createNotices } from './notices.ts'

/** Connects an SDK v1 client and waits until its GET stream is open. */
export const connectV1 = async (options: ClientOptions): Promise<TestClient> => {
  const { url, capabilities = ALL_CAPABILITIES, answer = obliging } = options
  const client = new Client({ name: 'test-client-v1', version: '1.0.0' }, { capabilities })
  const asked: Asked[] = []
  const notices = createNotices()
  const reply = async (question: Asked): Promise<Result> => {
    asked.push(question)
    return answer(question)
  }
  if ('elicitation' in capabilities)
    client.setRequestHandler(ElicitRequestSchema, ({ method, params }) => reply({ method, params }))
  if ('sampling' in capabilities)
    client.setRequestHandler(CreateMessageRequestSchema, ({ method, params }) => reply({ method, params }))
  if ('roots' in capabilities)
    client.setRequestHandler(ListRootsRequestSchema, ({ method, params }) => reply({ method, params: params ?? {} }))
  client.fallbackNotificationHandler = async ({ method, params }) => notices.take({ method, params: params ?? {} })
  const { fetch, requests, streamOpened } = recordingFetch()
  const transport = new (options.sse ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url), {
    fetch,
    ...(options.headers && { requestInit: { headers: options.headers } }),
    ...(options.persistent && PERSISTENT),
  })
  // The SDK's own class does not fit its own interface under `exactOptionalPropertyTypes`.
  await client.connect(transport as Transport)
  await streamOpened
  return {
    era: 'legacy',
    serverName: client.getServerVersion()?.name,
    asked,
    notices,
    requests,
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    promptNames: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    resourceUris: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    call: async (name, given, { onProgress, signal, meta } = {}) => {
      const result = await client.callTool({ name, arguments: given, ...(meta && { _meta: meta }) }, undefined, {
        ...(onProgress && { onprogress: onProgress }),
        ...(signal && { signal }),
      })
      return { content: result.content as CallResult['content'], isError: result.isError === true }
    },
    read: async uri => JSON.stringify((await client.readResource({ uri })).contents),
    prompt: async (name, given) => JSON.stringify((await client.getPrompt({ name, arguments: given })).messages),
    complete: async (prompt, name, value) =>
      (await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } })).completion
        .values,
    watch: async uri => {
      await client.subscribeResource({ uri })
      return { lost: new Promise(() => {}) }
    },
    setLevel: async level => void (await client.setLoggingLevel(level)),
    close: async () => {
      if ('terminateSession' in transport) await transport.terminateSession().catch(() => undefined)
      await client.close()
    },
  }
}
