import { Agent, type IncomingMessage, request } from 'node:http'
import type { OpenDaemon } from '../cli/command.ts'
import { DEFAULT_LIMITS } from '../config/snapshot.ts'
import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { MODERN } from '../protocol/revisions.ts'
import { mcpMethod, mcpName, withEnvelope } from '../upstreams/stateless/envelope.ts'
import { readBody } from '../wire/http-body.ts'
import { Json } from '../wire/json/json.ts'
import { encodeRequest, joinBuffers, type Message, readIncoming } from '../wire/json-rpc.ts'
import { isEventStream } from '../wire/media-type.ts'
import { SseDecoder } from '../wire/sse.ts'
import { watchByListen } from './client-watch.ts'

const MAX_BYTES = 256 * 1024 * 1024

/** Connects to a workspace of the daemon. Loads nothing of the gateway: a command in a shell must start quickly. */
export const openDaemon: OpenDaemon = async ({ origin, token }, workspace, asks) => {
  const agent = new Agent({ keepAlive: true })
  const url = new URL(`/mcp/${encodeURIComponent(workspace)}`, origin)
  const send = createPost(url, token, agent)
  return {
    revision: MODERN,
    dispatch: asks ? await withQuestions(send) : send,
    watch: watchByListen(send),
    close: async () => agent.destroy(),
  }
}

/** Questions come with results, and some arguments go into headers. Commands that call nothing do not load this. */
const withQuestions = async (send: Dispatch): Promise<Dispatch> => {
  const { askInRounds } = await import('../bridge/rounds.ts')
  const { ParamHeaderWriter } = await import('../bridge/param-header-writer.ts')
  return askInRounds(new ParamHeaderWriter().wrap(send), DEFAULT_LIMITS)
}

/** Each request is a POST of its own; closing it cancels it. */
const createPost =
  (url: URL, token: string, agent: Agent): Dispatch =>
  exchange => {
    const { method, caller, signal } = exchange
    const params = withEnvelope(exchange.params, caller)
    const body = joinBuffers(encodeRequest(1, method, params))
    const name = mcpName(method, params)
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': body.length,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': mcpMethod(method),
      ...(name !== undefined && { 'mcp-name': name }),
      ...Object.fromEntries(caller.headers),
    }
    const reply = new PostReply(exchange)
    const posting = request(url, { method: 'POST', agent, headers }, response => reply.read(response))
    const stopListening = signal.onAbort(() => {
      reply.drop()
      posting.destroy()
    })
    posting.on('error', error => reply.fail('upstream_unreachable', `cannot be reached: ${error.message}`))
    posting.on('close', stopListening)
    posting.end(body)
  }

/** The response to one POST. */
class PostReply {
  readonly #exchange: Exchange
  #isDone = false

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  read(response: IncomingMessage): void {
    const { method } = this.#exchange
    response.on('error', error => this.fail('upstream_stream_lost', `broke off its answer: ${error.message}`))
    if (isEventStream(response.headers['content-type'])) {
      const decoder = new SseDecoder(({ data }) => this.#take(data, response.statusCode), { maxBytes: MAX_BYTES })
      response.on('data', (chunk: Buffer) => decoder.feed(chunk))
      response.on('close', () => this.fail('upstream_stream_lost', `ended its stream without an answer to ${method}`))
      return
    }
    readBody(response, MAX_BYTES).then(
      body => this.#take(body, response.statusCode),
      (error: Error) => this.fail('upstream_stream_lost', `broke off its answer: ${error.message}`),
    )
  }

  /** Ends the exchange without a frame: its caller has left. */
  drop(): void {
    this.#isDone = true
  }

  fail(reason: string, text: string): void {
    this.#end({ kind: 'failure', error: daemonError(reason, text) })
  }

  #take(bytes: Buffer, status: number | undefined): void {
    if (this.#isDone) return
    const message = readMessage(bytes)
    if (message?.kind === 'notification')
      return void deliver(this.#exchange.sink, { kind: 'notice', method: message.method, params: message.params })
    if (message?.kind === 'response') this.#end({ kind: 'result', result: message.result })
    else if (message?.kind === 'error') this.#end({ kind: 'failure', error: message.error })
    else this.fail('upstream_protocol', `answered HTTP ${status} without a JSON-RPC message`)
  }

  #end(frame: Frame): void {
    if (this.#isDone) return
    this.#isDone = true
    void deliver(this.#exchange.sink, frame)
  }
}

const readMessage = (bytes: Buffer): Message | undefined => {
  try {
    const incoming = readIncoming(bytes)
    return incoming.kind === 'batch' ? undefined : incoming
  } catch {
    return undefined
  }
}

const daemonError = (reason: string, text: string): RpcError =>
  rpcError('internal', `The daemon ${text}`, Json.of({ reason }))
