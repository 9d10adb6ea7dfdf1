import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { DEFAULT_PROCESS_LIMITS, type ProcessLimits, type ProcessServer } from '../../src/config/snapshot.ts'
import type { Caller, Peer } from '../../src/protocol/exchange.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'
import { connectProcess, type ProcessOptions } from '../../src/upstreams/connect-process.ts'
import { ProcessHost } from '../../src/upstreams/process/process-host.ts'
import type { Plain } from '../../src/wire/json/json.ts'
import { livingWith } from './run-processes.ts'
import { callerOf, exchangeWith } from './scripted-server.ts'

export const SERVER = fileURLToPath(new URL('./servers/stdio/server.mjs', import.meta.url))

type Habits = Readonly<Record<string, unknown>>

interface Wanted {
  readonly server?: Partial<ProcessServer>
  readonly limits?: Partial<ProcessLimits>
  readonly options?: Partial<ProcessOptions>
}

const HOST = new ProcessHost(4)
const closing: (() => Promise<void>)[] = []

/** Ends whatever a test has started. */
export const closeAll = async (): Promise<void> => {
  for (const close of closing.splice(0).reverse()) await close()
}

/** The small server of test/support/servers/stdio with these habits, as an upstream; nothing is started yet. */
export const connectSmall = (habits: Habits = {}, { server, limits, options }: Wanted = {}) => {
  const run = randomUUID()
  const config: ProcessServer & { name: string } = {
    name: 'small',
    kind: 'process',
    command: process.execPath,
    args: [SERVER, JSON.stringify(habits)],
    cwd: undefined,
    era: 'auto',
    timeoutMs: 5000,
    ...server,
    env: { TEST_RUN: run, ...server?.env },
    limits: { ...DEFAULT_PROCESS_LIMITS, ...limits },
  }
  const upstream = connectProcess(config, { log: SILENT, host: HOST, backoffMs: 10, ...options })
  closing.push(() => upstream.close())
  return {
    config,
    upstream,
    /** Everything this server has started and that still runs, its own processes included. */
    living: () => livingWith(run),
    open: (caller: Caller = callerOf()) => upstream.open(caller),
  }
}

/** Calls a tool and waits for its text. */
export const callTool = async (peer: Peer, name: string, given: Plain = {}, caller?: Caller): Promise<string> => {
  const params = { name, arguments: given }
  const result = await exchangeWith(peer, 'tools/call', caller ? { params, caller } : { params }).result()
  return (result as { content: { text: string }[] }).content[0]?.text ?? ''
}

/** Calls a tool that fails, and waits for how. */
export const failTool = (peer: Peer, name: string, given: Plain = {}) =>
  exchangeWith(peer, 'tools/call', { params: { name, arguments: given } }).failure()

/** A log that keeps the lines of one level. */
export const keepLog = (level: 'warn' | 'info'): { log: Log; lines: string[] } => {
  const lines: string[] = []
  const log: Log = { ...SILENT, [level]: (_: object, message: string) => void lines.push(message), child: () => log }
  return { log, lines }
}

/** Waits, also on a busy machine, until that becomes what is expected of it. */
export const eventually = <T>(find: () => T) => expect.poll(find, { timeout: 10_000 })
