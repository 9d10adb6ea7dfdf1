import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { startGateway } from '../../../src/app/gateway.ts'
import type { Programs } from '../../../src/cli/command.ts'
import { run } from '../../../src/cli/run.ts'

/** What main.ts hands to the commands. */
const PROGRAMS: Programs = {
  startGateway,
  inspect: async (snapshot, options) => (await import('../../../src/app/check.ts')).checkServers(snapshot, options),
  openServer: async (server, options) =>
    (await import('../../../src/app/client-server.ts')).openServer(server, options),
  openDaemon: async (daemon, workspace, asks) =>
    (await import('../../../src/app/client-daemon.ts')).openDaemon(daemon, workspace, asks),
  openMemory: async options => (await import('../../../src/servers/memory/memory-admin.ts')).openMemoryAdmin(options),
  servePipe: async options => (await import('../../../src/app/stdio-proxy.ts')).serveStdioProxy(options),
}

interface CommandOutcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string // on standard input, which is not a terminal
}

const collect = (): { stream: Writable; text(): string } => {
  const chunks: Buffer[] = []
  const write = (chunk: Buffer, _: unknown, done: () => void): void => {
    chunks.push(chunk)
    done()
  }
  return { stream: new Writable({ write }), text: () => Buffer.concat(chunks).toString() }
}

/**
 * Runs a command line to its end in this process, with streams, variables and a data directory of its own. A process for
 * each command would take half a second; `runProgram` is for what only a process can show.
 */
export const runCommand = async (
  args: readonly string[],
  { env = {}, input = '' }: CommandOptions = {},
): Promise<CommandOutcome> => {
  const data = mkdtempSync(join(tmpdir(), 'dragoman-data-'))
  const [stdout, stderr] = [collect(), collect()]
  const given: Record<string, unknown> = {
    env: { ...process.env, NO_COLOR: '1', DRAGOMAN_DATA: data, XDG_CONFIG_HOME: data, ...env },
    stdin: Readable.from([Buffer.from(input)]),
    stdout: stdout.stream,
    stderr: stderr.stream,
  }
  const kept = Object.keys(given).map(name => [name, Object.getOwnPropertyDescriptor(process, name)] as const)
  for (const [name, value] of Object.entries(given))
    Object.defineProperty(process, name, { value, configurable: true, enumerable: true, writable: true })
  try {
    return { code: await run(args, PROGRAMS), stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    for (const [name, descriptor] of kept) if (descriptor) Object.defineProperty(process, name, descriptor)
    rmSync(data, { recursive: true, force: true })
  }
}
