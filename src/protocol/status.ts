/** What is known of a configured server right now. */
export interface ServerStatus {
  readonly name: string
  readonly state: ServerState
  readonly since?: number | undefined // as Date.now() counts
  readonly reason?: string | undefined // why it is not simply ready
  readonly retryAt?: number | undefined // when a server that is down is tried again
  readonly revision?: string | undefined
  readonly tools?: number | undefined
  readonly figures?: ServerCounters | undefined
}

/**
 * `untried`: only a caller can find out; `degraded`: it may answer, but something failed; `unavailable`: its entry in
 * the configuration cannot be served.
 */
export type ServerState = (typeof SERVER_STATES)[number]

export const SERVER_STATES = ['connecting', 'untried', 'ready', 'degraded', 'down', 'disabled', 'unavailable'] as const

/** What was counted at a server's gate. */
export interface ServerCounters {
  readonly openings: number // how often it went down
  readonly retries: number // requests and connections that were tried once more
  readonly running?: number | undefined // calls under way; counted only where they are limited
  readonly waiting: number // calls beyond the limit
}

/** A workspace as an operator sees it. */
export interface WorkspaceStatus {
  readonly name: string
  readonly url: string
  readonly servers: readonly ServerStatus[]
}
