import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { claimStart, type Daemon, findDaemon } from '../config/daemon-file.ts'
import { dataDirectory, ensureDataDirectory } from '../config/data-dir.ts'
import { createLog } from '../telemetry/log.ts'
import type { Run } from './command.ts'
import { keepServing } from './last-resort.ts'
import { type Flags, flagHelp, readFlags, textOf } from './usage.ts'

const FLAGS: Flags = {
  workspace: { value: 'NAME', help: 'the workspace to serve (default)' },
  config: { value: 'FILE', help: 'configuration of the daemon, if one has to be started' },
  data: { value: 'DIR', help: 'where the daemon is looked for (DRAGOMAN_DATA, or the place of the platform)' },
}

const HELP = `Usage: dragoman stdio [flags]

Serves a workspace of the running daemon over stdin and stdout, for clients that can only start a process. Starts a
daemon if none runs; one started so ends five minutes after its last client. Logs go to stderr.

${flagHelp(FLAGS)}
`

const START_MS = 20_000
const LOOK_MS = 100

/** Runs until stdin ends. */
export const run: Run = async (args, { servePipe, version }) => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) {
    process.stdout.write(HELP)
    return 0
  }
  const data = dataDirectory({ flag: textOf(flags, 'data'), env: process.env })
  await ensureDataDirectory(data)
  const log = await createLog({ level: 'warn', pretty: process.stderr.isTTY })
  const findAgain = async () => (await findDaemon(data)) ?? (await startDaemon(data, textOf(flags, 'config')))
  const daemon = await findAgain()
  if (!daemon) {
    process.stderr.write(`dragoman: the daemon did not start; ${join(data, 'daemon.log')} says why\n`)
    return 1
  }
  const workspace = textOf(flags, 'workspace') ?? 'default'
  keepServing(log)
  await servePipe({ daemon, findAgain, workspace, input: process.stdin, output: process.stdout, log, version })
  return 0
}

/** Starts a daemon that outlives us, or waits for the one somebody else is starting. */
const startDaemon = async (data: string, config: string | undefined): Promise<Daemon | undefined> => {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    const release = await claimStart(data)
    try {
      const running = await findDaemon(data)
      if (running) return running
      if (release) return await launch(data, config, deadline)
    } finally {
      await release?.()
    }
    await sleep(LOOK_MS)
  }
  return undefined
}

const launch = async (data: string, config: string | undefined, deadline: number): Promise<Daemon | undefined> => {
  process.stderr.write('dragoman: starting the daemon\n')
  const log = openSync(join(data, 'daemon.log'), 'a', 0o600)
  const args = [
    'serve',
    '--port',
    '0',
    '--data',
    data,
    '--until-idle',
    ...(config === undefined ? [] : ['--config', config]),
  ]
  const child = spawn(process.execPath, [process.argv[1] ?? '', ...args], {
    detached: true,
    stdio: ['ignore', log, log],
    env: withoutMark(process.env),
  })
  let hasEnded = false
  child.on('exit', () => {
    hasEnded = true
  })
  child.on('error', () => {
    hasEnded = true
  })
  child.unref()
  while (Date.now() < deadline && !hasEnded) {
    const daemon = await findDaemon(data)
    if (daemon) return daemon
    await sleep(LOOK_MS)
  }
  return undefined
}

/** A gateway that started us would end the daemon with us, by the mark its children carry. */
const withoutMark = ({ DRAGOMAN_CHILD: _, ...env }: NodeJS.ProcessEnv): NodeJS.ProcessEnv => env
