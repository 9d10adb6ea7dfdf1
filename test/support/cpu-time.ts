/** The CPU time this process has used, in milliseconds: unlike wall time, it does not grow with what else runs. */
export const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
