export interface CounterOptions {
  readonly isStateless?: boolean // without session ids
}

export const startCounter: (options?: CounterOptions) => Promise<{
  readonly url: string
  readonly sessions: ReadonlyMap<string, unknown>
  close(): Promise<void>
}>
