import { closeSync, openSync } from 'node:fs'
import { announceDaemon, type Daemon, findDaemon, withdrawDaemon } from '../config/daemon-file.ts'
import { dataDirectory, ensureDataDirectory } from '../config/data-dir.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { watchFile } from '../config/watch.ts'
import { createLog, LOG_LEVELS, type Log, type LogLevel } from '../telemetry/log.ts'
import { COLOURED, doorLines, homeLine, PLAIN, serverLines, waitingLine } from './banner.ts'
import type { Context, Run } from './command.ts'
import { keepServing } from './last-resort.ts'
import { createReloader } from './reload.ts'
import { type Flags, type FlagValues, flagHelp, readFlags, textOf, UsageError } from './usage.ts'

type Load = (file?: string) => Promise<Snapshot>

const FLAGS: Flags = {
  config: { value: 'FILE', help: 'configuration file; without one a memory and the files of this folder are served' },
  demo: { help: 'where no file names servers, serve the built-in demo instead: one specimen of every feature' },
  host: { value: 'HOST', help: 'address to listen on (127.0.0.1)' },
  port: { value: 'PORT', help: 'port to listen on (8765); 0 takes any free one' },
  data: { value: 'DIR', help: 'where state rests (DRAGOMAN_DATA, or the place of the platform)' },
  insecure: { help: 'let everybody in without a token; needed to listen beyond loopback without any' },
  'no-watch': { help: 'do not read the configuration again when its file changes; SIGHUP still does' },
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
  const own = textOf(flags, 'config')
  const listen = { host: hostOf(flags), port: portOf(flags) }
  const load = (file = own) => loadConfig({ file, env: process.env, flags: listen, demo: flags.demo === true })
  const snapshot = await load()
  const log = await createLog({ level, pretty: process.stderr.isTTY })
  for (const warning of snapshot.warnings) log.warn({}, warning)
  const data = dataDirectory({ flag: textOf(flags, 'data'), env: process.env })
  await ensureDataDirectory(data)
  const options = { log, data, insecure: flags.insecure === true, loadNext: own === undefined ? undefined : load }
  return serve(
    snapshot,
    options,
    {
      file: own,
      isAtHome: own === undefined && !flags.demo,
      watch: !flags['no-watch'],
      untilIdle: !!flags['until-idle'],
    },
    context,
  )
}

const serve = async (
  snapshot: Snapshot,
  options: { log: Log; data: string; insecure: boolean; loadNext: Load | undefined },
  {
    file,
    isAtHome,
    watch,
    untilIdle,
  }: { file: string | undefined; isAtHome: boolean; watch: boolean; untilIdle: boolean },
  { startGateway, version }: Context,
): Promise<number> => {
  const { log, loadNext: load } = options
  const hangup = listenForHangups()
  const signal = Promise.race([listenForSignals(), hangup.lost])
  const gateway = await startGateway(snapshot, { ...options, version }).catch(error => explain(error, options.data))
  keepServing(log)
  const before = await announce(gateway, options).catch(async error => {
    await gateway.close()
    throw error
  })
  const reload = load && createReloader({ load, swap: gateway.swap, first: snapshot, log })
  hangup.each(() => (reload ? void reload(true) : log.info({}, 'there is no configuration file to read again')))
  const unwatch = reload && file !== undefined && watch ? watchFile(file, () => void reload()) : undefined
  const stop = untilIdle ? Promise.race([signal, waitForIdle(() => gateway.idleMs())]) : signal
  const paint = process.stdout.isTTY && !process.env.NO_COLOR ? COLOURED : PLAIN
  print(doorLines(version, gateway.origin, gateway.status(), paint))
  if (isAtHome) print(homeLine(options.data, process.cwd()))
  const patience = setTimeout(() => print(waitingLine(gateway.status())), PATIENCE_MS)
  const isReady = await Promise.race([gateway.ready.then(() => true), stop.then(() => false)])
  clearTimeout(patience)
  if (isReady) print(serverLines(gateway.status(), paint))
  log.info({ signal: await stop }, 'closing')
  unwatch?.()
  await withdrawDaemon(options.data, process.pid, before)
  await gateway.close()
  return 0
}

/** Announces this daemon to programs of the same user. Returns the daemon it replaces, if one runs. */
const announce = async (
  { origin, localSecret }: { readonly origin: string; readonly localSecret: string },
  { data, log }: { readonly data: string; readonly log: Log },
): Promise<Daemon | undefined> => {
  const other = await findDaemon(data)
  if (other)
    log.warn(
      { pid: other.pid, origin: other.origin },
      `another dragoman serves ${data}, at ${other.origin}: both use the same tokens and memories, and until this one ` +
        'ends, "dragoman stdio" and "dragoman plan" find this one. Give one of them another --data',
    )
  await announceDaemon(data, { origin, pid: process.pid, token: localSecret })
  return other
}

/** Where the port is taken by another dragoman, says so. */
const explain = async (error: NodeJS.ErrnoException & { port?: number }, data: string): Promise<never> => {
  const daemon = error.code === 'EADDRINUSE' ? await findDaemon(data) : undefined
  if (!daemon || Number(new URL(daemon.origin).port) !== error.port) throw error
  throw new ConfigError(
    `port ${error.port} is in use by the dragoman with process id ${daemon.pid}, which serves the same data directory; ` +
      'stop it, or choose another port with --port and another directory with --data',
  )
}

const PATIENCE_MS = 1000
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

/** SIGHUP asks for the configuration to be read again, unless the terminal we run in has gone: then it is the end. */
const listenForHangups = () => {
  let handler: (() => void) | undefined
  const lost = new Promise<string>(resolve => {
    const hadTerminal = process.stdout.isTTY
    process.on('SIGHUP', () => (hadTerminal && !hasTerminal() ? resolve('SIGHUP') : handler?.()))
  })
  const each = (listener: () => void): void => {
    handler = listener
  }
  return { lost, each }
}

const hasTerminal = (): boolean => {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

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
