import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { answerTo, argumentsOf, type ClientContext, type Connect, outcomeOf, SILENT_MS, urlOf } from './client.ts'
import { outcomeOfError } from './sdk-outcome.ts'
import { watchedFetch } from './watched-fetch.ts'

const RETRY_MS = 100
const RECONNECTION = {
  initialReconnectionDelay: RETRY_MS,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 1_000,
}
const RETURN_MS = 2_000 // in which a reopened channel tells what became of the calls before

/** An SDK v1 client on any transport. */
export const connectV1Client = async (transport: Transport): Promise<Client> => {
  const client = new Client({ name: 'chaos-v1', version: '1.0.0' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => answerTo(params.message))
  await client.connect(transport)
  return client
}

/** Connects until a gateway answers. */
export const untilConnected = async <T>(connect: () => Promise<T>): Promise<T> => {
  for (const deadline = Date.now() + SILENT_MS; ; ) {
    try {
      return await connect()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(RETRY_MS)
    }
  }
}

/** Calls a tool, with progress where the call has events. */
export const callV1 = async (client: Client, context: ClientContext, call: NumberedCall): Promise<Outcome> => {
  let last = 0
  const onprogress = ({ progress }: { progress: number }): void => {
    if (progress <= last) context.ledger.repeated(context.name, `progress ${progress} of call ${call.number}`)
    last = progress
  }
  try {
    const params = { name: context.toolName(call.tool), arguments: argumentsOf(call) }
    const options = { timeout: SILENT_MS, ...(call.events > 0 && { onprogress }) }
    return outcomeOf({ result: await client.callTool(params, undefined, options) })
  } catch (error) {
    return outcomeOfError(error)
  }
}

const pings = (client: Client): Promise<boolean> =>
  client.ping({ timeout: SILENT_MS }).then(
    () => true,
    () => false,
  )

/** SDK v1 over Streamable HTTP; it resumes streams itself. */
export const connectV1Session: Connect = async context => {
  const lost = new Map<number, () => void>()
  let isLost = false
  let transport: StreamableHTTPClientTransport
  const connect = (): Promise<Client> => {
    const events = { onCallLost: (number: number) => lost.get(number)?.() }
    const fetch = watchedFetch(context, events, () => {
      isLost = true
    })
    transport = new StreamableHTTPClientTransport(new URL(urlOf(context)), { fetch, reconnectionOptions: RECONNECTION })
    // The SDK's own class does not fit its own interface under `exactOptionalPropertyTypes`.
    return connectV1Client(transport as Transport)
  }
  let client = await untilConnected(connect)
  return {
    call: async call => {
      if (isLost) {
        await client.close()
        isLost = false
        client = await untilConnected(connect)
      }
      const broken = new Promise<Outcome>(resolve => lost.set(call.number, () => resolve({ kind: 'cut' })))
      const outcome = await Promise.race([callV1(client, context, call), broken])
      lost.delete(call.number)
      return outcome
    },
    answers: () => pings(client),
    close: async () => {
      await transport.terminateSession().catch(() => {})
      await client.close()
    },
  }
}

/** SDK v1 over HTTP+SSE; its event source opens the channel again, and the SDK goes on without a new handshake. */
export const connectV1Channel: Connect = async context => {
  let isOpen = true
  let hasBroken = false
  let changed: () => void = () => {}
  const whenChanged = (): Promise<void> =>
    new Promise(resolve => {
      changed = resolve
    })
  const onStream = (nowOpen: boolean): void => {
    isOpen = nowOpen
    hasBroken ||= !nowOpen
    changed()
  }
  const connect = (): Promise<Client> => {
    const transport = new SSEClientTransport(new URL(`${urlOf(context)}/sse`), {
      fetch: watchedFetch(context, { onStream }),
    })
    return connectV1Client(transport as Transport)
  }
  const client = await untilConnected(connect)

  /** The channel of a call has ended: what is not told on the next one never will be. */
  const cut = async (): Promise<Outcome> => {
    while (isOpen) await whenChanged()
    while (!isOpen) await whenChanged()
    await sleep(RETURN_MS)
    return { kind: 'cut' }
  }
  return {
    call: async call => {
      while (!isOpen) await whenChanged()
      return Promise.race([callV1(client, context, call), cut()])
    },
    canBeAsked: () => !hasBroken, // a new channel has had no handshake
    answers: async () => true,
    close: () => client.close(),
  }
}
