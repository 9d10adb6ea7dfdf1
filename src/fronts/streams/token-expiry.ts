import type { ServerResponse } from 'node:http'
import { LONGEST_TIMER_MS } from '../../std/time.ts'

/**
 * Ends a standing stream when the token of its client expires; a stream that answers a call ends with the call. `expires` is read
 * again then, because requests with a newer token of the same principal move it. Undefined: never.
 */
export const endAtExpiry = (
  response: ServerResponse,
  expires: () => number | undefined,
  end: () => void = () => void response.req.socket.destroy(),
): void => {
  let timer: NodeJS.Timeout | undefined
  const check = (): void => {
    const at = expires()
    if (at === undefined) return
    const left = at - Date.now()
    if (left <= 0) return end()
    timer = setTimeout(check, Math.min(left, LONGEST_TIMER_MS)).unref()
  }
  check()
  if (timer) response.on('close', () => clearTimeout(timer))
}
