import { setTimeout as sleep } from 'node:timers/promises'
import { META } from '../../../src/protocol/meta.ts'
import { Answers } from './expected.ts'
import { exchange, Fault, type Message } from './http.ts'
import { answerTo, CLIENT_CAPABILITIES, envelope, sayings } from './messages.ts'
import { damageHeaders, writeMessage } from './mutate.ts'
import type { PipeClient } from './pipe-client.ts'
import type { Random } from './random.ts'

/** Where a client is, and how it decides. */
export interface Place {
  readonly origin: string
  readonly workspace: string
  readonly random: Random
  readonly damage: number // how likely each of its messages is damaged
  readonly pipe: PipeClient
  /** Keeps what was sent, to be shown if something goes wrong. */
  readonly note: (bytes: Buffer) => void
}

/** A short conversation in one dialect; throws a Fault. */
export type Conversation = (place: Place) => Promise<void>

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const LISTEN = 'subscriptions/listen'
const LISTEN_MS = 300
let lastId = 1000

const write = ({ random, damage, note }: Place, message: object, isSpared = false): Buffer => {
  const bytes = writeMessage(message, random, !isSpared && random.chance(damage))
  note(bytes)
  return bytes
}

const headersOf = ({ random, damage }: Place, headers: Record<string, string>): Record<string, string> =>
  random.chance(damage / 4) ? damageHeaders(headers, random) : headers

const urlOf = ({ origin, workspace }: Place): string => `${origin}/mcp/${workspace}`

/** Answers a question badly, then well: one that is never answered waits for its user by design. */
const answers = (place: Place, message: Message): Buffer[] => {
  if (message.method === undefined || message.id === undefined) return []
  const reply = { jsonrpc: '2.0', id: message.id, result: answerTo(message.method) }
  return [write(place, reply), write(place, reply, true)]
}

/** 2026-07-28 over HTTP. A question is answered by sending the request again. */
const stateless: Conversation = async place => {
  const { random } = place
  const said = random.chance(0.1)
    ? { method: LISTEN, params: { notifications: { toolsListChanged: true, resourceSubscriptions: ['test://a'] } } }
    : sayings(random)
  const id = ++lastId
  const { method, params } = said
  const name = params.name ?? params.uri
  const headers: Record<string, string> = {
    ...JSON_HEADERS,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  }
  const meta = { ...envelope(random), ...(params._meta as object | undefined) }
  let more: object = {}
  for (let round = 0; round < 3; round++) {
    const body = write(place, { jsonrpc: '2.0', id, method, params: { ...params, ...more, _meta: meta } })
    const leave = body.includes(LISTEN) ? { leave: sleep(LISTEN_MS) } : {}
    let result: Record<string, unknown> | undefined
    const onMessage = (message: Message): void => {
      result = message.result ?? result
    }
    const reply = await exchange(urlOf(place), { headers: headersOf(place, headers), body, onMessage, ...leave })
    if (reply.text.startsWith('{')) result = (JSON.parse(reply.text) as Message).result
    if (result?.resultType !== 'input_required') return
    const asked = Object.entries((result.inputRequests ?? {}) as Record<string, { method?: unknown } | null>)
    const inputResponses = Object.fromEntries(asked.map(([key, question]) => [key, answerTo(question?.method)]))
    more = { inputResponses, requestState: result.requestState }
  }
}

const initialize = (random: Random): object => ({
  jsonrpc: '2.0',
  id: ++lastId,
  method: 'initialize',
  params: {
    protocolVersion: random.pick(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', '1']),
    capabilities: random.chance(0.8) ? CLIENT_CAPABILITIES : {},
    clientInfo: { name: 'fuzz', version: '1' },
  },
})

const request = (random: Random): object => {
  const { method, params, isNotification } = sayings(random)
  return { jsonrpc: '2.0', ...(!isNotification && { id: ++lastId }), method, params }
}

/** A legacy session over Streamable HTTP, with a stream of its own, batches, and an end it may forget. */
const streamable: Conversation = async place => {
  const { random } = place
  const url = urlOf(place)
  const body = write(place, initialize(random), random.chance(0.7))
  const first = await exchange(url, { headers: headersOf(place, JSON_HEADERS), body })
  const session = first.headers['mcp-session-id']
  if (typeof session !== 'string') return
  const headers = { ...JSON_HEADERS, 'mcp-session-id': session }
  const post = async (bytes: Buffer): Promise<void> => {
    await exchange(url, { headers: headersOf(place, headers), body: bytes, onMessage })
  }
  const onMessage = (message: Message): void => {
    for (const bytes of answers(place, message))
      exchange(url, { headers, body: bytes }).catch((fault: unknown) => faults.push(fault))
  }
  const faults: unknown[] = []
  let over = (): void => {}
  const isOver = new Promise<void>(resolve => (over = resolve))
  const stream = random.chance(0.5)
    ? exchange(url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' }, onMessage, leave: isOver })
    : undefined
  await post(write(place, { jsonrpc: '2.0', method: 'notifications/initialized' }, true))
  const count = 1 + random.below(5)
  await Promise.all(
    Array.from({ length: count }, () =>
      post(write(place, random.chance(0.1) ? [request(random), request(random)] : request(random))),
    ),
  ).finally(over)
  await stream
  if (random.chance(0.7)) await exchange(url, { method: 'DELETE', headers })
  if (faults.length > 0) throw faults[0]
}

/** A legacy client over HTTP+SSE: answers come on the channel. */
const channel: Conversation = async place => {
  const { random, origin, workspace } = place
  const known = new Answers()
  const faults: unknown[] = []
  let endpoint: ((path: string) => void) | undefined
  const named = new Promise<string>(resolve => (endpoint = resolve))
  const onMessage = (message: Message, event: string): void => {
    if (event === 'endpoint') return endpoint?.(String(message.params))
    known.take(message)
    for (const bytes of answers(place, message)) void post(bytes)
  }
  const post = async (bytes: Buffer): Promise<void> => {
    try {
      const reply = await exchange(origin + (await named), { headers: headersOf(place, JSON_HEADERS), body: bytes })
      if (reply.status < 300) known.expect(bytes)
    } catch (fault) {
      faults.push(fault)
    }
  }
  const url = random.chance(0.5) ? `${origin}/mcp/${workspace}` : `${origin}/sse?workspace=${workspace}`
  let over = (): void => {}
  const isOver = new Promise<void>(resolve => (over = resolve))
  const open = exchange(url, { method: 'GET', headers: { accept: 'text/event-stream' }, onMessage, leave: isOver })
  await post(write(place, initialize(random), random.chance(0.8)))
  await Promise.all(Array.from({ length: 1 + random.below(4) }, () => post(write(place, request(random)))))
  await Promise.race([known.all(`channel of ${workspace}`), open]).finally(over)
  await open
  if (faults.length > 0) throw faults[0]
}

/** Tools by URL, and their description. */
const rest: Conversation = async place => {
  const { random, origin, workspace } = place
  if (random.chance(0.2)) {
    const { text } = await exchange(`${origin}/actions/${workspace}/openapi.json`, { method: 'GET', headers: {} })
    if (!text.includes('"openapi"')) throw new Fault(`no description of ${workspace}: ${text.slice(0, 300)}`)
    return
  }
  const tool = random.pick(['t', 'example-echo', 'constructor', '__proto__', 'nothing', '%00', '..'])
  const body = write(place, { a: 'x', message: 'm' })
  const headers = random.chance(0.3) ? { ...JSON_HEADERS, accept: 'text/event-stream' } : JSON_HEADERS
  await exchange(`${origin}/actions/${workspace}/${tool}`, { headers: headersOf(place, headers), body })
}

/** Both eras on one pipe. */
const pipe: Conversation = async place => {
  const { random } = place
  const said = Array.from({ length: 1 + random.below(4) }, () => {
    const made = request(random) as { params?: object }
    const meta = { ...envelope(random), [META.protocolVersion]: '2026-07-28' }
    return write(place, random.chance(0.5) ? made : { ...made, params: { ...made.params, _meta: meta } })
  })
  await place.pipe.say(said, message => answers(place, message))
}

export const CONVERSATIONS: readonly Conversation[] = [
  stateless,
  stateless,
  streamable,
  streamable,
  channel,
  rest,
  pipe,
]
