import { announceDaemon, withdrawDaemon } from '../config/daemon-file.ts'
import { dataDirectory, ensureDataDirectory } from '../config/data-dir.ts'
import { loadConfig } from '../config/load.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { createLog, LOG_LEVELS, type Log, type LogLevel } from '../telemetry/log.ts'
import { COLOURED, doorLines, PLAIN, serverLines } from './banner.ts'
import type { Context, Run } from './command.ts'
import { type Flags, type FlagValues, flagHelp, readFlags, textOf, UsageError } from './usage.ts'

const FLAGS: Flags = {
  config: { value: 'FILE', help: 'configuration file; without one the built-in demo server is served' },
  host: { value: 'HOST', help: 'address to listen on (127.0.0.1)' },
  port: { value: 'PORT', help: 'port to listen on (8765); 0 takes any free one' },
  data: { value: 'DIR', help: 'where state rests (DRAGOMAN_DATA, or the place of the platform)' },
  insecure: { help: 'let everybody in without a token; needed to listen beyond loopback without any' },
  'until-idle': { help: 'end when nobody has been there for five minutes' },
  'log-level': { value: 'LEVEL', help: `${LOG_LEVELS.join(', ')} (info); logs go to stderr` },
}

const HELP = `Usage: dragoman serve [flags]

Runs the gateway in the foreground until it is interrupted.

${flagHelp(FLAGS)}
`

/** Runs the gateway until SIGINT or SIGTERM. */
export const run: Run = async (args, context) => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  const level = levelOf(flags)
  const snapshot = await loadConfig({
    file: textOf(flags, 'config'),
    env: process.env,
    flags: { host: hostOf(flags), port: portOf(flags) },
  })
  const log = await createLog({ level, pretty: process.stderr.isTTY })
  for (const warning of snapshot.warnings) log.warn({}, warning)
  const data = dataDirectory({ flag: textOf(flags, 'data'), env: process.env })
  await ensureDataDirectory(data)
  return serve(snapshot, { log, data, insecure: flags.insecure === true }, flags['until-idle'] === true, context)
}

const serve = async (
  snapshot: Snapshot,
  options: { log: Log; data: string; insecure: boolean },
  untilIdle: boolean,
  { startGateway, version }: Context,
): Promise<number> => {
  const signal = listenForSignals()
  const gateway = await startGateway(snapshot, { ...options, version })
  await announceDaemon(options.data, { origin: gateway.origin, pid: process.pid, token: gateway.localSecret })
  const stop = untilIdle ? Promise.race([signal, waitForIdle(() => gateway.idleMs())]) : signal
  const paint = process.stdout.isTTY && !process.env.NO_COLOR ? COLOURED : PLAIN
  print(doorLines(version, gateway.origin, gateway.status(), paint))
  const isReady = await Promise.race([gateway.ready.then(() => true), stop.then(() => false)])
  if (isReady) print(serverLines(gateway.status(), paint))
  options.log.info({ signal: await stop }, 'closing')
  await withdrawDaemon(options.data, process.pid)
  await gateway.close()
  return 0
}

const IDLE_MS = 5 * 60_000
const LOOK_MS = 5000

/** Settles when nobody has been there for a while. */
const waitForIdle = (idleMs: () => number): Promise<string> =>
  new Promise(resolve => {
    const timer = setInterval(() => {
      if (idleMs() < IDLE_MS) return
      clearInterval(timer)
      resolve('idle')
    }, LOOK_MS)
    timer.unref()
  })

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const IMPATIENT = 130

/** Settles with the first signal; the second ends the process at once. */
const listenForSignals = (): Promise<string> =>
  new Promise(resolve => {
    let isStopping = false
    const onSignal = (signal: string): void => {
      if (isStopping) process.exit(IMPATIENT)
      isStopping = true
      resolve(signal)
    }
    for (const signal of SIGNALS) process.on(signal, onSignal)
  })

const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}

const levelOf = (flags: FlagValues): LogLevel => {
  const text = textOf(flags, 'log-level') ?? 'info'
  const level = LOG_LEVELS.find(level => level === text)
  if (level) return level
  throw new UsageError(`--log-level: expected one of ${LOG_LEVELS.join(', ')}`)
}

const hostOf = (flags: FlagValues): string | undefined => {
  const text = textOf(flags, 'host')
  if (text === '') throw new UsageError('--host: expected a host name or address') // it would mean every interface
  return text
}

const portOf = (flags: FlagValues): number | undefined => {
  const text = textOf(flags, 'port')
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text)
  throw new UsageError('--port: expected a whole number from 0 to 65535')
}
