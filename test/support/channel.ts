import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { SseDecoder } from '../../src/wire/sse.ts'
import { type RawReply, type RawRequest, send } from './raw.ts'

/** One event of a channel, also an empty one. */
export interface ChannelEvent {
  readonly event: string
  readonly data: string
}

/** A client of HTTP+SSE with nothing between it and the wire. */
export interface RawChannel {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly response: IncomingMessage
  /** The whole text so far, comments included. */
  text(): string
  /** The next event that was not taken; undefined when the stream has ended. */
  next(): Promise<ChannelEvent | undefined>
  /** The next event of that name; others on the way are dropped. */
  nextOf(event: string): Promise<ChannelEvent>
  /** Everything until the end. */
  rest(): Promise<ChannelEvent[]>
  close(): void
}

/** Opens a stream by GET. */
export const openRawChannel = async (
  url: string,
  headers: Readonly<Record<string, string>> = { accept: 'text/event-stream' },
): Promise<RawChannel> => {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent: false, headers }).on('response', resolve).on('error', reject).end()
  })
  const events: ChannelEvent[] = []
  const waiting: ((event: ChannelEvent | undefined) => void)[] = []
  let text = ''
  let isOver = false
  const decoder = new SseDecoder(({ event, data }) => {
    const known = { event, data: data.toString() }
    const waiter = waiting.shift()
    if (waiter) waiter(known)
    else events.push(known)
  })
  response.on('data', (chunk: Buffer) => {
    text += chunk
    decoder.feed(chunk)
  })
  response.on('error', () => {})
  response.on('close', () => {
    isOver = true
    for (const waiter of waiting.splice(0)) waiter(undefined)
  })
  const next = (): Promise<ChannelEvent | undefined> => {
    const known = events.shift()
    if (known || isOver) return Promise.resolve(known)
    return new Promise(resolve => waiting.push(resolve))
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    response,
    text: () => text,
    next,
    nextOf: async name => {
      for (let event = await next(); event; event = await next()) if (event.event === name) return event
      throw new Error(`The stream ended before an event "${name}"`)
    },
    rest: async () => {
      const rest: ChannelEvent[] = []
      for (let event = await next(); event; event = await next()) rest.push(event)
      return rest
    },
    close: () => response.destroy(),
  }
}

/** A channel whose endpoint has been read. */
export interface OpenChannel extends RawChannel {
  readonly id: string
  readonly endpoint: string
  post(body: NonNullable<RawRequest['body']>, headers?: Readonly<Record<string, string>>): Promise<RawReply>
  /** The next event of that name, as JSON. */
  message(event?: string): Promise<Message>
}

interface Message {
  id?: unknown
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: unknown }
}

/** Opens a channel and takes the events it opens with. */
export const openChannel = async (url: string, headers?: Readonly<Record<string, string>>): Promise<OpenChannel> => {
  const channel = await openRawChannel(url, headers)
  const endpoint = (await channel.nextOf('endpoint')).data
  if (hasLifecycle(new URL(url))) await channel.nextOf('lifecycle')
  return {
    ...channel,
    endpoint,
    id: String(channel.headers['mcp-session-id']),
    post: (body, more) => send(new URL(endpoint, url).href, { body, headers: { ...headers, ...more } }),
    message: async (event = 'message') => JSON.parse((await channel.nextOf(event)).data) as Message,
  }
}

/** Only a GET of `/mcp/<workspace>` opens with a lifecycle event, unless the client chooses otherwise. */
const hasLifecycle = ({ pathname, searchParams }: URL): boolean =>
  searchParams.has('events')
    ? /\blifecycle\b/.test(searchParams.get('events') ?? '')
    : /^\/mcp(\/[^/]*)?$|^\/[^/]+\/mcp$/.test(pathname)
