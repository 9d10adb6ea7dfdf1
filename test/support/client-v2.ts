import {
  Client,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type VersionNegotiationOptions,
} from '@modelcontextprotocol/client'
import {
  ALL_CAPABILITIES,
  type Asked,
  type CallResult,
  type ClientKind,
  type ClientOptions,
  obliging,
  PERSISTENT,
  recordingFetch,
  type TestClient,
} from './client.ts'
import { createNotices, type Notices } from './notices.ts'

const MODES = {
  'SDK v2 auto': 'auto',
  'SDK v2 modern': { pin: '2026-07-28' },
  'SDK v2 legacy': 'legacy',
} satisfies Record<Exclude<ClientKind, 'SDK v1'>, VersionNegotiationOptions['mode']>

/** Connects an SDK v2 client; one that speaks legacy waits until its GET stream is open. */
export const connectV2 = async (kind: keyof typeof MODES, options: ClientOptions): Promise<TestClient> => {
  const { url, capabilities = ALL_CAPABILITIES, answer = obliging } = options
  const client = new Client(
    { name: 'test-client-v2', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: MODES[kind] } },
  )
  const asked: Asked[] = []
  const notices = createNotices()
  for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const) {
    if (!(method.slice(0, method.indexOf('/')) in capabilities)) continue
    client.setRequestHandler(method, async ({ params = {} }) => {
      asked.push({ method, params })
      return (await answer({ method, params })) as never
    })
  }
  listenIn(client, notices)
  const { fetch, requests, streamOpened } = recordingFetch()
  const transport = new (options.sse ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url), {
    fetch,
    ...(options.headers && { requestInit: { headers: options.headers } }),
    ...(options.persistent && PERSISTENT),
  })
  await client.connect(transport)
  const era = client.getProtocolEra() ?? 'legacy'
  if (era === 'legacy') await streamOpened
  return {
    era,
    serverName: client.getServerVersion()?.name,
    asked,
    notices,
    requests,
    ...catalogue(client),
    watch: async uri => {
      if (era === 'legacy') {
        await client.subscribeResource({ uri })
        return { lost: new Promise(() => {}) }
      }
      const filter = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: [uri] }
      const subscription = await client.listen(filter)
      return { lost: subscription.closed.then(reason => (reason === 'remote' ? undefined : new Promise(() => {}))) }
    },
    setLevel: async level => void (await client.setLoggingLevel(level)),
    close: async () => {
      if ('terminateSession' in transport) await transport.terminateSession().catch(() => undefined)
      await client.close()
    },
  }
}

const listenIn = (client: Client, notices: Notices): void => {
  client.fallbackNotificationHandler = async ({ method, params }) => notices.take({ method, params: params ?? {} })
}

const catalogue = (client: Client) => ({
  toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
  promptNames: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
  resourceUris: async () => (await client.listResources()).resources.map(({ uri }) => uri),
  templates: async () => (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  call: async (
    ...[name, given, { onProgress, signal, meta } = {}]: Parameters<TestClient['call']>
  ): Promise<CallResult> => {
    const result = await client.callTool(
      { name, ...(given && { arguments: given }), ...(meta && { _meta: meta }) },
      { ...(onProgress && { onprogress: onProgress }), ...(signal && { signal }) },
    )
    return { content: result.content as CallResult['content'], isError: result.isError === true }
  },
  read: async (uri: string) => JSON.stringify((await client.readResource({ uri })).contents),
  prompt: async (name: string, given?: Record<string, string>) =>
    JSON.stringify((await client.getPrompt({ name, ...(given && { arguments: given }) })).messages),
  complete: async (prompt: string, name: string, value: string) =>
    (await client.complete({ ref: { type: 'ref/prompt', name: prompt }, argument: { name, value } })).completion.values,
})
