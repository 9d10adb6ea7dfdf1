import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { WATCHDOG } from './watchdog.ts'

/** The mark of everything this gateway starts; each child adds a part of its own. */
const OURS = randomBytes(8).toString('hex')
let lastChild = 0

/** A mark no other child has, of this gateway or another. */
export const newMark = (): string => `${OURS}.${++lastChild}.`

const watched = new Set<number>()
let guardian: ChildProcess | undefined

/** Starts the one process that outlives us for a moment, and sees to it that nobody else does. */
const keepGuardian = (): ChildProcess => {
  if (guardian) return guardian
  const { PATH = '', SystemRoot = '' } = process.env
  const started = spawn(process.execPath, ['-e', WATCHDOG, '--', `${OURS}.`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: process.platform === 'win32' ? { PATH, SystemRoot } : { PATH },
    detached: process.platform !== 'win32', // an interrupt from the terminal is not for it
    windowsHide: true,
  })
  guardian = started
  started.on('error', () => {})
  started.stdin?.on('error', () => {})
  started.once('exit', () => {
    if (guardian === started) guardian = undefined
    if (watched.size > 0) setTimeout(renew, RENEW_MS).unref()
  })
  started.unref()
  ;(started.stdin as Socket | null)?.unref()
  return started
}

const RENEW_MS = 250

const renew = (): void => {
  for (const pid of watched) tell(`+${pid}\n`)
}

const tell = (line: string): void => void keepGuardian().stdin?.write(line)

/** Makes sure that somebody is there before the first child is. */
export const wakeGuardian = (): void => void keepGuardian()

/** Names a process whose group must not outlive us, until the returned function is called. */
export const guard = (pid: number): (() => void) => {
  watched.add(pid)
  tell(`+${pid}\n`)
  return () => {
    if (watched.delete(pid)) tell(`-${pid}\n`)
  }
}
