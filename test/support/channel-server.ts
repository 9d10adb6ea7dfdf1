import type { ServerResponse } from 'node:http'
import type { RemoteServer } from '../../src/config/snapshot.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { connectRemote, type RemoteOptions } from '../../src/upstreams/connect-remote.ts'
import { type Arrived, openStream, result, scriptedServer } from './scripted-server.ts'

export type Stream = ReturnType<typeof openStream>

/** What a server on a channel does with a message that was posted. */
export type ChannelScript = (arrived: Arrived, channel: Stream, response: ServerResponse) => void

export interface ChannelHabits {
  readonly path?: string // of the channel
  readonly greeting?: (origin: string) => string // raw, as the channel begins
  readonly version?: string
  readonly capabilities?: unknown
  /** What a POST to the address of the channel gets; 405 unless messages go there. */
  readonly refuse?: (response: ServerResponse) => void
  readonly get?: (arrived: Arrived, response: ServerResponse) => boolean // true: it has answered the GET
}

export const ENDPOINT = 'event: endpoint\ndata: /messages/?session_id=1\n\n'

/** Answers everything on the channel. */
export const answerOk: ChannelScript = ({ body }, channel, response) => {
  response.writeHead(202).end('Accepted')
  if (body.id !== undefined && body.method) channel.event(result(body.id, { ok: true }), 'event: message\n')
}

/** A server that speaks on a channel, shakes hands as usual, and does the rest as told. */
export const channelServer = async (script: ChannelScript = answerOk, habits: ChannelHabits = {}) => {
  const { path = '/sse', greeting = () => ENDPOINT, version = '2024-11-05', capabilities = { tools: {} } } = habits
  const streams: Stream[] = []
  const server = await scriptedServer((arrived, response) => {
    if (arrived.method === 'GET') {
      if (habits.get?.(arrived, response)) return
      const stream = openStream(response)
      streams.push(stream)
      return void stream.raw(greeting(server.origin))
    }
    if (arrived.url === path && habits.refuse) return habits.refuse(response)
    if (arrived.url === path && greeting('').includes('messages')) return void response.writeHead(405).end()
    const channel = streams.at(-1)
    if (!channel) return void response.writeHead(404).end()
    const { id, method } = arrived.body
    if (method !== 'initialize') return script(arrived, channel, response)
    response.writeHead(202).end()
    const serverInfo = { name: 'channelled', version: '1' }
    channel.event(result(id, { protocolVersion: version, capabilities, serverInfo }))
  })
  return { ...server, url: server.origin + path, streams }
}

export type ChannelServer = Awaited<ReturnType<typeof channelServer>>

/** Connects to it; everything is ended by the last of `closing`. */
export const connectTo = (
  server: { readonly url: string; close(): Promise<void> },
  closing: (() => Promise<void>)[],
  config: Partial<RemoteServer> = {},
  options: Partial<RemoteOptions> = {},
) => {
  const remote = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 } as const
  const upstream = connectRemote({ name: 'far', ...remote, ...config }, { log: SILENT, answerMs: 1000, ...options })
  closing.push(
    () => server.close(),
    () => upstream.close(),
  )
  return upstream
}
