import type { IncomingHttpHeaders } from 'node:http'
import { Agent, type Dispatcher, request } from 'undici'
import type { Instant } from '../model.ts'
import { RetryLater, retryDelayMs, stoppedError } from '../worker.ts'

/** An OpenAI-compatible HTTP endpoint. */
export interface EndpointOptions {
  readonly url: string // including the version, like https://api.example.com/v1
  readonly key?: string | undefined
  readonly timeoutMs?: number | undefined
}

/** The endpoint rejected the request for its content; a retry would not help. */
export class RejectedRequest extends Error {
  override readonly name = 'RejectedRequest'
}

/** One model endpoint. After a failure, all callers pause for a while. */
export interface Endpoint {
  /** Throws RetryLater during a pause. */
  ensureReady(): void
  /** Sends JSON and returns the JSON of the response. Throws RetryLater, RejectedRequest, another Error, or the reason of the signal. */
  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown>
  /** Aborts all running calls. */
  close(): Promise<void>
}

const TIMEOUT_MS = 60_000
const CONNECT_MS = 10_000
const MOST_BYTES = 32 * 1024 * 1024
const LONGEST_PAUSE_MS = 23 * 60 * 60_000
const MOST_SHOWN = 200

class Aborted extends Error {}
class TimedOut extends Error {}

interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** The delay of a Retry-After header (seconds or a date), in milliseconds. */
export const retryAfterMs = (header: string | undefined, now: Instant): number => {
  if (header === undefined) return 0
  const seconds = Number(header)
  const wait = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1000
  return Number.isFinite(wait) ? Math.min(LONGEST_PAUSE_MS, Math.max(0, wait)) : 0
}

const readText = async (body: Dispatcher.ResponseData['body']): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw new Error(`answered with more than ${MOST_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The message in an error body, in its common forms. */
const errorMessageIn = (text: string): string => {
  try {
    const { error, message, detail } = JSON.parse(text) as Record<string, unknown>
    const nested = typeof error === 'object' && error !== null ? (error as Record<string, unknown>).message : error
    return [nested, message, detail].find(part => typeof part === 'string') ?? ''
  } catch {
    return ''
  }
}

export const createEndpoint = (
  { url, key, timeoutMs = TIMEOUT_MS }: EndpointOptions,
  now: () => Instant = Date.now,
): Endpoint => {
  const agent = new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 })
  const base = url.endsWith('/') ? url : `${url}/`
  const address = URL.canParse(base) ? new URL(base) : undefined
  const running = new Set<AbortController>()
  let isClosed = false
  let failures = 0
  let pausedUntil = 0
  let reason = ''

  /** Some endpoints quote the key in their errors. */
  const describe = (what: string): string => {
    const message = `The endpoint ${address?.host ?? ''} ${what}`
    return key !== undefined && key.length >= 4 ? message.replaceAll(key, '[secret]') : message
  }
  const pause = (what: string, atLeastMs = 0): RetryLater => {
    failures++
    pausedUntil = Math.round(now() + Math.max(atLeastMs, retryDelayMs(failures)))
    reason = describe(what)
    return new RetryLater(reason, pausedUntil)
  }
  const send = async (path: string, body: string, signal: AbortSignal): Promise<HttpReply> => {
    const reply = await request(new URL(path, address), {
      dispatcher: agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
      body,
      signal,
    })
    return { status: reply.statusCode, headers: reply.headers, text: await readText(reply.body) }
  }
  const readReply = ({ status, headers, text }: HttpReply): unknown => {
    if (status >= 200 && status < 300) return parsed(text)
    const why = errorMessageIn(text).slice(0, MOST_SHOWN)
    const what = `answered ${status}${why && `: ${why}`}`
    if (status === 400 || status === 413 || status === 422) throw new RejectedRequest(describe(what))
    // Any other status is a problem of the endpoint, its key or its address, not of the request.
    throw pause(what, retryAfterMs(headers['retry-after'], now()))
  }
  const parsed = (text: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      throw new Error(describe('answered with something that is not JSON'))
    }
  }
  /** The error of a call without a response. */
  const lost = (error: unknown): Error => {
    if (isClosed || error instanceof Aborted) return stoppedError(now())
    // The request itself may be the cause of a timeout, so it counts as an attempt.
    if (error instanceof TimedOut) return new Error(pause(`did not answer within ${timeoutMs / 1000} s`).message)
    const cause = error instanceof Error ? error.message : String(error)
    return pause(`cannot be reached (${cause})`)
  }

  return {
    ensureReady: () => {
      if (isClosed) throw stoppedError(now())
      if (pausedUntil > now()) throw new RetryLater(reason, pausedUntil)
      if (!address?.protocol.startsWith('http')) throw pause('has no address that begins with http:// or https://')
    },
    post: async (path, body, signal) => {
      signal?.throwIfAborted()
      const call = new AbortController()
      const abort = (): void => call.abort(new Aborted())
      signal?.addEventListener('abort', abort, { once: true })
      const timer = setTimeout(() => call.abort(new TimedOut()), timeoutMs).unref()
      running.add(call)
      try {
        const reply = await send(path, JSON.stringify(body), call.signal).catch((error: unknown) => {
          throw signal?.aborted ? signal.reason : lost(call.signal.aborted ? call.signal.reason : error)
        })
        const value = readReply(reply)
        failures = 0
        return value
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        running.delete(call)
      }
    },
    close: async () => {
      isClosed = true
      for (const call of running) call.abort(new Aborted())
      await agent.destroy()
    },
  }
}
