import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'

const GROUPS = '/sys/fs/cgroup/cpu' // version 1, which also root of a container often has
const PERIOD_US = 10_000

/** Lets a process use no more than that share of one core; false if this system does not let us. */
export const limitCpu = (pid: number, share: number): boolean => {
  const group = `${GROUPS}/dragoman-bench-${pid}`
  try {
    mkdirSync(group)
    process.once('exit', () => removeGroup(group))
    writeFileSync(`${group}/cpu.cfs_period_us`, String(PERIOD_US))
    writeFileSync(`${group}/cpu.cfs_quota_us`, String(Math.round(PERIOD_US * share)))
    writeFileSync(`${group}/cgroup.procs`, String(pid))
    return true
  } catch {
    return false
  }
}

/** A group can be removed once its process has ended; one that has not keeps an empty folder in a virtual file system. */
const removeGroup = (group: string): void => {
  try {
    rmdirSync(group)
  } catch {}
}
