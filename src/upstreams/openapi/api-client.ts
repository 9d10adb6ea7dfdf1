import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Signal } from '../../protocol/cancellation.ts'
import type { Log } from '../../telemetry/log.ts'
import { Deadlines } from '../deadlines.ts'
import { DISCONNECTED, type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { BearerTokens } from '../http/authorized-request.ts'
import type { AddressScope } from '../http/connections.ts'
import { HttpClient, type PendingRequest } from '../http/http-client.ts'
import { targetOf } from '../http/redirect.ts'

interface ApiClientOptions {
  readonly name: string // of the server
  readonly version: string // of the gateway
  readonly headers: Readonly<Record<string, string>> // of the entry, in lower case
  readonly timeoutMs: number
  readonly allowsCrossOrigin?: boolean | undefined
  readonly tokens?: { readonly origin: string; readonly tokens: BearerTokens } | undefined
  readonly ownPort?: (() => number | undefined) | undefined
  readonly connectMs?: number | undefined
  /** The addresses that a request may lead to; undefined: any, because the configuration names its origin. */
  readonly scopeOf?: ((url: string) => AddressScope | undefined) | undefined
  readonly log: Log
}

/** A request to an API. */
interface HttpApiRequest {
  readonly method: string
  readonly url: string
  readonly headers: readonly string[] // flat: name, value, name, value
  readonly body: Buffer | null
}

/** Takes a response; after `enough` the rest is not read. */
interface HttpApiReceiver {
  status(status: number, headers: IncomingHttpHeaders): void
  bytes(chunk: Buffer): 'enough' | void | Promise<void>
}

const MIB = 1024 * 1024
const MOST_BYTES = 64 * MIB // of one response, as of one message of an MCP server
const CONNECT_MS = 10_000

/** Sends the requests of one caller to an API, with the credentials of the entry. */
export class ApiClient {
  readonly http: HttpClient
  readonly #options: ApiClientOptions
  readonly #headers: readonly string[]

  constructor(options: ApiClientOptions) {
    const { headers, version, timeoutMs } = options
    this.#options = options
    const agent = headers['user-agent'] === undefined ? { 'user-agent': `dragoman/${version}` } : {}
    this.#headers = Object.entries({ ...agent, ...headers })
      .filter(([name]) => name !== 'cookie')
      .flat()
    this.http = new HttpClient({
      secretHeaders: Object.keys(headers),
      connectMs: options.connectMs ?? CONNECT_MS,
      allowsCrossOrigin: options.allowsCrossOrigin,
      ownPort: options.ownPort,
      access: options.tokens,
      deadlines: new Deadlines(Math.max(10, Math.min(1000, timeoutMs / 4))),
      log: options.log,
    })
  }

  get isIdle(): boolean {
    return this.http.isIdle
  }

  /** Resolves when the response has ended, or is not wanted any more; rejects with UpstreamFailure. */
  send(request: HttpApiRequest, receiver: HttpApiReceiver, signal: Signal, mostBytes = MOST_BYTES): Promise<void> {
    const { name, timeoutMs, scopeOf } = this.#options
    const scope = scopeOf?.(request.url)
    return new Promise((resolve, reject) => {
      let length = 0
      let pending: PendingRequest | undefined
      const fail = (details: FailureDetails): void => {
        stopListening()
        reject(new UpstreamFailure(name, details))
      }
      const finish = (): void => {
        stopListening()
        resolve()
      }
      const stop = (): void => pending?.abort()
      let stopListening = (): void => {}
      pending = this.http.send(
        {
          method: request.method as Dispatcher.HttpMethod,
          target: { ...targetOf(request.url), ...(scope && { scope }) },
          headers: this.#withOwnHeaders(request.headers),
          body: request.body,
          responseTimeouts: { headersMs: timeoutMs, bodyMs: timeoutMs },
          isOneOff: true,
        },
        {
          status: (status, headers) => receiver.status(status, headers),
          bytes: chunk => {
            length += chunk.length
            if (length > mostBytes) {
              stop()
              return fail({ reason: 'too_large', text: `answered more than ${Math.floor(mostBytes / MIB)} MiB` })
            }
            const reading = receiver.bytes(chunk)
            if (reading !== 'enough') return reading
            stop()
            finish()
          },
          end: finish,
          failed: fail,
        },
      )
      stopListening = signal.onAbort(() => {
        stop()
        fail(DISCONNECTED)
      })
    })
  }

  close(): Promise<void> {
    return this.http.close()
  }

  /** The headers of the entry win; cookies of both are sent. */
  #withOwnHeaders(headers: readonly string[]): string[] {
    const { headers: own } = this.#options
    const sent: string[] = []
    const cookies = own.cookie === undefined ? [] : [own.cookie]
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const [name, value] = [headers[i] as string, headers[i + 1] as string]
      if (name === 'cookie') cookies.push(value)
      else if (!Object.hasOwn(own, name)) sent.push(name, value)
    }
    return [...sent, ...this.#headers, ...(cookies.length > 0 ? ['cookie', cookies.join('; ')] : [])]
  }
}
