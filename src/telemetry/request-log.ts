import type { Log } from './log.ts'

/** Filled in while a request is handled, if the log level is debug. */
export interface RequestTrace {
  server?: string
}

/** The part of an exchange that is needed to log it. */
interface LoggedExchange<F> {
  readonly kind: string
  readonly method: string
  readonly caller: { readonly workspace: string }
  readonly signal: { onAbort(listener: () => void): () => void }
  readonly sink: (frame: F) => void | Promise<void>
  readonly trace?: RequestTrace | undefined
}

interface EndFrame {
  readonly kind: string
  readonly error?: { readonly code: number }
}

/** Logs a line when a request ends: its method, workspace and server, duration and outcome. */
export const logRequests =
  <F extends EndFrame, E extends LoggedExchange<F>>(log: Log, dialect: string, dispatch: (exchange: E) => void) =>
  (exchange: E): void => {
    const trace: RequestTrace = {}
    if (exchange.kind !== 'request') return dispatch({ ...exchange, trace })
    const { method, caller, signal } = exchange
    const started = performance.now()
    let isOver = false
    let removeListener = (): void => {} // the signal may be aborted already: then `end` runs before it is set
    const end = (outcome: string, code?: number): void => {
      if (isOver) return
      isOver = true
      removeListener()
      const ms = Math.round((performance.now() - started) * 10) / 10
      log.debug(
        { dialect, method, workspace: caller.workspace, server: trace.server, ms, outcome, code },
        'request ended',
      )
    }
    removeListener = signal.onAbort(() => end('cancelled'))
    const sink = (frame: F): void | Promise<void> => {
      if (frame.kind === 'result') end('ok')
      else if (frame.kind === 'failure') end('error', frame.error?.code)
      return exchange.sink(frame)
    }
    dispatch({ ...exchange, trace, sink })
  }
