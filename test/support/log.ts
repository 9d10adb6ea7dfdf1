import type { Log } from '../../src/telemetry/log.ts'

interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

/** A log that can be read, and waited for; `isDebug` where it shall have what is logged at that level only on request. */
export const createTestLog = ({ isDebug = false } = {}) => {
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const at =
    (level: Line['level'], base: object) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields: { ...base, ...fields }, message })
      for (const look of [...waiting]) look()
    }
  const child = (base: object): Log => ({
    debug: at('debug', base),
    info: at('info', base),
    warn: at('warn', base),
    error: at('error', base),
    child: fields => child({ ...base, ...fields }),
    isLevelEnabled: () => isDebug,
  })
  /** The first line from number `from` on that fits, now or later. */
  const saw = (fits: (line: Line) => boolean, from = 0): Promise<Line> =>
    new Promise(resolve => {
      const look = (): void => {
        const line = lines.slice(from).find(fits)
        if (!line) return
        waiting.delete(look)
        resolve(line)
      }
      waiting.add(look)
      look()
    })
  return { log: child({}), lines, saw }
}

export type TestLog = ReturnType<typeof createTestLog>
