import { type DestinationStream, destination, pino } from 'pino'
import { hideSecrets } from './hide-secrets.ts'

/** What every part of the gateway logs through: fields first, then one sentence. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: object): Log
  /** Whether lines of that level are written; absent where they are not. Asked before work that only the log needs. */
  isLevelEnabled?(level: 'debug'): boolean
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const STDERR = 2

// Loaded only for a terminal: a daemon under a supervisor never pays for it.
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

/** A log on stderr: JSON lines, or coloured ones for a person. */
export const createLog = async (options: { level: LogLevel; pretty: boolean }): Promise<Log> => {
  // Synchronous, so that the last lines before an exit are written.
  const stream = options.pretty ? await prettyStream() : destination({ dest: STDERR, sync: true })
  const log: Log = pino({ level: options.level, base: null, hooks: { streamWrite: hideSecrets } }, stream)
  return log
}

const nothing = (): void => {}

/** A log that says nothing. */
export const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => SILENT }
