import { announceDaemon, claimStart, type Daemon, findDaemon, withdrawDaemon } from '../config/daemon-file.ts'
import { ensureDataDirectory } from '../config/data-dir.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import { MOST_WORKERS, type Snapshot } from '../config/snapshot.ts'
import { watchFile } from '../config/watch.ts'
import { createLog, LOG_LEVELS, type LogLevel, logUnhandledErrors } from '../telemetry/log.ts'
import { LogHistory, withHistory } from '../telemetry/log-history.ts'
import {
  COLOURED,
  consoleLine,
  defaultServersLine,
  listeningLines,
  networkLine,
  PLAIN,
  serverLines,
  waitingLine,
} from './banner.ts'
import type { CommandContext, LoadConfig, Run, ServedGateway, ServeOptions } from './command.ts'
import { configOfOne, readOneServer, splitAtDashes } from './one-server.ts'
import { createReloader, type ReloadOutcome } from './reloader.ts'
import { listenForHangups, listenForSignals, waitForIdle } from './serve-signals.ts'
import { openServeState } from './serve-state.ts'
import { isWorkerProcess, planWorkers, serveWorker } from './serve-workers.ts'
import {
  configFileOf,
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  flagHelp,
  print,
  readLine,
  textOf,
  textsOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  config: {
    value: 'FILE',
    help: 'configuration file (default: the first of dragoman.json, .mcp.json and .vscode/mcp.json in the current directory, or the one of the user)',
  },
  'no-config': { help: 'search for no configuration file' },
  demo: { help: 'serve the built-in demo, unless --config names servers: an example of every feature' },
  header: { value: 'HEADER', many: true, help: 'with a URL: a header like "Name: value" to send, may be repeated' },
  host: { value: 'HOST', help: 'address to listen on (default: 127.0.0.1)' },
  port: { value: 'PORT', help: 'port to listen on (default: 8765); 0: any free one' },
  ...DATA_FLAG,
  ephemeral: { help: 'keep sessions in memory only, and do not lock the data directory' },
  insecure: { help: 'admit callers without a token, also beyond loopback' },
  'no-watch': { help: 'do not reload the configuration when its file changes; SIGHUP still does' },
  workers: { value: 'N', help: 'use N processes of this machine (default: 1), about one for each core' },
  'until-idle': { help: 'exit after five minutes without a client' },
  'log-level': { value: 'LEVEL', help: `${LOG_LEVELS.join(', ')} (default: info); logs go to stderr` },
}

const HELP = `Usage: dragoman serve [flags]
       dragoman serve <url> [flags]
       dragoman serve [flags] -- <command> [arguments]

Runs the gateway in the foreground until it is interrupted: for the servers of a configuration file, or for one server
without any file. A command gets the variables of the shell. Without a file and a server, a memory and the files of the
current directory are served.

Examples:
  dragoman serve --config mcp.json
  dragoman serve https://example.com/mcp --header "Authorization: Bearer $TOKEN"
  dragoman serve -- npx -y @modelcontextprotocol/server-everything

${flagHelp(FLAGS)}
`

/** Runs the gateway until SIGINT or SIGTERM. */
export const run: Run = async (args, context) => {
  const { own, command } = splitAtDashes(args)
  const { flags, words } = readLine(own, FLAGS, 1)
  if (flags.help) return print(HELP)
  const level = levelOf(flags)
  const one = readOneServer(words[0], command, textsOf(flags, 'header'))
  if (one && textOf(flags, 'config') !== undefined)
    throw new UsageError('--config names servers; leave it out, or the URL or command')
  const searches = !one && flags.demo !== true && flags['no-config'] !== true
  let file = searches ? await configFileOf(flags) : textOf(flags, 'config')
  const listen = { host: hostOf(flags), port: portOf(flags) }
  const base = { env: process.env, flags: listen, demo: flags.demo === true }
  let heldPort: number | undefined // of a gateway that listens on any free port: a restart keeps it
  const load: LoadConfig = async (named = file, text) => {
    const source = named === undefined ? { value: one && configOfOne(one) } : { file: named, text }
    const loaded = await loadConfig({ ...base, ...source })
    if (loaded.listen.port !== 0 || heldPort === undefined) return loaded
    return { ...loaded, listen: { ...loaded.listen, port: heldPort } }
  }
  const loadNext: LoadConfig = async (next, text) => {
    if (next === undefined && file === undefined) throw new ConfigError(NO_FILE)
    return load(next, text)
  }
  const setFile = searches
    ? (next: string): void => {
        file = next
      }
    : undefined
  let snapshot = await load()
  const history = new LogHistory()
  const isWorker = isWorkerProcess()
  const log = withHistory(await createLog({ level, pretty: process.stderr.isTTY }), history)
  const data = dataDirectoryOf(flags)
  if (isWorker) {
    const setWorkerFile = (next: string | undefined): void => {
      file = next
    }
    return serveWorker({ load, setFile: setWorkerFile, log, history, data, insecure: flags.insecure === true }, context)
  }
  await ensureDataDirectory(data)
  const hangups = listenForHangups()
  const signal = Promise.race([listenForSignals(), hangups.terminalClosed])
  // Before the gateway listens, an error ends the process.
  let onAnnounced = (): void => logUnhandledErrors(log)
  for (;;) {
    for (const warning of snapshot.warnings) log.warn({}, warning)
    const workers = await planWorkers(workersOf(flags), snapshot, {
      isEphemeral: flags.ephemeral === true,
      history,
      log,
    })
    const options = {
      workers,
      log,
      history,
      data,
      insecure: flags.insecure === true,
      loadNext,
      version: context.version,
    }
    const loop = {
      load,
      flags,
      signal,
      onHangup: hangups.onEach,
      onAnnounced,
      setFile,
      hasOwnServer: one !== undefined,
      takesAnyPort: [0, heldPort].includes(snapshot.listen.port),
    }
    const ended = await serve(snapshot, { ...options, ...loop }, context)
    if (ended.why !== 'restart') return 0
    heldPort = ended.port
    onAnnounced = ended.release
    snapshot = await load()
  }
}

interface ServeLoop extends Omit<ServeOptions, 'control' | 'onReload' | 'state'> {
  readonly load: LoadConfig
  readonly flags: FlagValues
  readonly signal: Promise<string>
  readonly onHangup: (listener: () => void) => void
  readonly onAnnounced: () => void
  readonly setFile: ((file: string) => void) | undefined // undefined: it was told to use none
  readonly hasOwnServer: boolean // on the command line
  readonly takesAnyPort: boolean
}

interface EndedServe {
  readonly why: string
  readonly port: number | undefined // for the next gateway, if it may take any
  readonly release: () => void // lets other programs start a daemon again
}

/** Runs one gateway until a signal, `dragoman stop` or `dragoman restart`. */
const serve = async (
  snapshot: Snapshot,
  { load, flags, signal, onHangup, onAnnounced, setFile, hasOwnServer, takesAnyPort, ...given }: ServeLoop,
  { startGateway, version }: CommandContext,
): Promise<EndedServe> => {
  const { log, data, loadNext, workers } = given
  let { file } = snapshot
  const requests = listenForRequests()
  const control: NonNullable<ServeOptions['control']> = {
    reload: async () => {
      if (file === undefined) throw new ConfigError(NOTHING_TO_RELOAD)
      const outcome = await reload(true)
      if (outcome.kind === 'failed') throw outcome.error
      return outcome.difference
    },
    restart: async () => {
      await load()
      requests.end('restart')
    },
    stop: () => requests.end('stop'),
    ...(setFile && {
      useFile: async (next: string) => {
        setFile(next)
        const outcome = await reload(true)
        if (outcome.kind === 'failed') throw outcome.error
        follow(next)
        await announceDaemon(data, { ...about(), origin: gateway.origin, pid: process.pid, token: gateway.localSecret })
        return outcome.difference
      },
    }),
  }
  let onReload = (): void => {}
  const sharing = workers && { isMain: true, wake: workers.wake }
  const state = await openServeState(snapshot, { data, log, isEphemeral: flags.ephemeral === true, sharing })
  const options = { ...given, control, state, onReload: () => onReload() }
  const gateway = await startGateway(snapshot, options).catch(async error => {
    await state?.store.close()
    return explainStartError(error, data)
  })
  const { swap, rejectedReload: onRejected } = gateway
  const reloadHere = createReloader({ load: () => loadNext(), swap, first: snapshot, onRejected, log })
  const reload = async (byHand = false): Promise<ReloadOutcome> => {
    const outcome = await reloadHere(byHand)
    if (outcome.kind !== 'applied') return outcome
    gateway.announceReload()
    workers?.reload(file)
    return outcome
  }
  let unwatch: (() => void) | undefined
  const follow = (next: string): void => {
    file = next
    onReload = () => void reloadHere()
    if (!flags['no-watch']) unwatch ??= watchFile(next, () => void reload())
  }
  const about = () => ({ config: file, isLasting: !flags['until-idle'] && !takesAnyPort })
  const replaced = await announce(gateway, about(), options).catch(async error => {
    await gateway.close()
    await state?.store.close()
    throw error
  })
  onAnnounced()
  onHangup(() => (file ? void reload(true) : log.info({}, 'there is no configuration file to reload')))
  if (file !== undefined) follow(file)
  const idle = flags['until-idle'] ? waitForIdle(() => gateway.idleMs()) : undefined
  const stop = Promise.race([signal, requests.ended, ...(idle ? [idle.reached] : [])])
  // Another program may read the audit log from stdout.
  const out = snapshot.audit?.to === 'stdout' ? process.stderr : process.stdout
  const show = (text: string): boolean => out.write(text)
  const paint = process.stdout.isTTY && !process.env.NO_COLOR ? COLOURED : PLAIN
  show(listeningLines({ version, origin: gateway.origin, file }, gateway.status(), paint))
  show(consoleLine(gateway.origin, out.isTTY ? gateway.createConsoleLink().url : undefined, paint))
  show(networkLine(snapshot.listen.host, `${gateway.origin}/mcp`))
  if (file === undefined && !hasOwnServer && !flags.demo) show(defaultServersLine(data, process.cwd()))
  const slowTimer = setTimeout(() => show(waitingLine(gateway.status())), SLOW_MS)
  const isReady = await Promise.race([gateway.ready.then(() => true), stop.then(() => false)])
  clearTimeout(slowTimer)
  if (isReady) show(serverLines(gateway.status(), paint))
  const why = await stop
  log.info({ signal: why }, 'closing')
  unwatch?.()
  idle?.cancel()
  // While it restarts, other programs must not start a daemon in its place.
  const release = why === 'restart' ? await claimStart(data) : undefined
  await withdrawDaemon(data, process.pid, replaced)
  await gateway.close()
  await state?.store.close()
  const port = takesAnyPort ? Number(new URL(gateway.origin).port) : undefined
  return { why, port, release: () => void release?.() }
}

/** Requests of the owner over HTTP: `ended` resolves with the first. */
const listenForRequests = () => {
  let end: (why: string) => void = () => {}
  const ended = new Promise<string>(resolve => {
    end = resolve
  })
  return { ended, end: (why: string) => end(why) }
}

const NO_FILE = 'the gateway runs without a configuration file; name one to compare with: dragoman plan FILE'
const NOTHING_TO_RELOAD = 'the gateway runs without a configuration file: there is nothing to reload'
/** Announces this daemon to programs of the same user. Returns the daemon it replaces, if one runs. */
const announce = async (
  { origin, localSecret }: ServedGateway,
  about: Pick<Daemon, 'config' | 'isLasting'>,
  { data, log }: ServeOptions,
): Promise<Daemon | undefined> => {
  const other = await findDaemon(data)
  if (other)
    log.warn(
      { pid: other.pid, origin: other.origin },
      `another dragoman serves ${data}, at ${other.origin}: both use the same tokens and memories, and until this one ` +
        'ends, "dragoman stdio" and "dragoman plan" find this one. Give one of them another --data',
    )
  await announceDaemon(data, { origin, pid: process.pid, token: localSecret, ...about }).catch((err: unknown) =>
    // A full or read-only disk must not keep clients from their servers.
    log.error({ err, data }, 'daemon was not announced; commands do not find it until it is restarted'),
  )
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

const workersOf = (flags: FlagValues): number | undefined => {
  const text = textOf(flags, 'workers')
  if (text === undefined) return undefined
  if (/^\d{1,2}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST_WORKERS) return Number(text)
  throw new UsageError(`--workers: expected a whole number from 1 to ${MOST_WORKERS}`)
}

const portOf = (flags: FlagValues): number | undefined => {
  const text = textOf(flags, 'port')
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text)
  throw new UsageError('--port: expected a whole number from 0 to 65535')
}
