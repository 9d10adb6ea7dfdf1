import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { answerTo, argumentsOf, type ClientContext, type Connect, outcomeOf, SILENT_MS, urlOf } from './client.ts'
import { outcomeOfError } from './sdk-outcome.ts'
import { HANDSHAKE_MS, untilConnected } from './sdk-v1.ts'
import { watchedFetch } from './watched-fetch.ts'

type Transport = Parameters<Client['connect']>[0]

/** An SDK v2 client that speaks 2026-07-28 on any transport. */
export const connectV2Client = async (transport: Transport): Promise<Client> => {
  const client = new Client(
    { name: 'chaos-v2', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  client.setRequestHandler('elicitation/create', async ({ params }) => answerTo(params.message))
  await client.connect(transport, { timeout: HANDSHAKE_MS })
  return client
}

export const callV2 = async (client: Client, context: ClientContext, call: NumberedCall): Promise<Outcome> => {
  let last = 0
  const onprogress = ({ progress }: { progress: number }): void => {
    if (progress <= last) context.ledger.repeated(context.name, `progress ${progress} of call ${call.number}`)
    last = progress
  }
  try {
    const params = { name: context.toolName(call.tool), arguments: argumentsOf(call) }
    const options = { timeout: SILENT_MS, ...(call.events > 0 && { onprogress }) }
    return outcomeOf({ result: await client.callTool(params, options) })
  } catch (error) {
    return outcomeOfError(error)
  }
}

/** SDK v2 over HTTP, without sessions. */
export const connectV2Stateless: Connect = async context => {
  const lost = new Map<number, () => void>()
  const fetch = watchedFetch(context, { onCallLost: number => lost.get(number)?.() })
  const client = await untilConnected(() =>
    connectV2Client(new StreamableHTTPClientTransport(new URL(urlOf(context)), { fetch })),
  )
  return {
    call: async call => {
      const broken = new Promise<Outcome>(resolve => lost.set(call.number, () => resolve({ kind: 'cut' })))
      const outcome = await Promise.race([callV2(client, context, call), broken])
      lost.delete(call.number)
      return outcome
    },
    whyDead: async () => undefined,
    close: () => client.close(),
  }
}
