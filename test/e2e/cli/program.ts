import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { within } from '../../../src/std/time.ts'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const WAIT_MS = 30_000 // a second on a quiet machine
const END_MS = 5000 // for all that a killed program has started to end, as far as it shares its output

/** The built program as a child process. */
export interface Program {
  readonly pid: number
  stdout(): string
  stderr(): string
  /** The first match in what it prints, now or later; fails when it ends without. */
  saw(pattern: RegExp, where?: 'stdout' | 'stderr'): Promise<RegExpExecArray>
  signal(name: NodeJS.Signals): void
  /** The exit code once it has ended. */
  readonly ended: Promise<number | null>
}

const running = new Set<() => Promise<unknown>>()

/** Starts `dragoman` with these arguments and a data directory of its own; `endPrograms` ends what is left. */
export const startProgram = (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd = process.cwd(),
): Program => {
  const data = mkdtempSync(join(tmpdir(), 'dragoman-data-'))
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd,
    env: { ...process.env, NO_COLOR: '1', DRAGOMAN_DATA: data, XDG_CONFIG_HOME: data, ...env },
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const clear = (): void => rmSync(data, { recursive: true, force: true })
  const end = (): Promise<unknown> => {
    child.kill('SIGKILL')
    return within(END_MS, ended, clear)
  }
  running.add(end)
  const ended = once(child, 'close').then(([code]) => {
    running.delete(end)
    clear()
    return code as number | null
  })

  const saw: Program['saw'] = (pattern, where = 'stdout') =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(output[where])
        if (found) settle(() => resolve(found))
      }
      const fail = (why: string) => (): void =>
        settle(() => reject(new Error(`${why} before ${pattern}:\n${output.stdout}${output.stderr}`)))
      const giveUp = fail('timed out')
      const onEnd = fail('it ended')
      const timer = setTimeout(giveUp, WAIT_MS)
      const settle = (finish: () => void): void => {
        clearTimeout(timer)
        child[where].off('data', look)
        child.off('close', onEnd)
        finish()
      }
      child[where].on('data', look)
      child.once('close', onEnd)
      look()
    })

  return {
    pid: child.pid ?? 0,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    saw,
    signal: name => void child.kill(name),
    ended,
  }
}

/** Starts `dragoman serve` on any free port and waits until it listens. */
export const startServe = async (
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<Program & { readonly origin: string }> => {
  const program = startProgram(['serve', '--port', '0', ...args], env, cwd)
  const [, origin = ''] = await program.saw(/listening on (http:\S+)/)
  return { ...program, origin }
}

/** Runs to the end. */
export const runProgram = async (
  args: readonly string[],
  cwd?: string,
): Promise<{ code: number | null; stdout: string; stderr: string }> => {
  const program = startProgram(args, {}, cwd)
  const code = await program.ended
  return { code, stdout: program.stdout(), stderr: program.stderr() }
}

/** Ends every program a failed test has left behind, and waits for its workers, which may still write to their folder. */
export const endPrograms = async (): Promise<void> => {
  await Promise.all([...running].map(end => end()))
}
