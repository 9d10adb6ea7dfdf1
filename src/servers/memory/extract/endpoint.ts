import type { IncomingHttpHeaders } from 'node:http'
import { Agent, type Dispatcher, request } from 'undici'
import type { Instant } from '../model.ts'
import { Later, stoppedAt, waitAfter } from '../worker.ts'
import type { EndpointOptions } from './options.ts'

/** The endpoint understood the request and will not do it, now or later. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/** One model endpoint. After a failure it is left alone for a while, by everybody. */
export interface Endpoint {
  /** Throws a Later while the endpoint is left alone. */
  ensureReady(): void
  /**
   * Sends JSON and yields the JSON that comes back. Throws Later, Refused, or an Error that says what is wrong; a call
   * that the signal breaks off throws its reason.
   */
  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown>
  /** Breaks off whatever is under way. */
  close(): Promise<void>
}

const TIMEOUT_MS = 60_000
const CONNECT_MS = 10_000
const MOST_BYTES = 32 * 1024 * 1024
const LONGEST_REST_MS = 23 * 60 * 60_000
const MOST_SHOWN = 200

class Closing extends Error {}
class Slow extends Error {}

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** When the endpoint wants to be asked again, in milliseconds from now; it says seconds or a date. */
export const retryAfter = (header: string | undefined, now: Instant): number => {
  if (header === undefined) return 0
  const seconds = Number(header)
  const wait = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1000
  return Number.isFinite(wait) ? Math.min(LONGEST_REST_MS, Math.max(0, wait)) : 0
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

/** What an endpoint says about its refusal, in the few forms that are common. */
const explained = (text: string): string => {
  try {
    const { error, message, detail } = JSON.parse(text) as Record<string, unknown>
    const nested = typeof error === 'object' && error !== null ? (error as Record<string, unknown>).message : error
    return [nested, message, detail].find(part => typeof part === 'string') ?? ''
  } catch {
    return ''
  }
}

export const createEndpoint = (
  { url, key, headers = {}, timeoutMs = TIMEOUT_MS }: EndpointOptions,
  now: () => Instant = Date.now,
): Endpoint => {
  const agent = new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 })
  const base = url.endsWith('/') ? url : `${url}/`
  const address = URL.canParse(base) ? new URL(base) : undefined
  const secrets = [key, ...Object.values(headers)].filter(secret => secret !== undefined && secret.length >= 4)
  const underWay = new Set<AbortController>()
  let isClosed = false
  let failures = 0
  let restsUntil = 0
  let reason = ''

  const named = (what: string): string =>
    secrets.reduce(
      (text: string, secret) => text.replaceAll(secret ?? '', '[secret]'),
      `The endpoint ${address?.host ?? ''} ${what}`,
    )
  const stopped = (): Later => stoppedAt(now())
  const rest = (what: string, atLeastMs = 0): Later => {
    failures++
    restsUntil = Math.round(now() + Math.max(atLeastMs, waitAfter(failures)))
    reason = named(what)
    return new Later(reason, restsUntil)
  }
  const send = async (path: string, body: string, signal: AbortSignal): Promise<Reply> => {
    const reply = await request(new URL(path, address), {
      dispatcher: agent,
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
      body,
      signal,
    })
    return { status: reply.statusCode, headers: reply.headers, text: await readText(reply.body) }
  }
  const judge = ({ status, headers: said, text }: Reply): unknown => {
    if (status >= 200 && status < 300) return parsed(text)
    const why = explained(text).slice(0, MOST_SHOWN)
    const what = `answered ${status}${why && `: ${why}`}`
    if (status === 400 || status === 413 || status === 422) throw new Refused(named(what))
    // Everything else is about the endpoint, its key or its address, not about what was asked.
    throw rest(what, retryAfter(said['retry-after'], now()))
  }
  const parsed = (text: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      throw new Error(named('answered with something that is not JSON'))
    }
  }
  /** What went wrong before there was a reply. */
  const lost = (error: unknown): Error => {
    if (isClosed || error instanceof Closing) return stopped()
    // Too slow may be due to what was asked, so it is an attempt.
    if (error instanceof Slow) return new Error(rest(`did not answer within ${timeoutMs / 1000} s`).message)
    const cause = error instanceof Error ? error.message : String(error)
    return rest(`cannot be reached (${cause})`)
  }

  return {
    ensureReady: () => {
      if (isClosed) throw stopped()
      if (restsUntil > now()) throw new Later(reason, restsUntil)
      if (!address?.protocol.startsWith('http')) throw rest('has no address that begins with http:// or https://')
    },
    post: async (path, body, signal) => {
      signal?.throwIfAborted()
      const call = new AbortController()
      const breakOff = (): void => call.abort(new Closing())
      signal?.addEventListener('abort', breakOff, { once: true })
      const timer = setTimeout(() => call.abort(new Slow()), timeoutMs).unref()
      underWay.add(call)
      try {
        const reply = await send(path, JSON.stringify(body), call.signal).catch((error: unknown) => {
          throw signal?.aborted ? signal.reason : lost(call.signal.aborted ? call.signal.reason : error)
        })
        const value = judge(reply)
        failures = 0
        return value
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', breakOff)
        underWay.delete(call)
      }
    },
    close: async () => {
      isClosed = true
      for (const call of underWay) call.abort(new Closing())
      await agent.destroy()
    },
  }
}
