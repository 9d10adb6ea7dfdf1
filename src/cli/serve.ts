import { closeSync, openSync } from 'node:fs'
import { announceDaemon, type Daemon, findDaemon, withdrawDaemon } from '../config/daemon-file.ts'
import { ensureDataDirectory } from '../config/data-dir.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { watchFile } from '../config/watch.ts'
import { createLog, LOG_LEVELS, type LogLevel, logUnhandledErrors } from '../telemetry/log.ts'
import { COLOURED, defaultServersLine, listeningLines, networkLine, PLAIN, serverLines, waitingLine } from './banner.ts'
import type { CommandContext, LoadConfig, Run, ServedGateway, ServeOptions } from './command.ts'
import { createReloader } from './reload.ts'
import {
  configFileOf,
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  flagHelp,
  print,
  readFlags,
  textOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  config: {
    value: 'FILE',
    help: 'configuration file (default: the first of dragoman.json, .mcp.json and .vscode/mcp.json in the current directory, or the one of the user)',
  },
  'no-config': { help: 'search for no configuration file' },
  demo: { help: 'serve the built-in demo, unless --config names servers: an example of every feature' },
  host: { value: 'HOST', help: 'address to listen on (default: 127.0.0.1)' },
  port: { value: 'PORT', help: 'port to listen on (default: 8765); 0: any free one' },
  ...DATA_FLAG,
  insecure: { help: 'admit callers without a token, also beyond loopback' },
  'no-watch': { help: 'do not reload the configuration when its file changes; SIGHUP still does' },
  'until-idle': { help: 'exit after five minutes without a client' },
  'log-level': { value: 'LEVEL', help: `${LOG_LEVELS.join(', ')} (default: info); logs go to stderr` },
}

const HELP = `Usage: dragoman serve [flags]

Runs the gateway in the foreground until it is interrupted. Without a configuration file it serves a memory and the files
of the current directory.

${flagHelp(FLAGS)}
`

/** Runs the gateway until SIGINT or SIGTERM. */
export const run: Run = async (args, context) => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  const level = levelOf(flags)
  const searches = flags.demo !== true && flags['no-config'] !== true
  const file = searches ? await configFileOf(flags) : textOf(flags, 'config')
  const listen = { host: hostOf(flags), port: portOf(flags) }
  const load: LoadConfig = (named = file) =>
    loadConfig({ file: named, env: process.env, flags: listen, demo: flags.demo === true })
  const snapshot = await load()
  const log = await createLog({ level, pretty: process.stderr.isTTY })
  for (const warning of snapshot.warnings) log.warn({}, warning)
  const data = dataDirectoryOf(flags)
  await ensureDataDirectory(data)
  const loadNext: LoadConfig = async next => {
    if (next === undefined && file === undefined) throw new ConfigError(NO_FILE)
    return load(next)
  }
  const options = { log, data, insecure: flags.insecure === true, loadNext, version: context.version }
  return serve(snapshot, options, flags, context)
}

const serve = async (
  snapshot: Snapshot,
  options: ServeOptions,
  flags: FlagValues,
  { startGateway, version }: CommandContext,
): Promise<number> => {
  const { log, data, loadNext } = options
  const { file } = snapshot
  const hangups = listenForHangups()
  const signal = Promise.race([listenForSignals(), hangups.terminalClosed])
  const gateway = await startGateway(snapshot, options).catch(error => explainStartError(error, data))
  logUnhandledErrors(log)
  const replaced = await announce(gateway, snapshot.file, options).catch(async error => {
    await gateway.close()
    throw error
  })
  const reload = createReloader({ load: () => loadNext(), swap: gateway.swap, first: snapshot, log })
  hangups.onEach(() => (file ? void reload(true) : log.info({}, 'there is no configuration file to reload')))
  const unwatch = file !== undefined && !flags['no-watch'] ? watchFile(file, () => void reload()) : undefined
  const stop = flags['until-idle'] ? Promise.race([signal, waitForIdle(() => gateway.idleMs())]) : signal
  const paint = process.stdout.isTTY && !process.env.NO_COLOR ? COLOURED : PLAIN
  print(listeningLines({ version, origin: gateway.origin, file }, gateway.status(), paint))
  print(networkLine(snapshot.listen.host, `${gateway.origin}/mcp`))
  if (file === undefined && !flags.demo) print(defaultServersLine(data, process.cwd()))
  const slowTimer = setTimeout(() => print(waitingLine(gateway.status())), SLOW_MS)
  const isReady = await Promise.race([gateway.ready.then(() => true), stop.then(() => false)])
  clearTimeout(slowTimer)
  if (isReady) print(serverLines(gateway.status(), paint))
  log.info({ signal: await stop }, 'closing')
  unwatch?.()
  await withdrawDaemon(data, process.pid, replaced)
  await gateway.close()
  return 0
}

const NO_FILE = 'the gateway runs without a configuration file; name one to compare with: dragoman plan FILE'

/** Announces this daemon to programs of the same user. Returns the daemon it replaces, if one runs. */
const announce = async (
  { origin, localSecret }: ServedGateway,
  config: string | undefined,
  { data, log }: ServeOptions,
): Promise<Daemon | undefined> => {
  const other = await findDaemon(data)
  if (other)
    log.warn(
      { pid: other.pid, origin: other.origin },
      `another dragoman serves ${data}, at ${other.origin}: both use the same tokens and memories, and until this one ` +
        'ends, "dragoman stdio" and "dragoman plan" find this one. Give one of them another --data',
    )
  await announceDaemon(data, { origin, pid: process.pid, token: localSecret, config })
  return other
}

/** Names the process if the port is in use by another dragoman on the same data directory. */
const explainStartError = async (error: NodeJS.ErrnoException & { port?: number }, data: string): Promise<never> => {
  const daemon = error.code === 'EADDRINUSE' ? await findDaemon(data) : undefined
  if (!daemon || Number(new URL(daemon.origin).port) !== error.port) throw error
  throw new ConfigError(
    `port ${error.port} is in use by the dragoman with process id ${daemon.pid}, which serves the same data directory; ` +
      'stop it, or choose another port with --port and another directory with --data',
  )
}

const SLOW_MS = 1000
const IDLE_MS = 5 * 60_000
const IDLE_CHECK_MS = 5000

/** Resolves when no client has used the gateway for IDLE_MS. */
const waitForIdle = (idleMs: () => number): Promise<string> =>
  new Promise(resolve => {
    const timer = setInterval(() => {
      if (idleMs() < IDLE_MS) return
      clearInterval(timer)
      resolve('idle')
    }, IDLE_CHECK_MS)
    timer.unref()
  })

const INTERRUPTED = 130 // exit code

/** Resolves with the first SIGINT or SIGTERM; the second ends the process at once. */
const listenForSignals = (): Promise<string> =>
  new Promise(resolve => {
    let isStopping = false
    const onSignal = (signal: string): void => {
      if (isStopping) process.exit(INTERRUPTED)
      isStopping = true
      resolve(signal)
    }
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, onSignal)
  })

/** SIGHUP requests a reload. If the terminal the gateway runs in was closed, it ends the gateway instead. */
const listenForHangups = () => {
  let listener: (() => void) | undefined
  const terminalClosed = new Promise<string>(resolve => {
    const hadTerminal = process.stdout.isTTY
    process.on('SIGHUP', () => (hadTerminal && !hasTerminal() ? resolve('SIGHUP') : listener?.()))
  })
  const onEach = (added: () => void): void => {
    listener = added
  }
  return { terminalClosed, onEach }
}

const hasTerminal = (): boolean => {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

const levelOf = (flags: FlagValues): LogLevel => {
  const text = textOf(flags, 'log-level') ?? 'info'
  const level = LOG_LEVELS.find(level => level === text)
  if (level) return level
  throw new UsageError(`--log-level: expected one of ${LOG_LEVELS.join(', ')}`)
}

const hostOf = (flags: FlagValues): string | undefined => {
  const text = textOf(flags, 'host')
  if (text === '') throw new UsageError('--host: expected a host name or address') // '' would listen on every interface
  return text
}

const portOf = (flags: FlagValues): number | undefined => {
  const text = textOf(flags, 'port')
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text)
  throw new UsageError('--port: expected a whole number from 0 to 65535')
}
