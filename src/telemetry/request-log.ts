import type { Log } from './log.ts'

/** The part of an exchange that is needed to log it. */
interface LoggedExchange<F> {
  readonly kind: string
  readonly method: string
  readonly caller: { readonly workspace: string }
  readonly signal: { onAbort(listener: () => void): () => void }
  readonly sink: (frame: F) => void | Promise<void>
  readonly sentTo?: ((server: string) => void) | undefined
}

interface EndFrame {
  readonly kind: string
  readonly error?: { readonly code: number }
}

/** Logs a line when a request ends: its method, workspace and server, duration and outcome. */
export const logRequests =
  <F extends EndFrame, E extends LoggedExchange<F>>(log: Log, dialect: string, dispatch: (exchange: E) => void) =>
  (exchange: E): void => {
    if (exchange.kind !== 'request') return dispatch(exchange)
    const { method, caller, signal } = exchange
    const started = performance.now()
    const servers = new Set<string>() // a request such as `logging/setLevel` goes to several
    let isOver = false
    let removeListener = (): void => {} // the signal may be aborted already: then `end` runs before it is set
    const end = (outcome: string, code?: number): void => {
      if (isOver) return
      isOver = true
      removeListener()
      const server = servers.size > 1 ? 'several' : [...servers][0]
      const ms = Math.round((performance.now() - started) * 10) / 10
      log.debug({ dialect, method, workspace: caller.workspace, server, ms, outcome, code }, 'request ended')
    }
    removeListener = signal.onAbort(() => end('cancelled'))
    const sink = (frame: F): void | Promise<void> => {
      if (frame.kind === 'result') end('ok')
      else if (frame.kind === 'failure') end('error', frame.error?.code)
      return exchange.sink(frame)
    }
    dispatch({ ...exchange, sentTo: server => servers.add(server), sink })
  }
