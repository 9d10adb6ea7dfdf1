import { setTimeout as sleep } from 'node:timers/promises'
import type { Revision } from '../../src/protocol/revisions.ts'
import { openSession, openStream, type RawStream, send } from '../support/raw.ts'
import { type Asked, type CallOptions, createEar, type MatrixClient, type Wire, written } from './client.ts'

const POLL_MS = 100
const MOST_POLLS = 100

/** A legacy revision over Streamable HTTP: a session, its GET stream, questions as requests. */
export const sessionClient = async (url: string, revision: Revision, capabilities: object): Promise<MatrixClient> => {
  const { headers } = await openSession(url, revision, capabilities)
  const received: Wire[] = []
  const texts: string[] = []
  const ear = createEar()
  let lastId = 100

  const reply = async (message: Wire, options: CallOptions, asked: Asked[]): Promise<void> => {
    const question: Asked = { key: String(message.id), method: message.method ?? '', params: message.params ?? {} }
    asked.push(question)
    const answer = options.answer?.(question) ?? { error: { code: -32601, message: 'not here' } }
    const body = {
      jsonrpc: '2.0',
      id: message.id,
      ...('error' in answer ? { error: answer.error } : { result: answer }),
    }
    await send(url, { headers, body })
  }

  const readAll = async (stream: RawStream, take: (message: Wire) => void | Promise<void>): Promise<void> => {
    for (let event = await stream.next(); event; event = await stream.next()) {
      received.push(event.json as Wire)
      texts.push(event.data)
      await take(event.json as Wire)
    }
  }

  /** Asks for the rest of a stream that ended before the response, as servers may want since 2025-11-25. */
  const poll = async (first: RawStream, take: (message: Wire) => Promise<void>, isOver: () => boolean) => {
    let after = first.lastEventId
    for (let polls = 0; polls < MOST_POLLS && after !== undefined && !isOver(); polls++) {
      await sleep(POLL_MS)
      const stream = await openStream(url, { method: 'GET', headers: { ...headers, 'last-event-id': after } })
      await readAll(stream, take)
      after = stream.lastEventId ?? after
    }
  }

  const inbox = await openStream(url, { method: 'GET', headers })
  const outside: CallOptions = {
    answer: ({ method }) => (method === 'roots/list' ? { roots: [] } : { action: 'cancel' }),
  }
  void readAll(inbox, message =>
    message.id !== undefined && message.method ? reply(message, outside, []) : ear.hear(message),
  )

  const call: MatrixClient['call'] = async (method, params = {}, options = {}) => {
    const id = ++lastId
    const notices: Wire[] = []
    const asked: Asked[] = []
    const meta = options.meta ? { _meta: options.meta } : {}
    const stream = await openStream(url, {
      headers: { ...headers, ...options.headers },
      body: written({ jsonrpc: '2.0', id, method, params: { ...params, ...meta } }),
    })
    options.signal?.addEventListener('abort', () => stream.close(), { once: true })
    let last: Wire | undefined
    const take = async (message: Wire): Promise<void> => {
      if (message.id === id && !message.method) last = message
      else if (message.id !== undefined) await reply(message, options, asked)
      else {
        notices.push(message)
        options.onNotice?.(message)
      }
    }
    if (stream.headers['content-type']?.includes('event-stream')) {
      await readAll(stream, take)
      await poll(stream, take, () => last !== undefined || options.signal?.aborted === true)
    } else {
      const chunks: Buffer[] = []
      for await (const chunk of stream.response) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString()
      last = JSON.parse(text) as Wire
      received.push(last)
      texts.push(text)
    }
    if (!last) throw new Error(`the stream of ${method} ended without an answer`)
    return { ...(last.result && { result: last.result }), ...(last.error && { error: last.error }), notices, asked }
  }

  return {
    revision,
    received,
    texts,
    call,
    notify: async (method, params = {}) =>
      void (await send(url, { headers, body: { jsonrpc: '2.0', method, params } })),
    heard: ear.wait,
    listen: async (uris = []) => {
      for (const uri of uris) {
        const { error } = await call('resources/subscribe', { uri })
        if (error) throw new Error(error.message)
      }
    },
    close: async () => {
      inbox.close()
      await send(url, { method: 'DELETE', headers })
    },
  }
}
