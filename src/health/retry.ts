import type { Signal } from '../protocol/cancellation.ts'
import { methodRow } from '../protocol/methods.ts'
import type { ServerFault } from './circuit-breaker.ts'

const SHORTEST_MS = 250

/**
 * Whether a request may be sent once more. Only what the protocol itself calls a read: the annotations of a tool are
 * hints of a server nobody need trust, and a tool that ran twice is worse than a caller who has to call again. And
 * only where no connection came about, so that nobody can have acted on it.
 */
export const mayRepeat = (method: string, fault: ServerFault): boolean =>
  wasNeverThere(fault) && (methodRow(method)?.safe === true || method === 'ping')

/** Nobody answered the knock. */
export const wasNeverThere = ({ reason }: ServerFault): boolean => reason === 'upstream_unreachable'

/** The pause before a second try, long enough for a server that is being restarted to come up. */
export const pauseMs = (dice: number): number => SHORTEST_MS * (1 + dice)

/** Goes on after a pause, unless nobody waits any more. */
export const afterPause = (ms: number, signal: Signal, then: () => void): void => {
  const timer = setTimeout(() => {
    forget()
    then()
  }, ms)
  const forget = signal.onAbort(() => clearTimeout(timer))
}
