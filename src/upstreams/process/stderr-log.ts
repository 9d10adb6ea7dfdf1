import { StringDecoder } from 'node:string_decoder'
import type { Log } from '../../telemetry/log.ts'
import { withoutEscapes } from './stderr.ts'

const LONGEST_LINE = 16 * 1024 // characters; the rest of a longer line is dropped
const SHOWN = 2000 // characters of a line in the log

/** Takes what one process writes to stderr. */
export type StderrTap = (chunk: Buffer) => void

/**
 * Logs each line that processes of a server write to stderr, at level debug. `show` takes secrets out, and sees whole
 * lines: half a secret would not be recognised. Undefined where the level is off, so that nothing is decoded.
 */
export const createStderrLog = (log: Log, show: (text: string) => string): (() => StderrTap) | undefined => {
  if (!log.isLevelEnabled?.('debug')) return undefined
  const write = (line: string): void => {
    const text = show(withoutEscapes(line)).trimEnd().slice(0, SHOWN)
    if (text !== '') log.debug({ text }, 'server wrote to stderr')
  }
  return () => createTap(write)
}

const createTap = (write: (line: string) => void): StderrTap => {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let isDropping = false
  return chunk => {
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!isDropping) write(line)
      isDropping = false
    }
    if (rest.length <= LONGEST_LINE) return
    if (!isDropping) write(rest)
    isDropping = true
    rest = ''
  }
}
