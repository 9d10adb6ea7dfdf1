import { readdirSync, readFileSync } from 'node:fs'

/** CPU microseconds, user and system, that all threads of a process have used. Linux only: /proc knows nanoseconds. */
export const cpuMicros = (pid: number): number => {
  let nanos = 0
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    nanos += Number.parseInt(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1'), 10)
  }
  return nanos / 1000
}

/** Resident memory of a process in MiB. */
export const rssMiB = (pid: number): number => {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(kib) / 1024
}
