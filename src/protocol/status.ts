/** What is known of a configured server right now. */
export interface ServerStatus {
  readonly name: string
  readonly state: 'connecting' | 'ready' | 'down' | 'disabled' | 'unavailable'
  readonly revision?: string | undefined
  readonly tools?: number | undefined
  readonly reason?: string | undefined
}

/** A workspace as an operator sees it. */
export interface WorkspaceStatus {
  readonly name: string
  readonly url: string
  readonly servers: readonly ServerStatus[]
}
