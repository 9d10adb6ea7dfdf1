import { closeSync, openSync } from 'node:fs'

const IDLE_MS = 5 * 60_000
const IDLE_CHECK_MS = 5000

/** `reached` resolves when no client has used the gateway for IDLE_MS. */
export const waitForIdle = (
  idleMs: () => number,
): { readonly reached: Promise<string>; readonly cancel: () => void } => {
  let timer: NodeJS.Timeout | undefined
  const cancel = (): void => clearInterval(timer)
  const reached = new Promise<string>(resolve => {
    timer = setInterval(() => {
      if (idleMs() < IDLE_MS) return
      cancel()
      resolve('idle')
    }, IDLE_CHECK_MS).unref()
  })
  return { reached, cancel }
}

const INTERRUPTED = 130 // exit code

/** Resolves with the first SIGINT or SIGTERM; the second ends the process at once. */
export const listenForSignals = (): Promise<string> =>
  new Promise(resolve => {
    let isStopping = false
    const onSignal = (signal: string): void => {
      if (isStopping) process.exit(INTERRUPTED)
      isStopping = true
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, onSignal)
  })

/** SIGHUP requests a reload. If the terminal the gateway runs in was closed, it ends the gateway instead. */
export const listenForHangups = () => {
  let listener: (() => void) | undefined
  const terminalClosed = new Promise<string>(resolve => {
    const hadTerminal = process.stdout.isTTY
    process.on('SIGHUP', () => (hadTerminal && !hasTerminal() ? resolve('SIGHUP') : listener?.()))
  })
  const onEach = (added: () => void): void => {
    listener = added
  }
  return { terminalClosed, onEach }
}

const hasTerminal = (): boolean => {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
