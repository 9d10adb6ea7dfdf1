import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { loadConfig } from '../../config/load.ts'
import { createLog } from '../../telemetry/log.ts'
import { LogHistory } from '../../telemetry/log-history.ts'
import type { CommandContext } from '../command.ts'
import { type Flags, readLine, textOf, UsageError } from '../usage.ts'
import { readRecordingFile } from './recording-file.ts'
import { replayAsServer } from './replay-server.ts'
import { createServerScripts, type RecordedServerScripts } from './server-script.ts'

/** The flags of `dragoman replay` besides those of every client command. */
export const SERVER_REPLAY_FLAGS: Flags = {
  as: { value: 'SIDE', help: 'client or server (default: client)' },
  server: { value: 'NAME', help: 'as a server: which one, if several were recorded' },
  port: { value: 'PORT', help: 'as a server: serve HTTP at /mcp on this port (0: any free one) instead of stdio' },
}

const LARGEST_PORT = 65_535

/** Whether a command line plays the server. */
export const isServerReplay = (args: readonly string[]): boolean => {
  const at = args.indexOf('--as')
  return (at >= 0 && args[at + 1] === 'server') || args.includes('--as=server')
}

/** Answers as the recorded server did, until stdin ends, or until it is stopped. */
export const runServerReplay = async (args: readonly string[], context: CommandContext): Promise<number> => {
  const { flags, words } = readLine(args, SERVER_REPLAY_FLAGS, 1)
  const [file] = words
  if (file === undefined) throw new UsageError('expected dragoman replay FILE --as server')
  const server = createServerScripts(await readRecordingFile(resolve(file)), textOf(flags, 'server'))
  const note = (text: string): void => void process.stderr.write(`dragoman: ${text}\n`)
  const port = textOf(flags, 'port')
  if (port !== undefined) return serveAtPort(resolve(file), server, readPort(port), context)
  const { length } = server.scripts
  note(`plays ${server.name} (${server.revision}): ${length} recorded ${length === 1 ? 'answer' : 'answers'}`)
  await replayAsServer(server, { input: process.stdin, output: process.stdout, note })
  return 0
}

const readPort = (text: string): number => {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= LARGEST_PORT) return port
  throw new UsageError(`--port: expected a number from 0 to ${LARGEST_PORT}, found ${JSON.stringify(text)}`)
}

/** A gateway whose only server is this command over stdio, so that clients of every revision and transport can use it. */
const serveAtPort = async (
  file: string,
  { name, revision }: RecordedServerScripts,
  port: number,
  { startGateway, version }: CommandContext,
): Promise<number> => {
  const args = [...process.execArgv, process.argv[1] ?? '', 'replay', file, '--as', 'server', '--server', name]
  const value = { mcpServers: { replay: { command: process.execPath, args } }, recorder: false }
  const snapshot = await loadConfig({ value, env: process.env, flags: { port } })
  const log = await createLog({ level: 'warn', pretty: process.stderr.isTTY })
  const refuse = (): Promise<never> => Promise.reject(new Error('a replay has no configuration'))
  let stop = (): void => {}
  const stopped = new Promise<void>(resolve => {
    stop = resolve
  })
  const data = await mkdtemp(join(tmpdir(), 'dragoman-replay-')) // callers need no token of the daemon's directory
  const gateway = await startGateway(snapshot, {
    ...{ log, version, data, insecure: false, loadNext: refuse, state: undefined, history: new LogHistory() },
    control: { reload: refuse, restart: refuse, stop },
    onReload: () => {},
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  process.stdout.write(`plays ${name} (${revision}) at ${gateway.origin}/mcp\n`)
  await stopped
  await gateway.close()
  await rm(data, { recursive: true, force: true })
  return 0
}
