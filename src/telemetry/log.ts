import type { DestinationStream } from 'pino'

/** The log of the gateway: fields first, then an event in the past tense. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: object): Log
  /** Whether lines of that level are written; absent means no. Checked before work that only the log needs. */
  isLevelEnabled?(level: 'debug'): boolean
  /** Keeps a line that a server wrote to stderr, whatever the level is; absent if no line is kept. */
  keepOutput?(text: string): void
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const STDERR = 2

// Loaded only if the log goes to a terminal.
const prettyStream = async (): Promise<DestinationStream> => {
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination: STDERR,
    sync: true,
    ignore: 'pid,hostname',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
  })
}

/** Creates a log on stderr: JSON lines, or coloured text for a terminal. */
export const createLog = async (options: { level: LogLevel; pretty: boolean }): Promise<Log> => {
  // Synchronous, so that the last lines before an exit are written.
  const { destination, pino } = await import('pino') // commands that write no log start sooner
  const stream = options.pretty ? await prettyStream() : destination({ dest: STDERR, sync: true })
  const log: Log = pino({ level: options.level, base: null, hooks: { streamWrite: hideSecrets } }, stream)
  return log
}

const nothing = (): void => {}

/** A log that writes nothing. */
export const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => SILENT }

const HIDDEN = '[hidden]'

// Members of logged objects that hold a credential.
const MEMBERS = /"((?:proxy-)?authorization|(?:set-)?cookie)":(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])/gi
// Tokens of the gateway, and credentials of headers inside a text.
const TEXTS = /(dr[gork]_|\b(?:bearer|basic)\s+)[\w.~+/-]{12,}=*/gi

/** Removes credentials from a line of the log: a safety net, because no code should log them. */
export const hideSecrets = (line: string): string =>
  line.replace(MEMBERS, `"$1":"${HIDDEN}"`).replace(TEXTS, `$1${HIDDEN}`)

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
