import { hideSecrets, type Log } from './log.ts'

/** One line of the log, as `dragoman logs` shows it. */
export interface LogLine {
  readonly time: number // Unix time in milliseconds
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'stderr' // stderr: a line that a server wrote
  readonly server?: string | undefined
  readonly text: string
}

const MAX_LINES = 5000
const MAX_CHARACTERS = 1024 * 1024
const DROPPED_AT_ONCE = 500
const LONGEST_FIELDS = 500

/** The last lines of the log, for programs that read them later or follow them. */
export class LogHistory {
  readonly #listeners = new Set<(line: LogLine) => void>()
  #lines: LogLine[] = []
  #characters = 0

  /** Oldest first; of one server, or all. */
  lines(server?: string): readonly LogLine[] {
    return server === undefined ? this.#lines : this.#lines.filter(line => line.server === server)
  }

  add(line: LogLine): void {
    const safe = { ...line, text: hideSecrets(line.text) }
    this.#lines.push(safe)
    this.#characters += safe.text.length
    if (this.#lines.length > MAX_LINES + DROPPED_AT_ONCE || this.#characters > MAX_CHARACTERS) this.#drop()
    for (const listener of this.#listeners) listener(safe)
  }

  /** Calls the listener for every later line, until the returned function is called. */
  follow(listener: (line: LogLine) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Drops many lines at once, so that adding one stays cheap. */
  #drop(): void {
    const byCount = Math.max(0, this.#lines.length - MAX_LINES)
    const keptCharacters = MAX_CHARACTERS / 2
    let [from, characters] = [byCount, 0]
    for (const { text } of this.#lines.slice(byCount)) characters += text.length
    if (characters > MAX_CHARACTERS)
      for (; characters > keptCharacters; from++) characters -= this.#lines[from]?.text.length ?? characters
    this.#lines = this.#lines.slice(from)
    this.#characters = characters
  }
}

/** A log that also keeps its lines in a history, and the lines that servers write to stderr whatever its level is. */
export const withHistory = (log: Log, history: LogHistory, fields: Readonly<Record<string, unknown>> = {}): Log => {
  const server = typeof fields.server === 'string' ? fields.server : undefined
  const write = (level: 'info' | 'warn' | 'error') => (more: object, message: string) => {
    history.add({ time: Date.now(), level, server: serverOf(more) ?? server, text: message + fieldsText(more) })
    log[level](more, message)
  }
  return {
    debug: (more, message) => log.debug(more, message), // only requests and the lines of servers, which are kept below
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: more => withHistory(log.child(more), history, { ...fields, ...more }),
    isLevelEnabled: level => log.isLevelEnabled?.(level) ?? false,
    keepOutput: text => history.add({ time: Date.now(), level: 'stderr', server, text }),
  }
}

const serverOf = (fields: object): string | undefined =>
  'server' in fields && typeof fields.server === 'string' ? fields.server : undefined

/** The fields of a line, without the server, which has a column of its own. */
const fieldsText = (fields: object): string => {
  const shown = Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined || key === 'server') return []
    return `${key}=${value instanceof Error ? value.message : typeof value === 'string' ? value : JSON.stringify(value)}`
  })
  return shown.length === 0 ? '' : `  ${shown.join(' ').slice(0, LONGEST_FIELDS)}`
}
