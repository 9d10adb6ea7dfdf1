import { spawn } from 'node:child_process'

const isWindows = process.platform === 'win32'

/** Sends a signal to a process and its whole group; false if there is nobody left. Windows knows only the end. */
export const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  if (isWindows) return signal === 0 ? send(pid, 0) : endTree(pid)
  return send(-pid, signal)
}

/** Sends a signal to one process; false if it is gone. */
export const send = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // it lives, and is not ours to end
  }
}

const endTree = (pid: number): boolean => {
  const killer = spawn('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true })
  killer.on('error', () => {})
  return true
}
