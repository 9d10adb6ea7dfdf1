import type { Readable, Writable } from 'node:stream'

/** The streams of a command, which tests replace. */
export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean }
  readonly output: Writable & { readonly isTTY?: boolean; readonly columns?: number | undefined }
  readonly error: Writable & { readonly isTTY?: boolean; readonly columns?: number | undefined }
  readonly env: NodeJS.ProcessEnv
  /** Calls the listener on Ctrl-C until the returned function is called. */
  onInterrupt(listener: () => void): () => void
}

export const processTerminal = (): Terminal => ({
  input: process.stdin,
  output: process.stdout,
  error: process.stderr,
  env: process.env,
  onInterrupt: listener => {
    process.on('SIGINT', listener).on('SIGTERM', listener)
    return () => process.off('SIGINT', listener).off('SIGTERM', listener)
  },
})

/** Whether questions can be asked: what the user types is read, and what is asked is seen. */
export const isInteractive = ({ input, error }: Terminal): boolean => input.isTTY === true && error.isTTY === true

type Paint = (text: string) => string

/** Colours for a stream; none if it is no terminal, or NO_COLOR is set. */
export interface Style {
  readonly dim: Paint
  readonly bold: Paint
  readonly red: Paint
}

export const styleOf = (stream: Terminal['output'], env: NodeJS.ProcessEnv): Style => {
  const isPlain = stream.isTTY !== true || (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb'
  const paint =
    (open: number, close: number): Paint =>
    text =>
      isPlain || text === '' ? text : `\u001b[${open}m${text}\u001b[${close}m`
  return { dim: paint(2, 22), bold: paint(1, 22), red: paint(31, 39) }
}

/** Text of a server for a terminal: without characters that could steer it. Line breaks and tabs stay. */
export const safeText = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, sign => (sign === '\n' || sign === '\t' ? sign : ''))

/** The same as one line. */
export const safeLine = (text: string): string => safeText(text).replaceAll(/\s+/g, ' ').trim()

/** Text for the output: as it is into a pipe or a file, without control characters on a terminal. */
export const shownText = (text: string, stream: Terminal['output']): string =>
  stream.isTTY === true ? safeText(text) : text

/** Cuts a line to the width of the terminal; a pipe gets it whole. */
export const fitLine = (line: string, { isTTY, columns }: Terminal['output']): string =>
  isTTY && columns !== undefined && columns > 1 && line.length > columns ? `${line.slice(0, columns - 1)}…` : line
