import { META } from '../../src/protocol/meta.ts'
import { MODERN } from '../../src/protocol/revisions.ts'
import { modern, openStream, type RawStream } from '../support/raw.ts'
import {
  type Asked,
  type CallOptions,
  createEar,
  type MatrixClient,
  type Outcome,
  type Wire,
  written,
} from './client.ts'

/** 2026-07-28 over HTTP: every call is a POST; questions are answered by sending it again. */
export const statelessClient = async (url: string, capabilities: object): Promise<MatrixClient> => {
  const received: Wire[] = []
  const texts: string[] = []
  const ear = createEar()
  const streams = new Set<RawStream>()
  let lastId = 0

  const exchange = async (
    method: string,
    params: Record<string, unknown>,
    options: CallOptions,
    onMessage: (message: Wire) => void,
  ): Promise<Wire> => {
    const id = `c${++lastId}`
    const { headers, body } = modern(id, method, params, { capabilities, meta: options.meta ?? {} })
    const stream = await openStream(url, { headers: { ...headers, ...options.headers }, body: written(body) })
    const stop = () => stream.close()
    options.signal?.addEventListener('abort', stop, { once: true })
    if (!stream.headers['content-type']?.includes('event-stream')) {
      const chunks: Buffer[] = []
      for await (const chunk of stream.response) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString()
      const message = JSON.parse(text) as Wire
      received.push(message)
      texts.push(text)
      return message
    }
    streams.add(stream)
    for (let event = await stream.next(); event; event = await stream.next()) {
      const message = event.json as Wire
      received.push(message)
      texts.push(event.data)
      if (message.id === id) {
        streams.delete(stream)
        return message
      }
      onMessage(message)
    }
    throw new Error(`the stream of ${method} ended without an answer`)
  }

  const call: MatrixClient['call'] = async (method, params = {}, options = {}): Promise<Outcome> => {
    const notices: Wire[] = []
    const asked: Asked[] = []
    let more: Record<string, unknown> = {}
    for (;;) {
      const { result, error } = await exchange(method, { ...params, ...more }, options, notice => {
        notices.push(notice)
        options.onNotice?.(notice)
      })
      if (result?.resultType !== 'input_required')
        return { ...(result && { result }), ...(error && { error }), notices, asked }
      more = answerAll(result, asked, options)
    }
  }

  return {
    revision: MODERN,
    received,
    texts,
    call,
    notify: async (method, params = {}) => {
      const stream = await openStream(url, {
        headers: { 'mcp-protocol-version': MODERN },
        body: { jsonrpc: '2.0', method, params },
      })
      stream.close()
    },
    heard: ear.wait,
    listen: async (uris = []) => {
      const notifications = {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: true,
        resourceSubscriptions: uris,
      }
      void exchange('subscriptions/listen', { notifications }, {}, ear.hear).catch(() => {})
      await ear.wait('notifications/subscriptions/acknowledged')
    },
    close: async () => {
      for (const stream of streams) stream.close()
    },
  }
}

const answerAll = (result: Record<string, unknown>, asked: Asked[], options: CallOptions): Record<string, unknown> => {
  const inputResponses: Record<string, unknown> = {}
  for (const [key, request] of Object.entries(
    (result.inputRequests ?? {}) as Record<string, { method: string; params: Record<string, unknown> }>,
  )) {
    const question: Asked = { key, method: request.method, params: request.params ?? {} }
    asked.push(question)
    const answer = options.answer?.(question)
    if (answer && !('error' in answer)) inputResponses[key] = answer
  }
  return { inputResponses, ...(result.requestState !== undefined && { requestState: result.requestState }) }
}

export const SUBSCRIPTION_ID = META.subscriptionId
