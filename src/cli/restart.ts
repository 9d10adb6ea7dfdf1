import { findDaemon } from '../config/daemon-file.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon, waitUntil } from './daemon-client.ts'
import { DATA_FLAG, dataDirectoryOf, type Flags, flagHelp, print, printError, readFlags } from './usage.ts'

const FLAGS: Flags = { ...DATA_FLAG }

const HELP = `Usage: dragoman restart [flags]

Restarts the running daemon in its process, with the same flags, variables and terminal: for settings that a reload does not
apply. An invalid configuration changes nothing. After an update of the program, stop it and start it again.

${flagHelp(FLAGS)}
`

const RESTART_TIMEOUT_MS = 30_000

/** Restarts the daemon and waits until it serves again. */
export const run: Run = async args => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  const data = dataDirectoryOf(flags)
  const before = await daemonOf(flags)
  await requestDaemon(before, '/admin/restart', {})
  let { origin } = before
  const isBack = await waitUntil(RESTART_TIMEOUT_MS, async () => {
    const now = await findDaemon(data)
    if (now === undefined || now.token === before.token) return false
    origin = now.origin
    return true
  })
  if (isBack) return print(`Restarted the daemon at ${origin} (process ${before.pid}).\n`)
  return printError(`the daemon (process ${before.pid}) did not come back; see its log`)
}
