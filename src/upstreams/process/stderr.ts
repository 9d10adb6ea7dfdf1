import { StringDecoder } from 'node:string_decoder'
import type { Log } from '../../telemetry/log.ts'

const TAIL_CHARACTERS_READ = 4096
const TAIL_LINES = 5
const TAIL_CHARACTERS = 600
const LONGEST_LINE = 16 * 1024 // characters; the rest of a longer line is dropped
const LOGGED_CHARACTERS = 2000 // of a line

/** A ring buffer of the last bytes that a process wrote to stderr. */
export class StderrBuffer {
  readonly #size: number
  #total = 0
  #ring: Buffer | undefined

  constructor(size: number) {
    this.#size = size
  }

  push(chunk: Buffer): void {
    this.#ring ??= Buffer.allocUnsafeSlow(this.#size)
    const kept = chunk.length > this.#size ? chunk.subarray(-this.#size) : chunk
    const from = (this.#total + chunk.length - kept.length) % this.#size
    const fitting = kept.copy(this.#ring, from)
    kept.copy(this.#ring, 0, fitting)
    this.#total += chunk.length
  }

  text(): string {
    if (!this.#ring) return ''
    if (this.#total <= this.#size) return this.#ring.toString('utf8', 0, this.#total)
    const oldest = this.#total % this.#size
    return Buffer.concat([this.#ring.subarray(oldest), this.#ring.subarray(0, oldest)]).toString('utf8')
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours and cursor movements
const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f]/g

const withoutEscapes = (text: string): string => text.replace(ESCAPES, '')

/** Replaces secrets by stars; the longest first, because one may begin with another. */
export const maskSecrets = (text: string, secrets: readonly string[]): string =>
  [...secrets].sort((a, b) => b.length - a.length).reduce((shown, secret) => shown.replaceAll(secret, '***'), text)

/** The last few lines as one line, without colours and configured secrets. */
export const lastLines = (text: string, secrets: readonly string[]): string => {
  const lines = maskSecrets(withoutEscapes(text), secrets)
    .slice(-TAIL_CHARACTERS_READ) // after hiding: a secret that is cut in half would not be found
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  return lines.slice(-TAIL_LINES).join(' | ').slice(-TAIL_CHARACTERS)
}

/** Receives what one process writes to stderr. */
export type StderrListener = (chunk: Buffer) => void

/**
 * Logs each line that the processes of a server write to stderr, at level debug, and keeps it for `dragoman logs`. `hide`
 * removes secrets from a whole line. Undefined if neither is wanted, so that nothing is decoded.
 */
export const createStderrLog = (log: Log, hide: (text: string) => string): (() => StderrListener) | undefined => {
  const isLogged = log.isLevelEnabled?.('debug') === true
  if (!isLogged && !log.keepOutput) return undefined
  const write = (line: string): void => {
    const text = hide(withoutEscapes(line)).trimEnd().slice(0, LOGGED_CHARACTERS)
    if (text === '') return
    if (isLogged) log.debug({ text }, 'server wrote to stderr')
    log.keepOutput?.(text)
  }
  return () => splitLines(write)
}

const splitLines = (write: (line: string) => void): StderrListener => {
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
