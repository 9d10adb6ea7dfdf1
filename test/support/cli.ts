import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { vi } from 'vitest'
import { openDaemon } from '../../src/app/client-daemon.ts'
import { openServer } from '../../src/app/client-server.ts'
import { startGateway } from '../../src/app/gateway.ts'
import type { Terminal } from '../../src/cli/client/terminal.ts'
import type { Programs } from '../../src/cli/command.ts'
import { run } from '../../src/cli/run.ts'
import { announceDaemon } from '../../src/config/daemon-file.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'

interface CliOptions {
  readonly input?: string // of stdin, which ends then
  readonly isTerminal?: boolean
  readonly columns?: number
  readonly env?: NodeJS.ProcessEnv
}

/** A command that runs in this process. */
interface RunningCli {
  readonly ended: Promise<{ code: number; stdout: string; stderr: string }>
  readonly stdout: () => string
  readonly stderr: () => string
  interrupt(): void
  type(text: string): void
}

const collect = (isTTY: boolean, columns: number | undefined) => {
  let text = ''
  const stream = new Writable({
    write: (chunk, _, done) => {
      text += String(chunk)
      done()
    },
  })
  return { stream: Object.assign(stream, { isTTY, columns }), text: () => text, add: (more: string) => (text += more) }
}

/** Starts `dragoman` in this process, with streams of its own. */
export const startCli = (args: readonly string[], options: CliOptions = {}): RunningCli => {
  const { input, isTerminal = false, columns, env = {} } = options
  const stdin = Object.assign(new PassThrough(), { isTTY: isTerminal })
  if (!isTerminal) stdin.end(input ?? '')
  const [stdout, stderr] = [collect(isTerminal, columns), collect(isTerminal, columns)]
  const interrupts = new Set<() => void>()
  const terminal: Terminal = {
    input: stdin,
    output: stdout.stream,
    error: stderr.stream,
    env,
    onInterrupt: listener => {
      interrupts.add(listener)
      return () => interrupts.delete(listener)
    },
  }
  // The runner of commands reports invalid command lines itself.
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation(text => {
    stderr.add(String(text))
    return true
  })
  const ended = run(args, { openServer, openDaemon, terminal } as unknown as Programs)
    .then(code => ({ code, stdout: stdout.text(), stderr: stderr.text() }))
    .finally(() => spy.mockRestore())
  return {
    ended,
    stdout: stdout.text,
    stderr: stderr.text,
    interrupt: () => {
      for (const interrupt of [...interrupts]) interrupt()
    },
    type: text => void stdin.write(text),
  }
}

/** Runs `dragoman` in this process to its end. */
export const runCli = (args: readonly string[], options?: CliOptions) => startCli(args, options).ended

/** A daemon in this process with that configuration, announced in a data directory of its own. */
export const startTestDaemon = async (config: object, log: Log = SILENT) => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-cli-'))
  const snapshot = await loadConfig({ value: config, env: {}, flags: { port: 0 } })
  const gateway = await startGateway({ ...snapshot, limits: { ...snapshot.limits, shutdownMs: 200 } }, { log })
  await gateway.ready
  await announceDaemon(data, { origin: gateway.origin, pid: process.pid, token: gateway.localSecret })
  return {
    data,
    origin: gateway.origin,
    close: async () => {
      await gateway.close()
      await rm(data, { recursive: true, force: true })
    },
  }
}
