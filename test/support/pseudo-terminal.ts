import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const RUNNER = fileURLToPath(new URL('./pseudo_terminal.py', import.meta.url))
const WAIT_MS = 15_000

/** Why no pseudo-terminal can be used here; undefined if one can. */
export const pseudoTerminalProblem = (): string | undefined => {
  const { status } = spawnSync('python3', ['-c', 'import pty, fcntl, termios, os; os.waitstatus_to_exitcode'])
  return status === 0 ? undefined : 'needs python3 (3.9 or later) with its module pty'
}

/** A program in a pseudo-terminal. */
export interface PseudoTerminal {
  /** Resolves once the screen holds the text. */
  shows(text: string): Promise<void>
  type(text: string): void
  screen(): string
  /** The bytes that the program wrote. */
  raw(): string
  readonly ended: Promise<number | null>
}

export const startInTerminal = (
  command: readonly string[],
  { columns = 80, env = {} }: { columns?: number; env?: Record<string, string> } = {},
): PseudoTerminal => {
  const child = spawn('python3', [RUNNER, String(columns), '40', ...command], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, TERM: 'xterm-256color', ...env },
  })
  let raw = ''
  const waiting = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text
    for (const look of [...waiting]) look()
  })
  const shows = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        child.kill()
        reject(new Error(`the terminal does not show ${JSON.stringify(text)}:\n${screenOf(raw)}`))
      }, WAIT_MS)
      const look = (): void => {
        if (!screenOf(raw).includes(text)) return
        waiting.delete(look)
        clearTimeout(timer)
        resolve()
      }
      waiting.add(look)
      look()
    })
  return {
    shows,
    type: text => void child.stdin.write(text),
    screen: () => screenOf(raw),
    raw: () => raw,
    ended: once(child, 'close').then(([code]) => code as number | null),
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal reads
const TOKENS = /\u001b\[([0-9;?]*)([A-Za-z])|\u001b[_\]][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\s\S]/g

/** The lines that a terminal shows after these bytes: line feeds, carriage returns, erasing and moving within a line. */
export const screenOf = (raw: string): string => {
  const lines: string[][] = [[]]
  let column = 0
  for (const [text, value = '', command] of raw.matchAll(TOKENS)) {
    const line = lines.at(-1) as string[]
    if (text === '\n') lines.push([])
    else if (text === '\r') column = 0
    else if (text === '\b') column = Math.max(0, column - 1)
    else if (command === 'K' || command === 'J') line.length = Math.min(line.length, column)
    else if (command === 'G') column = Number(value || 1) - 1
    else if (command === 'D') column = Math.max(0, column - Number(value || 1))
    else if (command === 'C') column += Number(value || 1)
    else if (!text.startsWith('\u001b') && text !== '\u0007') {
      while (line.length < column) line.push(' ')
      line[column++] = text
    }
  }
  return lines.map(line => line.join('').trimEnd()).join('\n')
}
