import { isAlive } from '../config/daemon-file.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon, waitUntil } from './daemon-client.ts'
import { DATA_FLAG, type Flags, flagHelp, print, printError, readFlags } from './usage.ts'

const FLAGS: Flags = { ...DATA_FLAG }

const HELP = `Usage: dragoman stop [flags]

Stops the running daemon: calls in flight may finish, then the processes of its servers end.

${flagHelp(FLAGS)}
`

const STOP_TIMEOUT_MS = 30_000

/** Stops the daemon and waits until its process has ended. */
export const run: Run = async args => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  const daemon = await daemonOf(flags)
  await requestDaemon(daemon, '/admin/stop', {})
  const hasEnded = await waitUntil(STOP_TIMEOUT_MS, () => !isAlive(daemon.pid))
  if (hasEnded) return print(`Stopped the daemon at ${daemon.origin} (process ${daemon.pid}).\n`)
  return printError(`the daemon (process ${daemon.pid}) is still closing; end it with: kill -9 ${daemon.pid}`)
}
