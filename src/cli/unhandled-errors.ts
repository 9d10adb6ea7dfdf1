import type { Log } from '../telemetry/log.ts'

/**
 * Logs errors that no code handled and keeps the process alive: one bad message must not end the sessions of all
 * other clients. Called once the gateway listens; before that, such an error ends the process.
 */
export const logUnhandledErrors = (log: Log): void => {
  const report = (error: unknown, origin: string): void => {
    try {
      log.error({ err: error, origin }, 'unhandled error; the gateway keeps serving')
    } catch {
      // stderr is closed: the error cannot be logged
    }
  }
  process.on('uncaughtException', report)
  process.on('unhandledRejection', reason => report(reason, 'unhandledRejection'))
}
