import type { Log } from '../telemetry/log.ts'
import { faultIn, type HealthState } from './state.ts'

const SHORTEST_MS = 1000
const LONGEST_MS = 60_000
const UNLIMITED = 4 // lines in a row without a delay: an outage has three (degraded, down, ready)

/**
 * Logs the state changes of one server, one line per change. A server that keeps changing is logged less and less often, down to once a minute, and then only
 * if its state differs from the one logged last.
 */
export const createStateLog = (server: string, first: HealthState['kind'], log: Log) => {
  let logged = first
  let latest: HealthState | undefined
  let loggedAt = Number.NEGATIVE_INFINITY
  let lines = 0 // in a row
  let delayMs = 0
  let timer: NodeJS.Timeout | undefined

  const write = (): void => {
    timer = undefined
    if (!latest || latest.kind === logged) return
    const now = Date.now()
    lines = now - loggedAt > 2 * LONGEST_MS ? 1 : lines + 1
    delayMs = lines < UNLIMITED ? 0 : Math.min(LONGEST_MS, SHORTEST_MS * 2 ** (lines - UNLIMITED))
    const fields = { server, from: logged, to: latest.kind, reason: faultIn(latest)?.message }
    log[levelOf(logged, latest.kind)](fields, 'server state changed')
    logged = latest.kind
    loggedAt = now
  }

  return {
    changed: (state: HealthState): void => {
      latest = state
      const ms = loggedAt + delayMs - Date.now()
      if (ms <= 0) return write()
      timer ??= setTimeout(write, ms).unref()
    },
    close: (): void => clearTimeout(timer),
  }
}

/** A first successful connection is expected, and so is a server that only callers have credentials for. */
const levelOf = (from: HealthState['kind'], to: HealthState['kind']): 'debug' | 'info' | 'warn' => {
  if (to !== 'ready' && to !== 'untried') return 'warn'
  return from === 'connecting' || from === 'untried' ? 'debug' : 'info'
}
