import type { Log } from '../telemetry/log.ts'

/**
 * Logs errors that no code handled and keeps the process alive: one bad message must not end the sessions of all
 * other clients. Install it once the gateway listens; until then such an error ends the process.
 */
export const keepServing = (log: Log): void => {
  const report = (error: unknown, origin: string): void => {
    try {
      log.error({ err: error, origin }, 'unhandled error; the gateway keeps serving')
    } catch {
      // stderr is closed: there is no place left to write to
    }
  }
  process.on('uncaughtException', report)
  process.on('unhandledRejection', reason => report(reason, 'unhandledRejection'))
}
