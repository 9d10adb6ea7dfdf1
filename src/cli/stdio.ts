import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises' // not std/time: this timer keeps the process alive
import { claimStart, type Daemon, findDaemon } from '../config/daemon-file.ts'
import { ensureDataDirectory } from '../config/data-dir.ts'
import { findUserConfig } from '../config/find-config.ts'
import { createLog, logUnhandledErrors } from '../telemetry/log.ts'
import type { Run } from './command.ts'
import { DATA_FLAG, dataDirectoryOf, type Flags, flagHelp, print, printError, readFlags, textOf } from './usage.ts'

const FLAGS: Flags = {
  workspace: { value: 'NAME', help: 'the workspace to serve (default: default)' },
  config: {
    value: 'FILE',
    help: 'configuration of the daemon, if it must be started (default: the one of the user, if there is one)',
  },
  ...DATA_FLAG,
}

const HELP = `Usage: dragoman stdio [flags]

Serves a workspace of the running daemon over stdin and stdout, for clients that only support stdio. Starts a daemon if
none runs; that daemon exits five minutes after its last client. Logs go to stderr.

${flagHelp(FLAGS)}
`

const START_TIMEOUT_MS = 20_000
const POLL_MS = 100

/** Runs until stdin ends. */
export const run: Run = async (args, { servePipe, version }) => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  const data = dataDirectoryOf(flags)
  await ensureDataDirectory(data)
  const log = await createLog({ level: 'warn', pretty: process.stderr.isTTY })
  const named = textOf(flags, 'config')
  const config = named === undefined ? await findUserConfig({ env: process.env }) : resolve(named)
  const findAgain = async (mayStart: boolean) =>
    (await findDaemon(data)) ?? (mayStart ? await startDaemon(data, config) : undefined)
  const daemon = await findAgain(true)
  if (!daemon) return printError(`the daemon did not start; see ${join(data, 'daemon.log')}`)
  if (named !== undefined) warnOfOther(daemon, resolve(named))
  const workspace = textOf(flags, 'workspace') ?? 'default'
  logUnhandledErrors(log)
  await servePipe({ daemon, findAgain, workspace, input: process.stdin, output: process.stdout, log, version })
  return 0
}

/** The daemon may have been started with another configuration. */
const warnOfOther = ({ config, pid, origin }: Daemon, wanted: string): void => {
  if (config === wanted) return
  const other = config === undefined ? 'without a configuration file' : `with the configuration ${config}`
  process.stderr.write(
    `dragoman: the daemon at ${origin} (process ${pid}) runs ${other}, not with ${wanted}; its servers are used. ` +
      'Give --data DIR for a daemon of its own, or stop the other one: dragoman stop\n',
  )
}

/** Starts a daemon that outlives this process, or waits for the one another process is starting. */
const startDaemon = async (data: string, config: string | undefined): Promise<Daemon | undefined> => {
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    const release = await claimStart(data)
    try {
      const running = await findDaemon(data)
      if (running) return running
      if (release) return await launch(data, config, deadline)
    } finally {
      await release?.()
    }
    await sleep(POLL_MS)
  }
  return undefined
}

const launch = async (data: string, config: string | undefined, deadline: number): Promise<Daemon | undefined> => {
  process.stderr.write('dragoman: starting the daemon\n')
  const log = openSync(join(data, 'daemon.log'), 'a', 0o600)
  const flags = [
    '--port',
    '0',
    '--data',
    data,
    '--until-idle',
    ...(config === undefined ? ['--no-config'] : ['--config', config]),
  ]
  const child = spawn(process.execPath, [process.argv[1] ?? '', 'serve', ...flags], {
    detached: true,
    stdio: ['ignore', log, log],
    env: withoutChildMark(process.env),
  })
  let hasEnded = false
  const markEnded = (): void => {
    hasEnded = true
  }
  child.on('exit', markEnded).on('error', markEnded)
  child.unref()
  while (Date.now() < deadline && !hasEnded) {
    const daemon = await findDaemon(data)
    if (daemon) return daemon
    await sleep(POLL_MS)
  }
  return undefined
}

/** A gateway ends every process that carries the mark of its children; the daemon must outlive that. */
const withoutChildMark = ({ DRAGOMAN_CHILD: _, ...env }: NodeJS.ProcessEnv): NodeJS.ProcessEnv => env
