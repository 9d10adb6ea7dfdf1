import { type IncomingHttpHeaders, request } from 'node:http'
import { SseDecoder } from '../../../src/wire/sse.ts'

/** What is wrong with the gateway, in words. */
export class Fault extends Error {}

/** How long a request may go without an answer. Longer than every timeout on the way together. */
export const ANSWER_MS = 20_000

export interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: unknown
  readonly result?: Record<string, unknown>
  readonly error?: unknown
}

interface Sent {
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Every message of an event stream as it comes; with the name of its event. */
  readonly onMessage?: (message: Message, event: string) => void
  /** An event stream is left then: it need not end by itself. */
  readonly leave?: Promise<unknown>
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Sends a request and reads its reply to the end. Throws a Fault if it fails, never ends, or is not what it says. */
export const exchange = (url: string, { method = 'POST', headers, body, onMessage, leave }: Sent): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      clearTimeout(timer)
      outgoing.destroy()
      reject(new Fault(`${method} ${url} ${why}`))
    }
    const timer = setTimeout(() => fail(`had no answer after ${ANSWER_MS} ms`), ANSWER_MS)
    const outgoing = request(url, { method, agent: false, headers })
    let isLeaving = false
    outgoing.on('error', error => (isLeaving ? undefined : fail(`broke: ${error.message}`)))
    outgoing.on('response', response => {
      const { statusCode: status = 0 } = response
      const chunks: Buffer[] = []
      const isStream = response.headers['content-type'] === 'text/event-stream'
      const finish = (): void => {
        clearTimeout(timer)
        const text = Buffer.concat(chunks).toString()
        if (status === 500) fail(`was answered 500: ${text}`)
        else if (!isJson(response.headers, text)) fail(`was answered with broken JSON: ${text.slice(0, 200)}`)
        else resolve({ status, headers: response.headers, text })
      }
      const events = new SseDecoder(({ event, data }) => {
        if (data.length === 0 || event === 'endpoint') return onMessage?.({ params: data.toString() }, event)
        try {
          onMessage?.(JSON.parse(data.toString()) as Message, event)
        } catch {
          fail(`sent an event that is no JSON: ${data.toString().slice(0, 200)}`)
        }
      })
      response.on('data', (chunk: Buffer) => (isStream ? events.feed(chunk) : chunks.push(chunk)))
      response.on('end', finish)
      response.on('error', () => (isLeaving ? finish() : fail('broke off in the middle of its answer')))
      if (isStream && leave) clearTimeout(timer)
      if (isStream)
        void leave?.then(() => {
          isLeaving = true
          outgoing.destroy()
          finish()
        })
    })
    outgoing.end(body)
  })

const isJson = (headers: IncomingHttpHeaders, text: string): boolean => {
  if (!headers['content-type']?.includes('json') || text === '') return true
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
