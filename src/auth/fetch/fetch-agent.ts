import { Agent, type Dispatcher, request } from 'undici'
import type { GuardedConnectorOptions } from '../../std/guarded-connector.ts'
import { buildGuardedConnector } from '../../std/undici-connector.ts'

const IDLE_MS = 4000 // of a connection

type SendOptions = Pick<Dispatcher.RequestOptions, 'method' | 'body' | 'signal'> & {
  readonly headers: Record<string, string>
}

/** Sends requests to the addresses that a guard allows. Loaded with the first one: undici takes 60 ms of CPU to load. */
export class FetchAgent {
  readonly #agent: Agent

  constructor(guard: GuardedConnectorOptions) {
    this.#agent = new Agent({ connect: buildGuardedConnector(guard), keepAliveTimeout: IDLE_MS })
  }

  /** The signal ends a request that takes too long. */
  send(url: URL, options: SendOptions): Promise<Dispatcher.ResponseData> {
    return request(url, { dispatcher: this.#agent, ...options, headersTimeout: 0, bodyTimeout: 0 })
  }

  destroy(): Promise<void> {
    return this.#agent.destroy()
  }
}
