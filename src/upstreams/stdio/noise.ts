import type { Log } from '../../telemetry/log.ts'

/** Whether the log has said that a server writes text to stdout which is no message. */
export interface Noise {
  isLogged: boolean
}

const SHOWN = 200 // characters

/** Logs the first line that is no message, once for a server: its processes come and go, and all print the same. */
export const createIgnore =
  (log: Log, show: (text: string) => string, noise: Noise) =>
  (line: Buffer): void => {
    if (noise.isLogged) return
    noise.isLogged = true
    const text = show(line.toString('utf8')).slice(0, SHOWN)
    log.warn({ text }, 'the server writes text to stdout that is no message; such lines are ignored')
  }
