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
const CONNECT_MS = 10 * 60_000
export const HANDSHAKE_MS = 10_000 // an answer to `initialize` may be lost with its connection
const RECONNECTION = {
  initialReconnectionDelay: RETRY_MS,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 1_000,
}
const REOPEN_MS = 8_000 // the event source waits 3 s between attempts
const RETURN_MS = 2_000 // in which a reopened channel tells what became of the calls before

/** An SDK v1 client on any transport. */
export const connectV1Client = async (transport: Transport): Promise<Client> => {
  const client = new Client({ name: 'chaos-v1', version: '1.0.0' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => answerTo(params.message))
  try {
    await client.connect(transport, { timeout: HANDSHAKE_MS })
  } catch (error) {
    await transport.close() // an event source that could not connect tries for ever
    throw error
  }
  return client
}

/** Connects until a gateway answers. */
export const untilConnected = async <T>(connect: () => Promise<T>): Promise<T> => {
  for (const deadline = Date.now() + CONNECT_MS; ; ) {
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

const ping = (client: Client): Promise<string | undefined> =>
  client.ping({ timeout: SILENT_MS }).then(
    () => undefined,
    (error: Error) => error.message,
  )

/** SDK v1 over Streamable HTTP; it resumes streams itself. */
export const connectV1Session: Connect = async context => {
  const lost = new Map<number, () => void>()
  let isLost = false
  let transport: StreamableHTTPClientTransport
  const connect = (): Promise<Client> => {
    const events = {
      onCallLost: (number: number) => lost.get(number)?.(),
      onAnswerLost: () => {
        for (const cut of lost.values()) cut()
      },
    }
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
    whyDead: () => ping(client),
    close: async () => {
      await transport.terminateSession().catch(() => {})
      await client.close()
    },
  }
}

/** The channel of an HTTP+SSE client, which its event source opens again and again. */
class ChannelState {
  isOpen = true
  hasBroken = false
  #changed: (() => void)[] = []

  readonly onStream = (isOpen: boolean): void => {
    this.isOpen = isOpen
    this.hasBroken ||= !isOpen
    for (const changed of this.#changed.splice(0)) changed()
  }

  /** Resolves when the channel is open, or closed; false: not within that time. */
  async until(isOpen: boolean, ms: number): Promise<boolean> {
    const end = Date.now() + ms
    while (this.isOpen !== isOpen && Date.now() < end)
      await Promise.race([new Promise<void>(resolve => this.#changed.push(resolve)), sleep(end - Date.now())])
    return this.isOpen === isOpen
  }
}

/** SDK v1 over HTTP+SSE; its event source opens the channel again, and the SDK goes on without a new handshake. */
export const connectV1Channel: Connect = async context => {
  let state = new ChannelState()
  let onAnswerLost = (): void => {}
  const connect = (): Promise<Client> => {
    state = new ChannelState()
    const fetch = watchedFetch(context, { onStream: state.onStream, onAnswerLost: () => onAnswerLost() })
    return connectV1Client(new SSEClientTransport(new URL(`${urlOf(context)}/sse`), { fetch }) as Transport)
  }
  let client = await untilConnected(connect)

  /** The channel of a call has ended: what is not told on the next one never will be. */
  const cut = async (): Promise<Outcome> => {
    const own = state
    if (!(await own.until(false, SILENT_MS))) return { kind: 'silent', why: 'no response on an open channel' }
    await own.until(true, REOPEN_MS)
    await sleep(RETURN_MS)
    return { kind: 'cut' }
  }
  return {
    call: async call => {
      // An event source gives up for good where it is answered with an error: then the client starts anew.
      if (!(await state.until(true, REOPEN_MS))) {
        await client.close()
        client = await untilConnected(connect)
      }
      const answerLost = new Promise<Outcome>(resolve => {
        onAnswerLost = () => resolve({ kind: 'cut' })
      })
      return Promise.race([callV1(client, context, call), cut(), answerLost])
    },
    canBeAsked: () => !state.hasBroken, // a new channel has had no handshake
    whyDead: async () => undefined,
    close: () => client.close(),
  }
}
