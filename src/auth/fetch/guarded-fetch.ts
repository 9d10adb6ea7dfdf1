import type { IncomingHttpHeaders } from 'node:http'
import { ADDRESS_REFUSED, type Destination } from '../../std/guarded-connector.ts'
import type { FetchAgent } from './fetch-agent.ts'
import { type FetchReach, type ReachOptions, ReachRules } from './reach.ts'

/** One request to an address that other parties may have named: metadata, keys, client documents, token endpoints. */
export interface FetchRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The URL of the configuration that led here; undefined: there is none, and only public addresses are used. */
  readonly from?: string | undefined
}

export interface FetchResponse {
  readonly status: number // a redirect is not followed
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Rejects with FetchFailed. */
export type GuardedFetch = (url: string, request?: FetchRequest) => Promise<FetchResponse>

/** Why there is no response; the message names the URL. */
export class FetchFailed extends Error {
  readonly reason: 'refused' | 'unreachable' | 'too_large'

  constructor(reason: 'refused' | 'unreachable' | 'too_large', message: string) {
    super(message)
    this.reason = reason
  }
}

export interface GuardedFetchOptions extends ReachOptions {
  readonly timeoutMs?: number // of a whole request
}

const MOST_BYTES = 256 * 1024
const TIMEOUT_MS = 10_000

/** Fetches small documents from addresses that the gateway does not trust; `close` ends requests in flight. */
export const createGuardedFetch = (options: GuardedFetchOptions = {}) => {
  const { timeoutMs = TIMEOUT_MS } = options
  const rules = new ReachRules(options)
  const agents = new Map<FetchReach, FetchAgent>()

  const agentFor = async (reach: FetchReach): Promise<FetchAgent> => {
    const { FetchAgent: Agent } = await import('./fetch-agent.ts')
    const guard = {
      connectMs: timeoutMs,
      lookup: options.lookup,
      refusalOf: (to: Destination) => rules.refusal(reach, to),
    }
    const agent = agents.get(reach) ?? new Agent(guard)
    agents.set(reach, agent)
    return agent
  }

  const fetch: GuardedFetch = async (address, { method = 'GET', headers, body, from } = {}) => {
    const url = URL.parse(address)
    if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
      throw new FetchFailed('refused', `"${address.slice(0, SHOWN)}" is no http or https URL`)
    if (url.username || url.password) throw new FetchFailed('refused', `${nameOf(url)} has credentials in it`)
    const reach = await rules.reachOf(url, from)
    if (url.protocol === 'http:' && reach !== 'configured' && reach !== 'loopback')
      throw new FetchFailed('refused', `${nameOf(url)} is not encrypted (use https:)`)
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const agent = await agentFor(reach)
      const response = await agent.send(url, {
        method,
        headers: { accept: 'application/json', 'user-agent': 'dragoman', ...headers },
        body: body ?? null,
        signal,
      })
      const read = await readBody(response.body, url)
      return { status: response.statusCode, headers: response.headers, body: read }
    } catch (error) {
      if (error instanceof FetchFailed) throw error
      if (signal.aborted)
        throw new FetchFailed('unreachable', `${nameOf(url)} did not answer within ${timeoutMs / 1000} s`)
      throw describeError(error, url)
    }
  }

  const close = async (): Promise<void> => {
    await Promise.all([...agents.values()].map(agent => agent.destroy()))
  }
  return { fetch, close }
}

const SHOWN = 200

/** Without the query, which may hold secrets. */
const nameOf = ({ origin, pathname }: URL): string => (origin + pathname).slice(0, SHOWN)

const readBody = async (body: AsyncIterable<Buffer> & { destroy(): void }, url: URL): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > MOST_BYTES) {
      body.destroy()
      throw new FetchFailed('too_large', `${nameOf(url)} answered with more than ${MOST_BYTES / 1024} KiB`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const describeError = (error: unknown, url: URL): FetchFailed => {
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error
  const { code, message }: NodeJS.ErrnoException = cause instanceof Error ? cause : new Error(String(cause))
  if (code === ADDRESS_REFUSED) return new FetchFailed('refused', `${nameOf(url)} ${message}`)
  return new FetchFailed('unreachable', `${nameOf(url)} did not answer: ${message || code}`)
}

/** The JSON object in a response; undefined if it holds anything else, for example a page. */
export const readJsonObject = ({ body }: FetchResponse): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}
