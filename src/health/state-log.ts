import type { Log } from '../telemetry/log.ts'
import { faultIn, type HealthState } from './state.ts'

const SHORTEST_MS = 1000
const LONGEST_MS = 60_000
const FREE = 4 // as many as an outage has: degraded, down, ready, and one to spare

/** Says how a server changes. */
export interface StateLog {
  changed(state: HealthState): void
  close(): void
}

/**
 * One line per change; a server that keeps changing is said less and less often, to once a minute, and then
 * only if it differs from what was last said.
 */
export const createStateLog = (server: string, first: HealthState['kind'], log: Log): StateLog => {
  let said = first
  let latest: HealthState | undefined
  let saidAt = Number.NEGATIVE_INFINITY
  let lines = 0 // in a row
  let quietMs = 0
  let timer: NodeJS.Timeout | undefined

  const say = (): void => {
    timer = undefined
    if (!latest || latest.kind === said) return
    const now = Date.now()
    lines = now - saidAt > 2 * LONGEST_MS ? 1 : lines + 1
    quietMs = lines < FREE ? 0 : Math.min(LONGEST_MS, SHORTEST_MS * 2 ** (lines - FREE))
    const fields = { server, from: said, to: latest.kind, reason: faultIn(latest)?.message }
    log[levelOf(said, latest.kind)](fields, 'the state of a server changed')
    said = latest.kind
    saidAt = now
  }

  return {
    changed: state => {
      latest = state
      const ms = saidAt + quietMs - Date.now()
      if (ms <= 0) return say()
      timer ??= setTimeout(say, ms).unref()
    },
    close: () => clearTimeout(timer),
  }
}

/** That a server is there at first is no news, nor that only a caller can tell. */
const levelOf = (from: HealthState['kind'], to: HealthState['kind']): 'debug' | 'info' | 'warn' => {
  if (to !== 'ready' && to !== 'untried') return 'warn'
  return from === 'connecting' || from === 'untried' ? 'debug' : 'info'
}
