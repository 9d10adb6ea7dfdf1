import type { Revision } from '../../src/protocol/revisions.ts'

export type Wire = Record<string, unknown> & {
  id?: string | number | null
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: unknown }
}

/** A number in a spelling of its own, which JSON.stringify would not keep. */
export const spelt = (number: string): string => `⟦${number}⟧`

/** A message as it goes over the wire. */
export const written = (message: object): string => JSON.stringify(message).replaceAll(/"⟦([^⟧"]*)⟧"/g, '$1')

/** What a client was asked, in whatever manner. */
export interface Asked {
  readonly key: string
  readonly method: string
  readonly params: Record<string, unknown>
}

export interface CallOptions {
  readonly meta?: Record<string, unknown>
  /** Answers a question: the result, or an error. */
  readonly answer?: (asked: Asked) => Record<string, unknown> | { readonly error: { code: number; message: string } }
  readonly onNotice?: (notice: Wire) => void
  readonly signal?: AbortSignal
  readonly headers?: Record<string, string>
}

export interface Outcome {
  readonly result?: Record<string, unknown>
  readonly error?: { code: number; message: string; data?: unknown }
  readonly notices: readonly Wire[]
  readonly asked: readonly Asked[]
}

/** A client made by hand, of one revision over one dialect; everything it read is kept. */
export interface MatrixClient {
  readonly revision: Revision
  readonly received: Wire[]
  readonly texts: string[] // the same, as it was written
  call(method: string, params?: Record<string, unknown>, options?: CallOptions): Promise<Outcome>
  notify(method: string, params?: Record<string, unknown>): Promise<void>
  /** The next message outside any call that has this method. */
  heard(method: string): Promise<Wire>
  /** Listens to changes: list flags and URIs. */
  listen(uris?: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** Messages by method, now or when they come. */
export const createEar = () => {
  const heard: Wire[] = []
  const waiting = new Set<() => void>()
  return {
    hear: (message: Wire): void => {
      heard.push(message)
      for (const look of [...waiting]) look()
    },
    wait: (method: string): Promise<Wire> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`never heard ${method}`)), 8000)
        const look = (): void => {
          const at = heard.findIndex(message => message.method === method)
          if (at < 0) return
          waiting.delete(look)
          clearTimeout(timer)
          resolve(heard.splice(at, 1)[0] as Wire)
        }
        waiting.add(look)
        look()
      }),
  }
}
