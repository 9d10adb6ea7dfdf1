/** A line of the log, as the gateway sends it. */
export interface LogEntry {
  readonly id: number // larger for later ones
  readonly time: number // Unix time in milliseconds
  readonly level: string
  readonly text: string
}

const MOST = 300

let lastId = 0

/** A line of a server from the outside; undefined if it is none, or of another server. */
export const readLogLine = (line: unknown, server: string): LogEntry | undefined => {
  if (typeof line !== 'object' || line === null) return undefined
  const { time, level, text, server: from } = line as Readonly<Record<string, unknown>>
  if (from !== server || typeof time !== 'number' || typeof level !== 'string' || typeof text !== 'string')
    return undefined
  return { id: ++lastId, time, level, text }
}

/** The lines in a text of one JSON object per line. */
export const parseLog = (text: string, server: string): readonly LogEntry[] =>
  text
    .split('\n')
    .slice(-MOST - 1)
    .flatMap(line => {
      try {
        return readLogLine(JSON.parse(line || 'null'), server) ?? []
      } catch {
        return []
      }
    })

/** The latest lines: the oldest are dropped. */
export const appendLog = (lines: readonly LogEntry[], more: readonly LogEntry[]): readonly LogEntry[] =>
  more.length === 0 ? lines : [...lines, ...more].slice(-MOST)
